/* SPDX-License-Identifier: MIT
 *
 * Calls that open, duplicate or close descriptors.
 */
#include <errno.h>
#include <stdarg.h>

#include "shim.h"

#define NEEDS_MODE(flags) (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE)

/* Declare `mode`, the third argument of an open call, which exists only if needed. */
#define MODE_AFTER(flags, mode) \
    mode_t mode = 0; \
    if (NEEDS_MODE(flags)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

static int note_opened(int fd)
{
    identity_forget(fd);
    return fd;
}

static int note_opened_file(int fd, int at, const char *path, int flags)
{
    if (RARELY(LOAD(stage_enabled)))
        stage_opened(fd);
    if (fd >= 0)
        identity_note_opened(fd, at, path, flags);
    return fd;
}

/* A new file with a random name. */
static int note_temporary(int fd, const char *path)
{
    return note_opened_file(fd, AT_FDCWD, path, O_CREAT | O_EXCL);
}

bool wrap_may_open(int at, const char *path, int flags)
{
    if (LIKELY(!LOAD(stage_enabled)))
        return true;
    int error = stage_write_through_name(at, path,
                                         flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0);
    bool reads = (flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
    if (error == 0 || reads)
        return true;
    errno = error;
    return false;
}

static int note_duplicated(int from, int fd)
{
    if (RARELY(LOAD(stage_enabled)) && fd >= 0)
        stage_duplicated(from, fd);
    if (fd != from)
        note_opened(fd);
    if (identity_is_dirty(from))
        identity_mark_dirty(fd);
    return fd;
}

/* `fd` is about to be closed by dup2, which does not report errors of the close. */
static void close_silently(int fd)
{
    if (RARELY(LOAD(stage_enabled)) && (unsigned)fd < KNOWN_DESCRIPTORS)
        stage_close_range((unsigned)fd, (unsigned)fd);
}

EXPORT int open(const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return note_opened_file(REAL(open)(path, flags, mode), AT_FDCWD, path, flags);
}

EXPORT int open64(const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return note_opened_file(REAL(open64)(path, flags, mode), AT_FDCWD, path, flags);
}

EXPORT int openat(int at, const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(at, path, flags))
        return -1;
    return note_opened_file(REAL(openat)(at, path, flags, mode), at, path, flags);
}

EXPORT int openat64(int at, const char *path, int flags, ...)
{
    MODE_AFTER(flags, mode)
    if (!wrap_may_open(at, path, flags))
        return -1;
    return note_opened_file(REAL(openat64)(at, path, flags, mode), at, path, flags);
}

EXPORT int __open_2(const char *path, int flags)
{
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return note_opened_file(REAL(__open_2)(path, flags), AT_FDCWD, path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
    if (!wrap_may_open(AT_FDCWD, path, flags))
        return -1;
    return note_opened_file(REAL(__open64_2)(path, flags), AT_FDCWD, path, flags);
}

EXPORT int __openat_2(int at, const char *path, int flags)
{
    if (!wrap_may_open(at, path, flags))
        return -1;
    return note_opened_file(REAL(__openat_2)(at, path, flags), at, path, flags);
}

EXPORT int __openat64_2(int at, const char *path, int flags)
{
    if (!wrap_may_open(at, path, flags))
        return -1;
    return note_opened_file(REAL(__openat64_2)(at, path, flags), at, path, flags);
}

EXPORT int creat(const char *path, mode_t mode)
{
    if (!wrap_may_open(AT_FDCWD, path, O_WRONLY | O_TRUNC))
        return -1;
    return note_opened_file(REAL(creat)(path, mode), AT_FDCWD, path, O_CREAT | O_TRUNC);
}

EXPORT int creat64(const char *path, mode_t mode)
{
    if (!wrap_may_open(AT_FDCWD, path, O_WRONLY | O_TRUNC))
        return -1;
    return note_opened_file(REAL(creat64)(path, mode), AT_FDCWD, path,
                            O_CREAT | O_TRUNC);
}

EXPORT int mkstemp(char *name)
{
    return note_temporary(REAL(mkstemp)(name), name);
}

EXPORT int mkstemp64(char *name)
{
    return note_temporary(REAL(mkstemp64)(name), name);
}

EXPORT int mkostemp(char *name, int flags)
{
    return note_temporary(REAL(mkostemp)(name, flags), name);
}

EXPORT int mkostemp64(char *name, int flags)
{
    return note_temporary(REAL(mkostemp64)(name, flags), name);
}

EXPORT int mkstemps(char *name, int suffix)
{
    return note_temporary(REAL(mkstemps)(name, suffix), name);
}

EXPORT int mkstemps64(char *name, int suffix)
{
    return note_temporary(REAL(mkstemps64)(name, suffix), name);
}

EXPORT int mkostemps(char *name, int suffix, int flags)
{
    return note_temporary(REAL(mkostemps)(name, suffix, flags), name);
}

EXPORT int mkostemps64(char *name, int suffix, int flags)
{
    return note_temporary(REAL(mkostemps64)(name, suffix, flags), name);
}

EXPORT int dup(int fd)
{
    return note_duplicated(fd, REAL(dup)(fd));
}

EXPORT int dup2(int fd, int target)
{
    struct paced_call call;
    if (fd != target)
        close_silently(target);
    wrap_begin_sync(&call, fd != target ? target : -1);
    return note_duplicated(fd, wrap_end_sync(&call, REAL(dup2)(fd, target)));
}

EXPORT int dup3(int fd, int target, int flags)
{
    struct paced_call call;
    if (fd != target)
        close_silently(target);
    wrap_begin_sync(&call, target);
    return note_duplicated(fd, wrap_end_sync(&call, REAL(dup3)(fd, target, flags)));
}

static bool is_duplication(int command)
{
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

/* A lock shows that others use the file; new flags may change what its writes mean. */
static void prepare_fcntl(int fd, int command)
{
    if (LIKELY(!LOAD(stage_enabled)) || !identity_is_controlled(fd))
        return;
    switch (command) {
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_SETLEASE:
        stage_forbid(fd);
        break;
    case F_SETFL:
        stage_write_through(fd);
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
    prepare_fcntl(fd, command);
    int answer = REAL(fcntl)(fd, command, argument);
    return is_duplication(command) ? note_duplicated(fd, answer) : answer;
}

EXPORT int fcntl64(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long argument = va_arg(rest, long);
    va_end(rest);
    prepare_fcntl(fd, command);
    int answer = REAL(fcntl64)(fd, command, argument);
    return is_duplication(command) ? note_duplicated(fd, answer) : answer;
}

/* Forget after the close: before it, another thread could look the file up again. */
EXPORT int close(int fd)
{
    int late_error = 0;
    if (RARELY(LOAD(stage_enabled)) && (unsigned)fd < KNOWN_DESCRIPTORS) {
        if (identity_is_internal(fd)) {
            errno = EBADF;
            return -1;
        }
        late_error = stage_close(fd);
    }
    struct paced_call call;
    wrap_begin_sync(&call, fd);
    int answer = wrap_end_sync(&call, REAL(close)(fd));
    identity_forget(fd);
    if (RARELY(late_error != 0) && answer == 0) {
        errno = late_error;
        return -1;
    }
    return answer;
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    const int unshare_first = 2, cloexec = 4; /* CLOSE_RANGE_..., for older headers */
    /* Afterwards threads have descriptors of their own, but one table here. */
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
    stage_write_through_all();
    int answer = REAL(daemon)(keep_directory, keep_descriptors);
    identity_forget_range(0, 2);
    identity_forget_directories();
    return answer;
}
