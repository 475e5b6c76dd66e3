/* SPDX-License-Identifier: MIT
 *
 * What a program can say of its I/O phases. penstock.h finds these by name, so that a
 * program runs as well without the library.
 */
#include "shim.h"

EXPORT void penstock_phase_begin(uint64_t volume);
EXPORT void penstock_phase_end(void);

void penstock_phase_begin(uint64_t volume)
{
    pace_announce_phase(volume);
}

void penstock_phase_end(void)
{
    pace_announce_end();
}
