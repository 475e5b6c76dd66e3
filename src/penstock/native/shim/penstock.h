/* SPDX-License-Identifier: MIT
 *
 * For programs: announce the I/O phases of a program to penstock.
 *
 *     #include "penstock.h"
 *
 *     penstock_begin(size);   // bytes that THIS process will write and read
 *     ... fwrite, MPI_File_write_all, H5Dwrite ...
 *     penstock_end();
 *
 * Every process announces its own share; the shares of a job are added up. Policies
 * that use volumes then need not estimate them. Call penstock_end() when the phase is
 * over: until then, pauses between calls count as I/O, not as computation.
 *
 * Under `penstock run` a call costs about a microsecond; without it, it does nothing.
 * There is nothing to link (before glibc 2.34: -ldl).
 */
#ifndef PENSTOCK_H
#define PENSTOCK_H

#include <dlfcn.h>
#include <stdint.h>

/* (void *)0 is RTLD_DEFAULT, which headers hide without _GNU_SOURCE. */
#define PENSTOCK_LOOK_UP(name) dlsym((void *)0, name)

static inline void penstock_begin(uint64_t volume_bytes)
{
    union {
        void *address;
        void (*call)(uint64_t);
    } begin;
    begin.address = PENSTOCK_LOOK_UP("penstock_phase_begin");
    if (begin.address)
        begin.call(volume_bytes);
}

static inline void penstock_end(void)
{
    union {
        void *address;
        void (*call)(void);
    } end;
    end.address = PENSTOCK_LOOK_UP("penstock_phase_end");
    if (end.address)
        end.call();
}

#endif
