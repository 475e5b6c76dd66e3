/* SPDX-License-Identifier: MIT
 *
 * Calls on names: passed through and counted, if the name lies under a prefix.
 */
#include <errno.h>

#include "shim.h"

/* A name is read only after the kernel has read it: a bad pointer stays the kernel's
 * affair. A name that is not there, or is there already, was looked up too. */
void count_name(int answer, int at, const char *path)
{
    if (attached_page == NULL || path == NULL)
        return;
    bool looked_up = answer >= 0 || errno == ENOENT || errno == EEXIST;
    if (looked_up && name_is_controlled(at, path))
        count_metadata();
}

static int counted(int answer, int at, const char *path)
{
    count_name(answer, at, path);
    return answer;
}

#define COUNTED(name, parameters, arguments, at, path) \
    EXPORT int name parameters \
    { \
        return counted(REAL(name) arguments, at, path); \
    }

/* clang-format off */
COUNTED(stat, (const char *path, struct stat *status), (path, status), AT_FDCWD, path)
COUNTED(stat64, (const char *path, struct stat64 *status), (path, status), AT_FDCWD, path)
COUNTED(lstat, (const char *path, struct stat *status), (path, status), AT_FDCWD, path)
COUNTED(lstat64, (const char *path, struct stat64 *status), (path, status), AT_FDCWD, path)
COUNTED(fstatat, (int at, const char *path, struct stat *status, int flags),
        (at, path, status, flags), at, path)
COUNTED(fstatat64, (int at, const char *path, struct stat64 *status, int flags),
        (at, path, status, flags), at, path)
COUNTED(statx, (int at, const char *path, int flags, unsigned mask, struct statx *status),
        (at, path, flags, mask, status), at, path)
COUNTED(access, (const char *path, int mode), (path, mode), AT_FDCWD, path)
COUNTED(faccessat, (int at, const char *path, int mode, int flags),
        (at, path, mode, flags), at, path)
COUNTED(unlink, (const char *path), (path), AT_FDCWD, path)
COUNTED(unlinkat, (int at, const char *path, int flags), (at, path, flags), at, path)
COUNTED(remove, (const char *path), (path), AT_FDCWD, path)
COUNTED(rmdir, (const char *path), (path), AT_FDCWD, path)
COUNTED(rename, (const char *path, const char *to), (path, to), AT_FDCWD, path)
COUNTED(renameat, (int at, const char *path, int to_at, const char *to),
        (at, path, to_at, to), at, path)
COUNTED(renameat2, (int at, const char *path, int to_at, const char *to, unsigned flags),
        (at, path, to_at, to, flags), at, path)
COUNTED(mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
COUNTED(mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), at, path)
COUNTED(mknod, (const char *path, mode_t mode, dev_t device), (path, mode, device),
        AT_FDCWD, path)
COUNTED(link, (const char *from, const char *path), (from, path), AT_FDCWD, path)
COUNTED(linkat, (int from_at, const char *from, int at, const char *path, int flags),
        (from_at, from, at, path, flags), at, path)
COUNTED(symlink, (const char *text, const char *path), (text, path), AT_FDCWD, path)
COUNTED(symlinkat, (const char *text, int at, const char *path), (text, at, path), at, path)
COUNTED(truncate, (const char *path, off_t size), (path, size), AT_FDCWD, path)
COUNTED(truncate64, (const char *path, off64_t size), (path, size), AT_FDCWD, path)
COUNTED(chmod, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
COUNTED(fchmodat, (int at, const char *path, mode_t mode, int flags),
        (at, path, mode, flags), at, path)
COUNTED(chown, (const char *path, uid_t user, gid_t group), (path, user, group),
        AT_FDCWD, path)
COUNTED(lchown, (const char *path, uid_t user, gid_t group), (path, user, group),
        AT_FDCWD, path)
COUNTED(fchownat, (int at, const char *path, uid_t user, gid_t group, int flags),
        (at, path, user, group, flags), at, path)
COUNTED(utimensat, (int at, const char *path, const struct timespec times[2], int flags),
        (at, path, times, flags), at, path)
/* clang-format on */

EXPORT DIR *opendir(const char *path)
{
    DIR *directory = REAL(opendir)(path);
    count_name(directory != NULL ? 0 : -1, AT_FDCWD, path);
    return directory;
}

EXPORT int chdir(const char *path)
{
    int answer = REAL(chdir)(path);
    forget_directory();
    return answer;
}

EXPORT int fchdir(int fd)
{
    int answer = REAL(fchdir)(fd);
    forget_directory();
    return answer;
}
