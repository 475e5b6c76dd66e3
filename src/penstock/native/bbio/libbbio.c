/* SPDX-License-Identifier: MIT
 *
 * libbbio.a: the functions of bbio.h, for a program to link. Each calls the function of
 * the preload library (stage/bbio.c) with the same name, or does nothing if the library
 * is not loaded.
 */
#include "bbio.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Look up the function of the preload library with this name; NULL if there is none. */
#define FIND(name, type) \
    union { \
        void *address; \
        type; \
    } name = {dlsym(RTLD_DEFAULT, "penstock_bbio_" #name)}

int BBIO_Init(const char *path, size_t size)
{
    FIND(init, int (*call)(const char *, size_t));
    return init.address != NULL ? init.call(path, size) : 0;
}

int BBIO_Enable(int fd)
{
    FIND(enable, int (*call)(int));
    return enable.address != NULL ? enable.call(fd) : 0;
}

int BBIO_Disable(int fd)
{
    FIND(disable, int (*call)(int));
    return disable.address != NULL ? disable.call(fd) : 0;
}

int BBIO_Flush(int fd)
{
    FIND(flush, int (*call)(int));
    return flush.address != NULL ? flush.call(fd) : 0;
}

int BBIO_Finalize(void)
{
    FIND(finalize, int (*call)(void));
    return finalize.address != NULL ? finalize.call() : 0;
}

static void finalize_at_exit(void)
{
    BBIO_Finalize();
}

/* The library flushes at the end of the program too, but so late that the callback may
 * be unloaded: it does not call it then. */
int BBIO_On_flush(int fd, BBIO_Callback callback)
{
    static atomic_flag registered = ATOMIC_FLAG_INIT;
    FIND(on_flush, int (*call)(int, BBIO_Callback));
    if (on_flush.address == NULL)
        return 0;
    if (callback != NULL && !atomic_flag_test_and_set(&registered))
        atexit(finalize_at_exit);
    return on_flush.call(fd, callback);
}
