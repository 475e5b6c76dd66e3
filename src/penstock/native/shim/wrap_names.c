/* SPDX-License-Identifier: MIT
 *
 * Calls on paths, for staging: a call that changes a file by its path drains the file
 * first, and stat shows the size that the file will have after its journal is drained.
 */
#include <errno.h>
#include <sys/sysmacros.h>

#include "shim.h"

/* Drain the file behind a path that is about to be changed; return the path. `flags`
 * are those of the call, and say whether it follows a symbolic link. */
static const char *drain_path(int at, const char *path, int flags)
{
    if (RARELY(LOAD(stage_enabled)))
        stage_write_through_name(at, path,
                                 flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
    return path;
}

/* Drain the file behind `path`, as for a call that does not follow symbolic links. */
static const char *drain_nofollow(int at, const char *path)
{
    return drain_path(at, path, AT_SYMLINK_NOFOLLOW);
}

/* Drain the file behind `path`, as for a call that follows symbolic links. */
static const char *drain_follow(int at, const char *path)
{
    return drain_path(at, path, 0);
}

#define DRAINED(name, parameters, arguments) \
    EXPORT int name parameters \
    { \
        return REAL(name) arguments; \
    }

/* Get the end of the staged data of a file that was just looked at by path or by
 * descriptor `at`. */
static bool staged_end(int at, const char *path, uint64_t device, uint64_t inode,
                       uint64_t *end)
{
    bool named = path != NULL && path[0] != '\0';
    if (!named && at >= 0)
        return identity_is_controlled(at) && stage_end(at, end);
    /* By inode, because other paths may lead to the same file. */
    return named && stage_file_end(device, inode, end);
}

/* If there is staged data, the kernel is asked a second time, after the end was read: a
 * drain in between makes the file larger, never smaller than that end. */
#define SIZED(name, parameters, arguments, at) \
    EXPORT int name parameters \
    { \
        int answer = REAL(name) arguments; \
        uint64_t end; \
        if (RARELY(LOAD(stage_enabled)) && answer == 0 && S_ISREG(status->st_mode) && \
            staged_end(at, path, status->st_dev, status->st_ino, &end)) { \
            answer = REAL(name) arguments; \
            if (answer == 0 && (uint64_t)status->st_size < end) \
                status->st_size = (off_t)end; \
        } \
        return answer; \
    }

/* clang-format off */
SIZED(stat, (const char *path, struct stat *status), (path, status),
      AT_FDCWD)
SIZED(stat64, (const char *path, struct stat64 *status), (path, status),
      AT_FDCWD)
SIZED(lstat, (const char *path, struct stat *status), (path, status),
      AT_FDCWD)
SIZED(lstat64, (const char *path, struct stat64 *status), (path, status),
      AT_FDCWD)
SIZED(fstatat, (int at, const char *path, struct stat *status, int flags),
      (at, path, status, flags), at)
SIZED(fstatat64, (int at, const char *path, struct stat64 *status, int flags),
      (at, path, status, flags), at)

/* Truncating is writing: see wrap_may_open. */
#define TRUNCATED(name, offset) \
    EXPORT int name(const char *path, offset size) \
    { \
        if (!wrap_may_open(AT_FDCWD, path, O_WRONLY)) \
            return -1; \
        return REAL(name)(path, size); \
    }

TRUNCATED(truncate, off_t)
TRUNCATED(truncate64, off64_t)

DRAINED(unlink, (const char *path), (drain_nofollow(AT_FDCWD, path)))
DRAINED(unlinkat, (int at, const char *path, int flags),
        (at, drain_nofollow(at, path), flags))
DRAINED(remove, (const char *path), (drain_nofollow(AT_FDCWD, path)))
DRAINED(rename, (const char *path, const char *to),
        (drain_nofollow(AT_FDCWD, path), drain_nofollow(AT_FDCWD, to)))
DRAINED(renameat, (int at, const char *path, int to_at, const char *to),
        (at, drain_nofollow(at, path), to_at, drain_nofollow(to_at, to)))
DRAINED(renameat2, (int at, const char *path, int to_at, const char *to, unsigned flags),
        (at, drain_nofollow(at, path), to_at, drain_nofollow(to_at, to), flags))
DRAINED(link, (const char *from, const char *path),
        (drain_nofollow(AT_FDCWD, from), path))
DRAINED(linkat, (int from_at, const char *from, int at, const char *path, int flags),
        (from_at, drain_follow(from_at, from), at, path, flags))
DRAINED(chmod, (const char *path, mode_t mode), (drain_follow(AT_FDCWD, path), mode))
DRAINED(fchmodat, (int at, const char *path, mode_t mode, int flags),
        (at, drain_path(at, path, flags), mode, flags))
DRAINED(chown, (const char *path, uid_t user, gid_t group),
        (drain_follow(AT_FDCWD, path), user, group))
DRAINED(lchown, (const char *path, uid_t user, gid_t group),
        (drain_nofollow(AT_FDCWD, path), user, group))
DRAINED(fchownat, (int at, const char *path, uid_t user, gid_t group, int flags),
        (at, drain_path(at, path, flags), user, group, flags))
DRAINED(setxattr, (const char *path, const char *name, const void *value, size_t size,
                   int flags),
        (drain_follow(AT_FDCWD, path), name, value, size, flags))
DRAINED(lsetxattr, (const char *path, const char *name, const void *value, size_t size,
                    int flags),
        (drain_nofollow(AT_FDCWD, path), name, value, size, flags))
DRAINED(utimensat, (int at, const char *path, const struct timespec times[2], int flags),
        (at, drain_path(at, path, flags), times, flags))
DRAINED(utimes, (const char *path, const struct timeval times[2]),
        (drain_follow(AT_FDCWD, path), times))
DRAINED(utime, (const char *path, const struct utimbuf *times),
        (drain_follow(AT_FDCWD, path), times))
/* clang-format on */

EXPORT int statx(int at, const char *path, int flags, unsigned mask,
                 struct statx *status)
{
    int answer = REAL(statx)(at, path, flags, mask, status);
    if (RARELY(LOAD(stage_enabled)) && answer == 0 && (status->stx_mask & STATX_SIZE) &&
        S_ISREG(status->stx_mode)) {
        uint64_t device = makedev(status->stx_dev_major, status->stx_dev_minor), end;
        if (staged_end(at, path, device, status->stx_ino, &end)) {
            answer = REAL(statx)(at, path, flags, mask, status);
            if (answer == 0 && status->stx_size < end)
                status->stx_size = end;
        }
    }
    return answer;
}

static bool descriptor_end(int fd, uint64_t *end)
{
    return RARELY(LOAD(stage_enabled)) && identity_is_controlled(fd) &&
           stage_end(fd, end);
}

EXPORT int fstat(int fd, struct stat *status)
{
    uint64_t end = 0;
    bool staged = descriptor_end(fd, &end);
    int answer = REAL(fstat)(fd, status);
    if (LIKELY(answer == 0))
        identity_note_status(fd, status);
    if (answer == 0 && staged && (uint64_t)status->st_size < end)
        status->st_size = (off_t)end;
    return answer;
}

EXPORT int fstat64(int fd, struct stat64 *status)
{
    uint64_t end = 0;
    bool staged = descriptor_end(fd, &end);
    int answer = REAL(fstat64)(fd, status);
    if (LIKELY(answer == 0))
        identity_note_status(fd, (const struct stat *)status);
    if (answer == 0 && staged && (uint64_t)status->st_size < end)
        status->st_size = (off64_t)end;
    return answer;
}

EXPORT int chdir(const char *path)
{
    int answer = REAL(chdir)(path);
    identity_forget_directories();
    return answer;
}

EXPORT int fchdir(int fd)
{
    int answer = REAL(fchdir)(fd);
    identity_forget_directories();
    return answer;
}
