/* SPDX-License-Identifier: MIT
 *
 * Requests about open files. Reads, writes and syncs pass the gate.
 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Flags of open() that are not passed to the backing file. O_APPEND: the kernel gives
 * the position, and pages of a mapping must not be appended. O_DIRECT: buffers are not
 * aligned. */
#define NOT_PASSED (O_CREAT | O_EXCL | O_APPEND | O_DIRECT | O_NOFOLLOW | O_NOCTTY)
/* Most reads and writes at a time in threads of libfuse; further ones run in the pool,
 * so that threads are left for names and attributes. */
#define MAX_TRANSFERS 48

/* --- Opening and closing ---------------------------------------------------------- */

/* Return a new open file; `flags` are those of open(), `before` is from
 * inodes_before_open(). The kernel reads ahead for programs that use the mount. If it
 * did so below the mount as well, the storage would serve reads that no scheduler has
 * seen. */
static struct open_file *new_file(fuse_req_t req, int fd, int flags,
                                  struct inode *inode, int application, uint64_t before)
{
    struct open_file *file = malloc(sizeof(*file));
    if (!file)
        return NULL;
    *file = (struct open_file){fd, application, inode, owner_of(req)};
    if ((flags & O_ACCMODE) != O_WRONLY)
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    inodes_opened(&mount_of(req)->inodes, inode, fd, before);
    return file;
}

static void close_file(struct mount *mount, struct open_file *file)
{
    inodes_closed(&mount->inodes, file->inode);
    close(file->fd);
    opens_give_back(&mount->opens, file->owner);
    free(file);
}

/* Answer that a file was not opened, after the user's budget was charged for it. */
static void reply_not_opened(fuse_req_t req, int error)
{
    opens_give_back(&mount_of(req)->opens, owner_of(req));
    fuse_reply_err(req, error);
}

static void open_inode(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    struct mount *mount = mount_of(req);
    struct inode *inode = inode_of(mount, ino);
    int application = begin_operation(req, OPERATION_open, inode, NULL, false);
    if (application < 0)
        return;
    if (!opens_take(&mount->opens, owner_of(req))) {
        fuse_reply_err(req, ENFILE);
        return;
    }
    uint64_t before = inodes_before_open(&mount->inodes);
    int fd = inodes_open(&mount->inodes, inode, info->flags & ~NOT_PASSED);
    if (fd < 0) {
        reply_not_opened(req, -fd);
        return;
    }
    struct open_file *file = new_file(req, fd, info->flags, inode, application, before);
    if (!file) {
        close(fd);
        reply_not_opened(req, ENOMEM);
        return;
    }
    info->fh = (uint64_t)file;
    if (fuse_reply_open(req, info))
        close_file(mount, file);
}

/* Create a file, or open one that another program has created in the backing folder
 * meanwhile. Return a descriptor or minus an error number. */
static int create_or_open(fuse_req_t req, int parent_fd, const char *name, mode_t mode,
                          int flags)
{
    const struct fuse_ctx *context = fuse_req_ctx(req);
    struct creator creator = {context->uid, context->gid, context->umask};
    int passed = (flags & ~NOT_PASSED) | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    struct creation file = {.parent_fd = parent_fd,
                            .name = name,
                            .mode = mode,
                            .open_flags = passed | O_EXCL};
    int fd = create_for(&creator, &file);
    if (fd == -EEXIST && !(flags & O_EXCL)) {
        file.open_flags = passed;
        fd = create_for(&creator, &file);
    }
    return fd;
}

/* Answer with a created file; takes over the descriptor. */
static void reply_created(fuse_req_t req, struct inode *parent, const char *name,
                          int fd, int application, uint64_t before,
                          struct fuse_file_info *info)
{
    struct mount *mount = mount_of(req);
    struct fuse_entry_param entry = {.attr_timeout = CACHE_S, .entry_timeout = CACHE_S};
    struct inode *inode = NULL;
    struct open_file *file = NULL;
    if (!fstat(fd, &entry.attr))
        inode = inodes_look_up(&mount->inodes, parent, name, &entry.attr);
    if (inode)
        file = new_file(req, fd, info->flags, inode, application, before);
    if (!file) {
        close(fd);
        if (inode)
            inodes_forget(&mount->inodes, inode, 1);
        reply_not_opened(req, ENOMEM);
        return;
    }
    entry.ino = (fuse_ino_t)inode;
    info->fh = (uint64_t)file;
    if (fuse_reply_create(req, &entry, info)) {
        close_file(mount, file);
        inodes_forget(&mount->inodes, inode, 1);
    }
}

static void create(fuse_req_t req, fuse_ino_t ino, const char *name, mode_t mode,
                   struct fuse_file_info *info)
{
    struct mount *mount = mount_of(req);
    struct inode *parent = inode_of(mount, ino);
    int application = begin_operation(req, OPERATION_create, parent, name, true);
    if (application < 0)
        return;
    if (!opens_take(&mount->opens, owner_of(req))) {
        fuse_reply_err(req, ENFILE);
        return;
    }
    int parent_fd = inodes_use(&mount->inodes, parent);
    if (parent_fd < 0) {
        reply_not_opened(req, -parent_fd);
        return;
    }
    uint64_t before = inodes_before_open(&mount->inodes);
    int fd = create_or_open(req, parent_fd, name, mode, info->flags);
    if (fd < 0)
        reply_not_opened(req, -fd);
    else
        reply_created(req, parent, name, fd, application, before, info);
    inodes_done(&mount->inodes, parent);
}

/* close() of a program: network file systems report errors of earlier writes here. For
 * others the answer ENOSYS tells the kernel not to ask again. */
static void flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    (void)ino;
    count_only(req, OPERATION_flush);
    if (mount_of(req)->is_local) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    int copy = dup(open_file_of(info)->fd);
    fuse_reply_err(req, copy < 0 || close(copy) ? errno : 0);
}

static void release_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
    (void)ino;
    count_only(req, OPERATION_release);
    close_file(mount_of(req), open_file_of(info));
    fuse_reply_err(req, 0);
}

/* --- Reads, writes and syncs ------------------------------------------------------ */

struct transfer {
    struct passage passage;
    struct mount *mount;
    fuse_req_t req;
    int fd;
    off_t at;
    const char *data; /* to be written */
    char *copy;       /* of the data, if the request had to wait */
    bool removes_set_id;
    bool data_only; /* of a sync */
    bool is_out_of_memory;
};

/* Buffer of this thread for reads. */
static __thread char *read_buffer;
static __thread size_t read_buffer_size;

static char *buffer_of(size_t size)
{
    if (size > read_buffer_size) {
        free(read_buffer);
        read_buffer = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
        read_buffer_size = read_buffer ? size : 0;
    }
    return read_buffer;
}

/* Read all bytes up to the end of the file. Return their number, or minus an error. */
static ssize_t read_all(int fd, char *buffer, size_t size, off_t at)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, buffer + done, size - done, at + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return done ? (ssize_t)done : -errno;
        if (!got)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* Write all bytes. Return their number, fewer if a later part fails, or minus an error.
 * A file system that writes nothing and reports no error would write nothing again. */
static ssize_t write_all(int fd, const char *data, size_t size, off_t at)
{
    size_t done = 0;
    while (done < size) {
        ssize_t put = pwrite(fd, data + done, size - done, at + (off_t)done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return done ? (ssize_t)done : -errno;
        if (!put)
            return done ? (ssize_t)done : -EIO;
        done += (size_t)put;
    }
    return (ssize_t)done;
}

static ssize_t do_read(struct transfer *transfer, char **data)
{
    size_t size = (size_t)transfer->passage.limited.size_bytes;
    *data = buffer_of(size);
    return *data ? read_all(transfer->fd, *data, size, transfer->at) : -ENOMEM;
}

static ssize_t do_write(struct transfer *transfer)
{
    size_t size = (size_t)transfer->passage.limited.size_bytes;
    set_removal_of_set_id(transfer->removes_set_id);
    return write_all(transfer->fd, transfer->data, size, transfer->at);
}

static ssize_t do_sync(struct transfer *transfer)
{
    int result = transfer->data_only ? fdatasync(transfer->fd) : fsync(transfer->fd);
    return result ? -errno : 0;
}

static void answer(struct transfer *transfer, ssize_t result, const char *data)
{
    if (result < 0)
        fuse_reply_err(transfer->req, (int)-result);
    else if (transfer->passage.kind == KIND_READ)
        fuse_reply_buf(transfer->req, data, (size_t)result);
    else if (transfer->passage.kind == KIND_WRITE)
        fuse_reply_write(transfer->req, (size_t)result);
    else
        fuse_reply_err(transfer->req, 0);
}

/* Move the data of a request that may go, answer, and free it. */
static void run(struct passage *passage)
{
    struct transfer *transfer = (struct transfer *)passage;
    char *data = NULL;
    ssize_t result;
    if (passage->is_refused)
        result = -ENOTCONN;
    else if (transfer->is_out_of_memory)
        result = -ENOMEM;
    else if (passage->kind == KIND_READ)
        result = do_read(transfer, &data);
    else if (passage->kind == KIND_WRITE)
        result = do_write(transfer);
    else
        result = do_sync(transfer);
    gate_leave(&transfer->mount->gate, passage, result > 0 ? result : 0);
    answer(transfer, result, data);
    free(transfer->copy);
    free(transfer);
}

/* Let a request wait, or run in the pool if it may go but threads are short. */
static void hand_over(struct transfer *transfer, bool may_go)
{
    struct passage *passage = &transfer->passage;
    struct gate *gate = &transfer->mount->gate;
    if (transfer->data) {
        size_t size = (size_t)passage->limited.size_bytes;
        transfer->copy = malloc(size ? size : 1);
        if (transfer->copy)
            memcpy(transfer->copy, transfer->data, size);
        else
            transfer->is_out_of_memory = true;
        transfer->data = transfer->copy;
    }
    if (may_go || gate_park(gate, passage))
        gate_run_in_pool(gate, passage);
}

/* Start a request at the gate. */
static void start(struct transfer *transfer)
{
    struct mount *mount = transfer->mount;
    bool may_go = gate_enter(&mount->gate, &transfer->passage);
    if (may_go && atomic_fetch_add(&mount->transfers, 1) < MAX_TRANSFERS) {
        run(&transfer->passage);
        atomic_fetch_sub(&mount->transfers, 1);
        return;
    }
    if (may_go)
        atomic_fetch_sub(&mount->transfers, 1);
    hand_over(transfer, may_go);
}

/* Return a new request, or answer with an error and return NULL. */
static struct transfer *new_transfer(fuse_req_t req, struct fuse_file_info *info,
                                     enum kind kind, size_t size, off_t at)
{
    struct transfer *transfer = calloc(1, sizeof(*transfer));
    if (!transfer) {
        fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    struct open_file *file = open_file_of(info);
    transfer->mount = mount_of(req);
    transfer->req = req;
    transfer->fd = file->fd;
    transfer->at = at;
    transfer->passage.kind = kind;
    transfer->passage.application = transfer->mount->replaced_by[file->application];
    transfer->passage.limited.size_bytes = (int64_t)size;
    transfer->passage.run = run;
    return transfer;
}

static void read_file(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at,
                      struct fuse_file_info *info)
{
    (void)ino;
    struct transfer *transfer = new_transfer(req, info, KIND_READ, size, at);
    if (transfer)
        start(transfer);
}

static void write_file(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
                       off_t at, struct fuse_file_info *info)
{
    (void)ino;
    struct transfer *transfer = new_transfer(req, info, KIND_WRITE, size, at);
    if (!transfer)
        return;
    transfer->data = data;
    transfer->removes_set_id = present_request.removes_set_id;
    start(transfer);
}

static void sync_file(fuse_req_t req, fuse_ino_t ino, int data_only,
                      struct fuse_file_info *info)
{
    (void)ino;
    count_only(req, OPERATION_fsync);
    struct transfer *transfer = new_transfer(req, info, KIND_SYNC, 0, 0);
    if (!transfer)
        return;
    transfer->data_only = data_only;
    start(transfer);
}

/* --- Other requests --------------------------------------------------------------- */

static void allocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t at, off_t length,
                     struct fuse_file_info *info)
{
    struct inode *inode = inode_of(mount_of(req), ino);
    if (begin_operation(req, OPERATION_fallocate, inode, NULL, true) < 0)
        return;
    int fd = open_file_of(info)->fd;
    set_removal_of_set_id(fuse_req_ctx(req)->uid != 0);
    fuse_reply_err(req, fallocate(fd, mode, at, length) ? errno : 0);
}

static void seek(fuse_req_t req, fuse_ino_t ino, off_t at, int whence,
                 struct fuse_file_info *info)
{
    (void)ino;
    count_only(req, OPERATION_lseek);
    off_t result = lseek(open_file_of(info)->fd, at, whence);
    if (result < 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_lseek(req, result);
}

void set_file_handlers(struct fuse_lowlevel_ops *handlers)
{
    handlers->open = open_inode;
    handlers->create = create;
    handlers->flush = flush;
    handlers->release = release_file;
    handlers->read = read_file;
    handlers->write = write_file;
    handlers->fsync = sync_file;
    handlers->fallocate = allocate;
    handlers->lseek = seek;
}
