/* SPDX-License-Identifier: MIT
 *
 * For programs: say how much an I/O phase will move, and when it is over.
 *
 *     #include "penstock.h"
 *
 *     penstock_begin(size);   bytes that THIS process will write and read
 *     ... fwrite, MPI_File_write_all, H5Dwrite ...
 *     penstock_end();
 *
 * Every process that takes part says its own share; the shares of a job are added up.
 * Policies that look at volumes then know them, and need not guess. A phase should end
 * with penstock_end(): until then its pauses count as I/O, not as work.
 *
 * Under `penstock run` this costs about a microsecond. Without it both do nothing; there
 * is nothing to link (before glibc 2.34: -ldl).
 */
#ifndef PENSTOCK_H
#define PENSTOCK_H

#include <dlfcn.h>
#include <stdint.h>

/* RTLD_DEFAULT, which headers hide without _GNU_SOURCE. */
#define PENSTOCK_FIND(name) dlsym((void *)0, name)

static inline void penstock_begin(uint64_t volume)
{
    union {
        void *found;
        void (*call)(uint64_t);
    } begin;
    begin.found = PENSTOCK_FIND("penstock_phase_begin");
    if (begin.found)
        begin.call(volume);
}

static inline void penstock_end(void)
{
    union {
        void *found;
        void (*call)(void);
    } end;
    end.found = PENSTOCK_FIND("penstock_phase_end");
    if (end.found)
        end.call();
}

#endif
