/* SPDX-License-Identifier: MIT
 *
 * Requests about open folders.
 */
#include "mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct open_folder {
    DIR *stream;
    off_t at;            /* position of `next` */
    struct dirent *next; /* read, but not passed to the kernel yet; or NULL */
    uid_t owner;         /* whose budget it counts in */
};

static struct open_folder *open_folder_of(const struct fuse_file_info *info)
{
    return (struct open_folder *)info->fh;
}

/* Open a folder. Return NULL and set errno if it fails. */
static struct open_folder *new_folder(struct mount *mount, struct inode *inode)
{
    int fd = inodes_open(&mount->inodes, inode, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    struct open_folder *folder = calloc(1, sizeof(*folder));
    DIR *stream = folder ? fdopendir(fd) : NULL;
    if (!stream) {
        int error = errno;
        free(folder);
        close(fd);
        errno = error;
        return NULL;
    }
    folder->stream = stream;
    return folder;
}

static void close_folder(struct mount *mount, struct open_folder *folder)
{
    closedir(folder->stream);
    opens_give_back(&mount->opens, folder->owner);
    free(folder);
}

static void open_inode(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    uid_t owner = owner_of(req);
    if (begin_operation(req, OPERATION_opendir, inode, NULL, false) < 0)
        return;
    if (!opens_take(&mount->opens, owner)) {
        fuse_reply_err(req, ENFILE);
        return;
    }
    struct open_folder *folder = new_folder(mount, inode);
    if (!folder) {
        int error = errno;
        opens_give_back(&mount->opens, owner);
        fuse_reply_err(req, error);
        return;
    }
    folder->owner = owner;
    info->fh = (uint64_t)folder;
    if (fuse_reply_open(req, info))
        close_folder(mount, folder);
}

static void release_folder(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    (void)ino;
    count_only(req, OPERATION_releasedir);
    close_folder(mount_of(req), open_folder_of(info));
    fuse_reply_err(req, 0);
}

static void sync_folder(fuse_req_t req, fuse_ino_t ino, int data_only,
                        struct fuse_file_info *info)
{
    (void)ino;
    count_only(req, OPERATION_fsyncdir);
    int fd = dirfd(open_folder_of(info)->stream);
    int result = data_only ? fdatasync(fd) : fsync(fd);
    fuse_reply_err(req, result ? errno : 0);
}

/* --- Reading ---------------------------------------------------------------------- */

/* A buffer of entries for the kernel. */
struct listing {
    fuse_req_t req;
    char *data;
    size_t size, used;
    bool has_attributes;
};

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Look up an entry for the kernel. Return its inode, or NULL if it has none: for "."
 * and "..", and for a name that is gone. */
static struct inode *look_up_entry(struct listing *listing, struct inode *parent,
                                   int parent_fd, const char *name,
                                   struct fuse_entry_param *entry)
{
    struct mount *mount = mount_of(listing->req);
    struct stat status;
    if (is_dots(name) || fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW))
        return NULL;
    struct inode *inode = inodes_look_up(&mount->inodes, parent, name, &status);
    if (!inode)
        return NULL;
    entry->ino = inode == &mount->inodes.root ? FUSE_ROOT_ID : (fuse_ino_t)inode;
    entry->attr = status;
    entry->attr_timeout = entry->entry_timeout = CACHE_S;
    return inode;
}

/* Add an entry; return false if there is no room. */
static bool add(struct listing *listing, struct inode *parent, int parent_fd,
                const struct dirent *found)
{
    struct fuse_entry_param entry = {
        .attr = {.st_ino = found->d_ino, .st_mode = DTTOIF(found->d_type)}};
    char *place = listing->data + listing->used;
    size_t room = listing->size - listing->used, need;
    struct inode *inode = NULL;
    if (listing->has_attributes) {
        inode = look_up_entry(listing, parent, parent_fd, found->d_name, &entry);
        need = fuse_add_direntry_plus(listing->req, place, room, found->d_name, &entry,
                                      found->d_off);
    } else {
        need = fuse_add_direntry(listing->req, place, room, found->d_name, &entry.attr,
                                 found->d_off);
    }
    if (need > room) {
        if (inode)
            inodes_forget(&mount_of(listing->req)->inodes, inode, 1);
        return false;
    }
    listing->used += need;
    return true;
}

/* Fill a listing from a position on. Return 0 or an error number. */
static int fill(struct listing *listing, struct inode *inode,
                struct open_folder *folder, off_t at)
{
    if (at != folder->at) {
        seekdir(folder->stream, at);
        folder->next = NULL;
        folder->at = at;
    }
    int fd = dirfd(folder->stream);
    while (true) {
        if (!folder->next) {
            errno = 0;
            folder->next = readdir(folder->stream);
        }
        if (!folder->next)
            return errno;
        if (!add(listing, inode, fd, folder->next))
            return 0;
        folder->at = folder->next->d_off;
        folder->next = NULL;
    }
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at,
                 struct fuse_file_info *info, bool has_attributes)
{
    struct inode *inode = inode_of(mount_of(req), ino);
    if (begin_operation(req, OPERATION_readdir, inode, NULL, true) < 0)
        return;
    struct listing listing = {.req = req,
                              .data = malloc(size),
                              .size = size,
                              .has_attributes = has_attributes};
    int error = ENOMEM;
    if (listing.data)
        error = fill(&listing, inode, open_folder_of(info), at);
    /* Entries are counted as look-ups, so the kernel must get them. It asks for the
     * rest in another request, which meets the error again. */
    if (error && !listing.used)
        fuse_reply_err(req, error);
    else
        fuse_reply_buf(req, listing.data, listing.used);
    free(listing.data);
}

static void list_names(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at,
                       struct fuse_file_info *info)
{
    list(req, ino, size, at, info, false);
}

static void list_entries(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at,
                         struct fuse_file_info *info)
{
    list(req, ino, size, at, info, true);
}

void set_folder_handlers(struct fuse_lowlevel_ops *handlers)
{
    handlers->opendir = open_inode;
    handlers->readdir = list_names;
    handlers->readdirplus = list_entries;
    handlers->fsyncdir = sync_folder;
    handlers->releasedir = release_folder;
}
