/* SPDX-License-Identifier: MIT
 *
 * Requests about names in folders.
 */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void reply_entry(fuse_req_t req, struct inode *parent, const char *name,
                 struct stat *status)
{
    struct mount *mount = mount_of(req);
    struct fuse_entry_param entry = {.attr_timeout = CACHE_S, .entry_timeout = CACHE_S};
    struct inode *inode = inodes_look_up(&mount->inodes, parent, name, status);
    if (!inode) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    entry.ino = inode == &mount->inodes.root ? FUSE_ROOT_ID : (fuse_ino_t)inode;
    entry.attr = *status;
    if (fuse_reply_entry(req, &entry))
        inodes_forget(&mount->inodes, inode, 1);
}

/* Answer with the look-up of a name. */
static void reply_name(fuse_req_t req, struct inode *parent, int parent_fd,
                       const char *name)
{
    struct stat status;
    if (fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW))
        fuse_reply_err(req, errno);
    else
        reply_entry(req, parent, name, &status);
}

/* Begin a request about a name, and return the descriptor of the folder. If this is
 * negative, the handler must return at once. `second`: another inode that the kernel
 * has locked, or NULL. */
static int begin_in_two(fuse_req_t req, enum operation operation, struct inode *parent,
                        const char *name, struct inode *second)
{
    if (begin_operation_in_two(req, operation, parent, name, second) < 0)
        return -1;
    int fd = inodes_use(&mount_of(req)->inodes, parent);
    if (fd < 0)
        fuse_reply_err(req, -fd);
    return fd;
}

static int begin(fuse_req_t req, enum operation operation, struct inode *parent,
                 const char *name)
{
    return begin_in_two(req, operation, parent, name, NULL);
}

static void look_up(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct mount *mount = mount_of(req);
    struct inode *parent = inode_of(mount, ino);
    int fd = begin(req, OPERATION_lookup, parent, name);
    if (fd < 0)
        return;
    reply_name(req, parent, fd, name);
    inodes_done(&mount->inodes, parent);
}

static void forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
    struct mount *mount = mount_of(req);
    inodes_forget(&mount->inodes, inode_of(mount, ino), lookups);
    fuse_reply_none(req);
}

static void forget_many(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    struct mount *mount = mount_of(req);
    for (size_t i = 0; i < count; i++)
        inodes_forget(&mount->inodes, inode_of(mount, forgets[i].ino),
                      forgets[i].nlookup);
    fuse_reply_none(req);
}

static void read_link(fuse_req_t req, fuse_ino_t ino)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    char target[PATH_MAX + 1];
    if (begin_operation(req, OPERATION_readlink, inode, NULL, false) < 0)
        return;
    int fd = inodes_use(&mount->inodes, inode);
    if (fd < 0) {
        fuse_reply_err(req, -fd);
        return;
    }
    ssize_t length = readlinkat(fd, "", target, sizeof(target));
    int error = length < 0 ? errno : length == sizeof(target) ? ENAMETOOLONG : 0;
    inodes_done(&mount->inodes, inode);
    if (error) {
        fuse_reply_err(req, error);
        return;
    }
    target[length] = '\0';
    fuse_reply_readlink(req, target);
}

/* --- Creation --------------------------------------------------------------------- */

static void make(fuse_req_t req, enum operation operation, fuse_ino_t ino,
                 struct creation file)
{
    struct mount *mount = mount_of(req);
    const struct fuse_ctx *context = fuse_req_ctx(req);
    struct creator creator = {context->uid, context->gid, context->umask};
    struct inode *parent = inode_of(mount, ino);
    file.parent_fd = begin(req, operation, parent, file.name);
    if (file.parent_fd < 0)
        return;
    int result = create_for(&creator, &file);
    if (result < 0)
        fuse_reply_err(req, -result);
    else
        reply_name(req, parent, file.parent_fd, file.name);
    inodes_done(&mount->inodes, parent);
}

static void make_node(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      dev_t device)
{
    struct creation file = {.name = name, .mode = mode, .device = device};
    make(req, OPERATION_mknod, parent, file);
}

static void make_folder(fuse_req_t req, fuse_ino_t parent, const char *name,
                        mode_t mode)
{
    struct creation file = {.name = name, .mode = (mode & ~(mode_t)S_IFMT) | S_IFDIR};
    make(req, OPERATION_mkdir, parent, file);
}

static void make_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
                         const char *name)
{
    struct creation file = {.name = name, .target = target};
    make(req, OPERATION_symlink, parent, file);
}

static void make_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent,
                      const char *name)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino), *parent = inode_of(mount, new_parent);
    int parent_fd = begin_in_two(req, OPERATION_link, parent, name, inode);
    if (parent_fd < 0)
        return;
    int fd = inodes_use(&mount->inodes, inode);
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd < 0)
        fuse_reply_err(req, -fd);
    else if (linkat(AT_FDCWD, path, parent_fd, name, AT_SYMLINK_FOLLOW))
        fuse_reply_err(req, errno);
    else
        reply_name(req, parent, parent_fd, name);
    if (fd >= 0)
        inodes_done(&mount->inodes, inode);
    inodes_done(&mount->inodes, parent);
}

/* --- Removal and renaming --------------------------------------------------------- */

static void remove_name(fuse_req_t req, enum operation operation, fuse_ino_t ino,
                        const char *name)
{
    struct mount *mount = mount_of(req);
    struct inode *parent = inode_of(mount, ino);
    int fd = begin(req, operation, parent, name);
    if (fd < 0)
        return;
    int flags = operation == OPERATION_rmdir ? AT_REMOVEDIR : 0;
    inodes_begin_change(&mount->inodes);
    struct inode *removed = inodes_before_removal(&mount->inodes, fd, name);
    int error = unlinkat(fd, name, flags) ? errno : 0;
    inodes_after_removal(&mount->inodes, removed, !error);
    inodes_end_change(&mount->inodes);
    fuse_reply_err(req, error);
    inodes_done(&mount->inodes, parent);
}

static void unlink_name(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, OPERATION_unlink, parent, name);
}

static void remove_folder(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, OPERATION_rmdir, parent, name);
}

/* A renaming: from one folder and name to another. */
struct renaming {
    struct inode *from, *to;
    int from_fd, to_fd;
    const char *name, *new_name;
    unsigned flags;
};

static int rename_in(struct mount *mount, const struct renaming *renaming)
{
    bool exchange = renaming->flags & RENAME_EXCHANGE;
    struct inode *replaced = NULL;
    if (!exchange)
        replaced =
            inodes_before_removal(&mount->inodes, renaming->to_fd, renaming->new_name);
    /* glibc has renameat2 only since 2.28. */
    long result = syscall(SYS_renameat2, renaming->from_fd, renaming->name,
                          renaming->to_fd, renaming->new_name, renaming->flags);
    int error = result ? errno : 0;
    /* A file that is renamed to another name of itself is not removed. */
    struct stat status;
    bool is_gone =
        !error && replaced &&
        (fstatat(renaming->to_fd, renaming->new_name, &status, AT_SYMLINK_NOFOLLOW) ||
         status.st_ino != replaced->number || status.st_dev != replaced->device);
    inodes_after_removal(&mount->inodes, replaced, is_gone);
    if (!error)
        inodes_renamed(&mount->inodes, renaming->to, renaming->to_fd,
                       renaming->new_name);
    if (!error && exchange)
        inodes_renamed(&mount->inodes, renaming->from, renaming->from_fd,
                       renaming->name);
    return error;
}

static void rename_name(fuse_req_t req, fuse_ino_t ino, const char *name,
                        fuse_ino_t new_ino, const char *new_name, unsigned flags)
{
    struct mount *mount = mount_of(req);
    struct renaming renaming = {.from = inode_of(mount, ino),
                                .to = inode_of(mount, new_ino),
                                .name = name,
                                .new_name = new_name,
                                .flags = flags};
    struct inode *second = renaming.to == renaming.from ? NULL : renaming.to;
    renaming.from_fd = begin_in_two(req, OPERATION_rename, renaming.from, name, second);
    if (renaming.from_fd < 0)
        return;
    renaming.to_fd = inodes_use(&mount->inodes, renaming.to);
    int error = -renaming.to_fd;
    if (renaming.to_fd >= 0) {
        inodes_begin_change(&mount->inodes);
        error = rename_in(mount, &renaming);
        inodes_end_change(&mount->inodes);
        inodes_done(&mount->inodes, renaming.to);
    }
    fuse_reply_err(req, error);
    inodes_done(&mount->inodes, renaming.from);
}

void set_name_handlers(struct fuse_lowlevel_ops *handlers)
{
    handlers->lookup = look_up;
    handlers->forget = forget;
    handlers->forget_multi = forget_many;
    handlers->readlink = read_link;
    handlers->mknod = make_node;
    handlers->mkdir = make_folder;
    handlers->symlink = make_symlink;
    handlers->link = make_link;
    handlers->unlink = unlink_name;
    handlers->rmdir = remove_folder;
    handlers->rename = rename_name;
}
