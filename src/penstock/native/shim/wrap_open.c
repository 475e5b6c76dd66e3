/* SPDX-License-Identifier: MIT
 *
 * Calls that give a descriptor a meaning or take it away.
 */
#include <errno.h>
#include <stdarg.h>

#include "shim.h"

#define NEEDS_MODE(flags) (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE)

/* The third argument of an open call, which is there only if needed. */
#define MODE_AFTER(flags, mode) \
    mode_t mode = 0; \
    if (NEEDS_MODE(flags)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

static int opened(int fd)
{
    identity_forget(fd);
    return fd;
}

static int opened_name(int fd, int at, const char *path)
{
    wrap_count_path(fd, at, path);
    if (RARELY(LOAD(stage_enabled)))
        stage_opened(fd);
    return opened(fd);
}

bool wrap_may_open(int at, const char *path, int flags)
{
    if (LIKELY(!LOAD(stage_enabled)))
        return true;
    int error =
        stage_leave_name(at, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0);
    bool reads = (flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
    if (error == 0 || reads)
        return true;
    errno = error;
    return false;
}

static int duplicated(int from, int fd)
{
    if (RARELY(LOAD(stage_enabled)) && fd >= 0)
        stage_duplicated(from, fd);
    return opened(fd);
}

/* `fd` is about to be closed, by a call that reports no errors of it. */
static void dropped(int fd)
{
    if (RARELY(LOAD(stage_enabled)) && (unsigned)fd < KNOWN_DESCRIPTORS)
        stage_close_range((unsigned)fd, (unsigned)fd);
}

EXPORT int open(const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return opened_name(REAL(open)(path, flags, mode), AT_FDCWD, path);
}

EXPORT int open64(const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return opened_name(REAL(open64)(path, flags, mode), AT_FDCWD, path);
}

EXPORT int openat(int at, const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(at, path, flags))
        return -1;
    return opened_name(REAL(openat)(at, path, flags, mode), at, path);
}

EXPORT int openat64(int at, const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(at, path, flags))
        return -1;
    return opened_name(REAL(openat64)(at, path, flags, mode), at, path);
}

EXPORT int __open_2(const char *path, int flags)
{
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return opened_name(REAL(__open_2)(path, flags), AT_FDCWD, path);
}

EXPORT int __open64_2(const char *path, int flags)
{
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return opened_name(REAL(__open64_2)(path, flags), AT_FDCWD, path);
}

EXPORT int __openat_2(int at, const char *path, int flags)
{
    if (!wrap_may_open(at, path, flags))
        return -1;
    return opened_name(REAL(__openat_2)(at, path, flags), at, path);
}

EXPORT int __openat64_2(int at, const char *path, int flags)
{
    if (!wrap_may_open(at, path, flags))
        return -1;
    return opened_name(REAL(__openat64_2)(at, path, flags), at, path);
}

EXPORT int creat(const char *path, mode_t mode)
{
    if (!wrap_may_open(AT_FDCWD, path, O_WRONLY | O_TRUNC))
        return -1;
    return opened_name(REAL(creat)(path, mode), AT_FDCWD, path);
}

EXPORT int creat64(const char *path, mode_t mode)
{
    if (!wrap_may_open(AT_FDCWD, path, O_WRONLY | O_TRUNC))
        return -1;
    return opened_name(REAL(creat64)(path, mode), AT_FDCWD, path);
}

EXPORT int mkstemp(char *name)
{
    return opened_name(REAL(mkstemp)(name), AT_FDCWD, name);
}

EXPORT int mkstemp64(char *name)
{
    return opened_name(REAL(mkstemp64)(name), AT_FDCWD, name);
}

EXPORT int mkostemp(char *name, int flags)
{
    return opened_name(REAL(mkostemp)(name, flags), AT_FDCWD, name);
}

EXPORT int mkostemp64(char *name, int flags)
{
    return opened_name(REAL(mkostemp64)(name, flags), AT_FDCWD, name);
}

EXPORT int mkstemps(char *name, int suffix)
{
    return opened_name(REAL(mkstemps)(name, suffix), AT_FDCWD, name);
}

EXPORT int mkstemps64(char *name, int suffix)
{
    return opened_name(REAL(mkstemps64)(name, suffix), AT_FDCWD, name);
}

EXPORT int mkostemps(char *name, int suffix, int flags)
{
    return opened_name(REAL(mkostemps)(name, suffix, flags), AT_FDCWD, name);
}

EXPORT int mkostemps64(char *name, int suffix, int flags)
{
    return opened_name(REAL(mkostemps64)(name, suffix, flags), AT_FDCWD, name);
}

EXPORT int dup(int fd)
{
    return duplicated(fd, REAL(dup)(fd));
}

EXPORT int dup2(int fd, int target)
{
    if (fd != target)
        dropped(target);
    return duplicated(fd, REAL(dup2)(fd, target));
}

EXPORT int dup3(int fd, int target, int flags)
{
    if (fd != target)
        dropped(target);
    return duplicated(fd, REAL(dup3)(fd, target, flags));
}

static bool duplicates(int command)
{
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

/* Locks say that others use the file, new flags that its writes mean something else. */
static void prepare(int fd, int command)
{
    if (LIKELY(!LOAD(stage_enabled)) || !identity_is_controlled(fd))
        return;
    switch (command) {
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_SETLEASE:
        stage_bar(fd);
        break;
    case F_SETFL:
        stage_leave(fd);
        break;
    default:
        break;
    }
}

EXPORT int fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long argument = va_arg(rest, long);
    va_end(rest);
    prepare(fd, command);
    int answer = REAL(fcntl)(fd, command, argument);
    return duplicates(command) ? duplicated(fd, answer) : answer;
}

EXPORT int fcntl64(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long argument = va_arg(rest, long);
    va_end(rest);
    prepare(fd, command);
    int answer = REAL(fcntl64)(fd, command, argument);
    return duplicates(command) ? duplicated(fd, answer) : answer;
}

/* To forget before the descriptor is closed would let another thread, in between,
 * enter the old meaning again. */
EXPORT int close(int fd)
{
    int late = 0;
    if (RARELY(LOAD(stage_enabled)) && (unsigned)fd < KNOWN_DESCRIPTORS) {
        if (identity_is_internal(fd)) {
            errno = EBADF;
            return -1;
        }
        late = stage_close(fd);
    }
    int answer = REAL(close)(fd);
    identity_forget(fd);
    if (RARELY(late != 0) && answer == 0) {
        errno = late;
        return -1;
    }
    return answer;
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    const int unshare_first = 2, cloexec = 4; /* CLOSE_RANGE_..., for older headers */
    /* Threads that each have their own descriptors have one table here. */
    if (RARELY(LOAD(stage_enabled)) && (flags & unshare_first) != 0)
        stage_stop();
    if (RARELY(LOAD(stage_enabled)) && (flags & cloexec) == 0)
        stage_close_range(first, last);
    int answer = REAL(close_range)(first, last, flags);
    identity_forget_range(first, last);
    return answer;
}

EXPORT void closefrom(int first)
{
    if (RARELY(LOAD(stage_enabled)))
        stage_close_range(first > 0 ? (unsigned)first : 0, UINT32_MAX);
    REAL(closefrom)(first);
    identity_forget_range(first > 0 ? (unsigned)first : 0, UINT32_MAX);
}

EXPORT int daemon(int keep_directory, int keep_descriptors)
{
    stage_leave_all();
    int answer = REAL(daemon)(keep_directory, keep_descriptors);
    identity_forget_range(0, 2);
    identity_forget_cwd();
    return answer;
}
