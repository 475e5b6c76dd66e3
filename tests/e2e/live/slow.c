/* SPDX-License-Identifier: MIT
 *
 * A library that stands for a slow storage: preloaded behind penstock's, it makes the
 * call named SLOW_CALL on files named "slow" wait as long as the file SLOW_GATE exists.
 * It writes to that file when it waits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool is_slow(int fd)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length > 5 && strcmp(path + length - 5, "/slow") == 0;
}

static void wait_at_gate(const char *call, int fd)
{
    const char *slow = getenv("SLOW_CALL"), *gate = getenv("SLOW_GATE");
    struct stat status;
    if (slow == NULL || gate == NULL || strcmp(slow, call) != 0 || !is_slow(fd))
        return;
    /* By number: the functions below must not be called here. */
    long file = syscall(SYS_openat, AT_FDCWD, gate, O_WRONLY);
    if (file >= 0)
        syscall(SYS_write, file, "!", 1);
    while (syscall(SYS_newfstatat, AT_FDCWD, gate, &status, 0) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

#define SLOW(type, name, parameters, arguments, fd) \
    type name parameters \
    { \
        type(*real) parameters = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
        wait_at_gate(#name, fd); \
        return real arguments; \
    }

SLOW(int, fsync, (int fd), (fd), fd)
SLOW(int, fdatasync, (int fd), (fd), fd)
SLOW(int, close, (int fd), (fd), fd)
SLOW(int, dup2, (int fd, int target), (fd, target), target)
SLOW(int, fclose, (FILE * file), (file), fileno(file))
SLOW(int, sync_file_range, (int fd, off64_t at, off64_t size, unsigned flags),
     (fd, at, size, flags), fd)
SLOW(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), fd)
SLOW(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size), fd)
