/* SPDX-License-Identifier: MIT
 *
 * For programs: the interface of burst-buffer coordination, section IV-B, to staged
 * writes.
 *
 *     #include "bbio.h"
 *
 *     BBIO_Init("/local/ssd", 1 << 30);    folder (NULL: memory), bytes for each file
 *     ... write, pwrite, fwrite ...        into a journal
 *     BBIO_Flush(fd);                      into the file
 *     BBIO_Finalize();
 *
 * No call is needed for staging: `penstock run --stage` stages the writes of any
 * program. Without the preload library each function does nothing and returns 0. With
 * it, each returns 0, or -1 and sets errno. There is nothing to link (before
 * glibc 2.34: -ldl).
 */
#ifndef PENSTOCK_BBIO_H
#define PENSTOCK_BBIO_H

#include <dlfcn.h>
#include <stddef.h>

typedef void (*BBIO_Callback)(int fd);

/* Look up the function of the preload library with this name; 0 if there is none. */
#define BBIO_FOUND(name, type) \
    union { \
        void *found; \
        type; \
    } name = {dlsym((void *)0, "penstock_bbio_" #name)}

/* Stage what is written from now on, outside of system directories. Each file's journal
 * holds at most `size` bytes (0: 256 MiB); what does not fit is drained. */
static inline int BBIO_Init(const char *path, size_t size)
{
    BBIO_FOUND(init, int (*call)(const char *, size_t));
    return init.found ? init.call(path, size) : 0;
}

/* Stage what is written to this descriptor, also if it was inherited. */
static inline int BBIO_Enable(int fd)
{
    BBIO_FOUND(enable, int (*call)(int));
    return enable.found ? enable.call(fd) : 0;
}

/* Drain, and write through from now on. */
static inline int BBIO_Disable(int fd)
{
    BBIO_FOUND(disable, int (*call)(int));
    return disable.found ? disable.call(fd) : 0;
}

/* Drain now. */
static inline int BBIO_Flush(int fd)
{
    BBIO_FOUND(flush, int (*call)(int));
    return flush.found ? flush.call(fd) : 0;
}

/* Drain everything, and stage no more. */
static inline int BBIO_Finalize(void)
{
    BBIO_FOUND(finalize, int (*call)(void));
    return finalize.found ? finalize.call() : 0;
}

/* Have `callback` called before every drain that has something to write; it may wait.
 * The drain when the program ends is one only if that calls BBIO_Finalize. */
static inline int BBIO_On_flush(int fd, BBIO_Callback callback)
{
    BBIO_FOUND(on_flush, int (*call)(int, BBIO_Callback));
    return on_flush.found ? on_flush.call(fd, callback) : 0;
}

#endif
