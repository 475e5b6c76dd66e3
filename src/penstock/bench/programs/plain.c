/* SPDX-License-Identifier: MIT
 *
 * A minimal pass-through file system, as the baseline of a mount.
 *
 * plain BACKING MNT shows the plain files of a folder until it is unmounted. It does
 * what reading, writing, creating, looking up and removing files needs, in several
 * threads over libfuse's low-level interface, and nothing that costs more time: no
 * limits, no counts, no extended attributes, no folders, one user. The kernel checks
 * permissions (default_permissions), as at every mount for several users.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS = 1 << 16 };
#define CACHE_S 1.0

/* A file that the kernel knows. */
struct file {
    struct file *next;
    int fd; /* O_PATH */
    ino_t number;
    uint64_t lookups;
};

static int root_fd;
static struct file *buckets[BUCKETS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int fd_of(fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID ? root_fd : ((struct file *)ino)->fd;
}

/* Count a look-up of a file; takes over the descriptor. */
static struct file *remember(int fd, ino_t number)
{
    struct file **bucket = &buckets[number % BUCKETS], *file;
    pthread_mutex_lock(&mutex);
    for (file = *bucket; file && file->number != number;)
        file = file->next;
    if (file) {
        close(fd);
    } else {
        file = calloc(1, sizeof(*file));
        *file = (struct file){*bucket, fd, number, 0};
        *bucket = file;
    }
    file->lookups++;
    pthread_mutex_unlock(&mutex);
    return file;
}

static void forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
    struct file *file = (struct file *)ino, **place;
    pthread_mutex_lock(&mutex);
    if (ino != FUSE_ROOT_ID && !(file->lookups -= lookups)) {
        place = &buckets[file->number % BUCKETS];
        while (*place != file)
            place = &(*place)->next;
        *place = file->next;
        close(file->fd);
        free(file);
    }
    pthread_mutex_unlock(&mutex);
    fuse_reply_none(req);
}

/* Get the entry of a name. Return 0 or an error number. */
static int find(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    int fd = openat(fd_of(parent), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    *entry =
        (struct fuse_entry_param){.attr_timeout = CACHE_S, .entry_timeout = CACHE_S};
    if (fd < 0)
        return errno;
    if (fstat(fd, &entry->attr)) {
        close(fd);
        return errno;
    }
    entry->ino = (fuse_ino_t)remember(fd, entry->attr.st_ino);
    return 0;
}

static void look_up(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    int error = find(parent, name, &entry);
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_entry(req, &entry);
}

static void get_attributes(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct stat status;
    (void)info;
    if (fstat(fd_of(ino), &status))
        fuse_reply_err(req, errno);
    else
        fuse_reply_attr(req, &status, CACHE_S);
}

/* Of all attributes, only the size can be set. */
static void set_attributes(fuse_req_t req, fuse_ino_t ino, struct stat *new, int fields,
                           struct fuse_file_info *info)
{
    if (fields & FUSE_SET_ATTR_SIZE && info && ftruncate((int)info->fh, new->st_size))
        fuse_reply_err(req, errno);
    else
        get_attributes(req, ino, info);
}

static void open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd_of(ino));
    int fd = open(path, info->flags & ~(O_DIRECT | O_NOFOLLOW | O_APPEND));
    info->fh = (uint64_t)fd;
    if (fd < 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_open(req, info);
}

static void create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                   struct fuse_file_info *info)
{
    struct fuse_entry_param entry;
    int flags = (info->flags & ~(O_DIRECT | O_APPEND)) | O_CREAT;
    int fd = openat(fd_of(parent), name, flags, mode);
    int error = fd < 0 ? errno : find(parent, name, &entry);
    info->fh = (uint64_t)fd;
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_create(req, &entry, info);
}

static void remove_name(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    fuse_reply_err(req, unlinkat(fd_of(parent), name, 0) ? errno : 0);
}

static void read_file(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at,
                      struct fuse_file_info *info)
{
    static __thread char *buffer;
    (void)ino;
    if (!buffer)
        buffer = malloc(1 << 20);
    ssize_t got = pread((int)info->fh, buffer, size, at);
    if (got < 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_buf(req, buffer, (size_t)got);
}

static void write_file(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
                       off_t at, struct fuse_file_info *info)
{
    (void)ino;
    ssize_t put = pwrite((int)info->fh, data, size, at);
    if (put < 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_write(req, (size_t)put);
}

static void release_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    (void)ino;
    close((int)info->fh);
    fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops handlers = {
    .lookup = look_up,
    .forget = forget,
    .getattr = get_attributes,
    .setattr = set_attributes,
    .open = open_file,
    .create = create,
    .unlink = remove_name,
    .read = read_file,
    .write = write_file,
    .release = release_file,
};

int main(int count, char **words)
{
    char *options[] = {words[0], "-o",
                       "subtype=plain,fsname=plain,default_permissions"};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, options);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (count != 3 || (root_fd = open(words[1], O_PATH | O_DIRECTORY)) < 0) {
        fprintf(stderr, "usage: plain BACKING MNT\n");
        return 2;
    }
    fuse_loop_cfg_set_clone_fd(config, 1);
    struct fuse_session *session =
        fuse_session_new(&arguments, &handlers, sizeof(handlers), NULL);
    if (!session || fuse_session_mount(session, words[2]))
        return 1;
    return fuse_session_loop_mt(session, config) ? 1 : 0;
}
