/* SPDX-License-Identifier: MIT
 *
 * Phases announced by programs. penstock.h looks these functions up by name, so that a
 * program also runs without the library.
 */
#include "shim.h"

EXPORT void penstock_phase_begin(uint64_t volume_bytes);
EXPORT void penstock_phase_end(void);

void penstock_phase_begin(uint64_t volume_bytes)
{
    pace_announce_phase(volume_bytes);
}

void penstock_phase_end(void)
{
    pace_announce_end();
}
