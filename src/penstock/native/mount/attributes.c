/* SPDX-License-Identifier: MIT
 *
 * Requests about attributes: status, mode, owner, size, times, extended attributes.
 */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "files.h"

/* The path of a descriptor: calls without an "at" variant reach the file by it. */
struct fd_path {
    char text[32];
};

static struct fd_path path_of(int fd)
{
    struct fd_path path;
    snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
    return path;
}

static void get_attributes(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    struct stat status;
    /* The kernel asks for the permissions of a folder while it is locked, too. */
    if (begin_operation(req, OPERATION_getattr, inode, NULL, S_ISDIR(inode->type)) < 0)
        return;
    int error;
    if (info && info->fh) {
        error = fstat(open_file_of(info)->fd, &status) ? errno : 0;
        inodes_show(inode, &status);
    } else {
        error = inodes_stat(&mount->inodes, inode, &status);
    }
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_attr(req, &status, CACHE_S);
}

static struct timespec new_time(const struct timespec *time, int set, int to_now)
{
    if (to_now)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    return set ? *time : (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int set_times(const char *path, const struct stat *new, int fields)
{
    struct timespec times[2] = {
        new_time(&new->st_atim, fields & FUSE_SET_ATTR_ATIME,
                 fields & FUSE_SET_ATTR_ATIME_NOW),
        new_time(&new->st_mtim, fields & FUSE_SET_ATTR_MTIME,
                 fields & FUSE_SET_ATTR_MTIME_NOW),
    };
    return utimensat(AT_FDCWD, path, times, 0);
}

/* Set the given fields. `file` is the descriptor of an open file, or -1. */
static int set_fields(int fd, int file, const struct stat *new, int fields)
{
    struct fd_path path = path_of(fd);
    if (fields & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
        uid_t uid = fields & FUSE_SET_ATTR_UID ? new->st_uid : (uid_t)-1;
        gid_t gid = fields & FUSE_SET_ATTR_GID ? new->st_gid : (gid_t)-1;
        if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
            return errno;
    }
    if (fields & FUSE_SET_ATTR_MODE && chmod(path.text, new->st_mode & 07777))
        return errno;
    if (fields & FUSE_SET_ATTR_SIZE) {
        if (file >= 0 ? ftruncate(file, new->st_size)
                      : truncate(path.text, new->st_size))
            return errno;
    }
    int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
                FUSE_SET_ATTR_MTIME_NOW;
    if (fields & times && set_times(path.text, new, fields))
        return errno;
    return 0;
}

static void set_attributes(fuse_req_t req, fuse_ino_t ino, struct stat *new, int fields,
                           struct fuse_file_info *info)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    struct stat status;
    if (begin_operation(req, OPERATION_setattr, inode, NULL, true) < 0)
        return;
    int fd = inodes_use(&mount->inodes, inode);
    if (fd < 0) {
        fuse_reply_err(req, -fd);
        return;
    }
    int file = info && info->fh ? open_file_of(info)->fd : -1;
    int error = set_fields(fd, file, new, fields);
    if (!error && fstat(fd, &status))
        error = errno;
    inodes_done(&mount->inodes, inode);
    inodes_show(inode, &status);
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_attr(req, &status, CACHE_S);
}

static void get_file_system(fuse_req_t req, fuse_ino_t ino)
{
    struct mount *mount = mount_of(req);
    struct statvfs status;
    (void)ino;
    if (begin_operation(req, OPERATION_statfs, &mount->inodes.root, NULL, false) < 0)
        return;
    if (fstatvfs(mount->inodes.root.fd, &status))
        fuse_reply_err(req, errno);
    else
        fuse_reply_statfs(req, &status);
}

/* --- Extended attributes ---------------------------------------------------------- */

/* Answer with a value, or with its size if the kernel asked for the size only. */
static void reply_value(fuse_req_t req, const char *value, ssize_t length, size_t size)
{
    if (length < 0)
        fuse_reply_err(req, errno);
    else if (!size)
        fuse_reply_xattr(req, (size_t)length);
    else
        fuse_reply_buf(req, value, (size_t)length);
}

/* Get the value of `name`, or all names if it is NULL. */
static void get_values(fuse_req_t req, enum operation operation, fuse_ino_t ino,
                       const char *name, size_t size)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    if (begin_operation(req, operation, inode, NULL, false) < 0)
        return;
    char *value = size ? malloc(size) : NULL;
    int fd = inodes_use(&mount->inodes, inode);
    if (fd < 0 || (size && !value)) {
        fuse_reply_err(req, fd < 0 ? -fd : ENOMEM);
    } else {
        struct fd_path path = path_of(fd);
        ssize_t length = name ? getxattr(path.text, name, value, size)
                              : listxattr(path.text, value, size);
        reply_value(req, value, length, size);
    }
    if (fd >= 0)
        inodes_done(&mount->inodes, inode);
    free(value);
}

static void get_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    get_values(req, OPERATION_getxattr, ino, name, size);
}

static void list_xattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    get_values(req, OPERATION_listxattr, ino, NULL, size);
}

static void set_xattr(fuse_req_t req, fuse_ino_t ino, const char *name,
                      const char *value, size_t size, int flags)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    if (begin_operation(req, OPERATION_setxattr, inode, NULL, true) < 0)
        return;
    int fd = inodes_use(&mount->inodes, inode);
    int error = fd < 0 ? -fd : 0;
    if (!error) {
        error = setxattr(path_of(fd).text, name, value, size, flags) ? errno : 0;
        inodes_done(&mount->inodes, inode);
    }
    fuse_reply_err(req, error);
}

static void remove_xattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    if (begin_operation(req, OPERATION_removexattr, inode, NULL, true) < 0)
        return;
    int fd = inodes_use(&mount->inodes, inode);
    int error = fd < 0 ? -fd : 0;
    if (!error) {
        error = removexattr(path_of(fd).text, name) ? errno : 0;
        inodes_done(&mount->inodes, inode);
    }
    fuse_reply_err(req, error);
}

void set_attribute_handlers(struct fuse_lowlevel_ops *handlers)
{
    handlers->getattr = get_attributes;
    handlers->setattr = set_attributes;
    handlers->statfs = get_file_system;
    handlers->getxattr = get_xattr;
    handlers->listxattr = list_xattr;
    handlers->setxattr = set_xattr;
    handlers->removexattr = remove_xattr;
}
