/* SPDX-License-Identifier: MIT
 *
 * Troubles of a storage and of a node, preloaded into the process of a mount. The name
 * of a file says what happens to it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return the path of a file in the folder of signs between test and mount. */
static const char *sign(const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", getenv("TROUBLES"), name);
    return path;
}

/* Tell the test that a call waits, and wait for its sign. */
static void wait_for_sign(const char *name)
{
    char waits[512], goes[512], path[256];
    snprintf(path, sizeof(path), "%s-waits", name);
    int fd = open(sign(path, waits, sizeof(waits)), O_CREAT | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
    snprintf(path, sizeof(path), "%s-goes", name);
    while (access(sign(path, goes, sizeof(goes)), F_OK))
        usleep(1000);
}

static bool is_named(int fd, const char *name)
{
    char link[40], path[512];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    path[length < 0 ? 0 : length] = '\0';
    return strstr(path, name) != NULL;
}

/* A file system that writes nothing, and reports no error. */
ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    return is_named(fd, "/writes-nothing") ? 0 : real(fd, data, size, at);
}

/* A file system whose last close of a deleted file takes long. */
int close(int fd)
{
    int (*real)(int) = dlsym(RTLD_NEXT, "close");
    if (fcntl(fd, F_GETFL) & O_PATH && is_named(fd, "/closes-slowly"))
        wait_for_sign("close");
    return real(fd);
}

/* An open that is answered late. */
int openat(int folder, const char *name, int flags, ...)
{
    int (*real)(int, const char *, int, ...) = dlsym(RTLD_NEXT, "openat");
    va_list values;
    va_start(values, flags);
    mode_t mode = flags & O_CREAT ? va_arg(values, mode_t) : 0;
    va_end(values);
    int fd = real(folder, name, flags, mode);
    int error = errno;
    if (fd >= 0 && !(flags & O_PATH) && !strcmp(name, "opens-slowly"))
        wait_for_sign("open");
    errno = error;
    return fd;
}

/* A node with too many threads for a part of the mount, which gets so many. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*start)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    static _Atomic int started;
    const char *refused = getenv("REFUSED_THREADS"), *left = getenv("THREADS_LEFT");
    Dl_info caller;
    if (refused && dladdr(__builtin_return_address(0), &caller) &&
        strstr(caller.dli_fname, refused) && started++ >= atoi(left ? left : "0"))
        return EAGAIN;
    return real(thread, attributes, start, argument);
}
