/* SPDX-License-Identifier: MIT
 *
 * The data path of a mount: the kernel's requests in, calls of the backing file system
 * out.
 *
 *   session.c      mounts, serves, ends; what Python calls
 *   io.c           reads requests from the kernel and writes answers to it;
 *                  readers.c chooses the threads that wait for requests
 *   names.c        look-ups, creation, removal, renaming
 *   attributes.c   status, modes, times, extended attributes
 *   files.c        open files: read, write, sync ...
 *   folders.c      open folders
 *   inodes.c       the files that the kernel knows
 *   credentials.c  the rights of a thread
 *   gate.c         scheduler, limits and counts of reads and writes;
 *                  limiter.c, meter.c and pool.c belong to it
 *   metadata.c     scheduler and counts of metadata requests; operations.c limits
 *                  them, replies.c sends delayed answers
 *   classify.c     which application a request belongs to
 *
 * A request is served in the thread of libfuse that read it, unless it has to wait at
 * the gate. No lock of Python is taken, except to ask for the application of an unknown
 * process and by schedulers that are written in Python.
 */
#ifndef PENSTOCK_MOUNT_H
#define PENSTOCK_MOUNT_H

#define FUSE_USE_VERSION 312

#include "classify.h"
#include "credentials.h"
#include "gate.h"
#include "inodes.h"
#include "opens.h"
#include "operations.h"

#include <fuse3/fuse_lowlevel.h>

/* How long the kernel may keep names and attributes. */
#define CACHE_S 1.0

/* The metadata requests that are counted, by name. */
/* clang-format off */
#define OPERATIONS(X)                                                                  \
    X(lookup) X(getattr) X(setattr) X(readlink) X(mknod) X(mkdir) X(unlink) X(rmdir)   \
    X(symlink) X(rename) X(link) X(open) X(create) X(flush) X(release) X(fsync)        \
    X(opendir) X(readdir) X(releasedir) X(fsyncdir) X(statfs) X(setxattr) X(getxattr)  \
    X(listxattr) X(removexattr) X(fallocate) X(lseek)
/* clang-format on */

enum operation {
#define X(name) OPERATION_##name,
    OPERATIONS(X)
#undef X
        OPERATION_COUNT
};

struct mount {
    struct inodes inodes;
    struct opens opens;
    struct gate gate;     /* of reads, writes and syncs */
    struct gate metadata; /* of metadata requests; it has no limits */
    struct classifier classifier;
    struct operations operations;
    struct fuse_session *session;
    void (*report_ready)(void); /* called at the first request; or NULL */
    bool is_local; /* The backing file system reports no errors at close(). */
    /* The thread in fuse_session_loop_mt(); under the mutex of the gate. */
    pthread_t loop;
    bool is_serving;
    _Atomic int64_t counts[OPERATION_COUNT];
    _Atomic int transfers;      /* reads and writes in threads of libfuse */
    _Atomic int own_operations; /* metadata requests in threads of libfuse */
    /* The application that has replaced another one in open files. */
    int replaced_by[MAX_APPLICATIONS];
};

struct operation_request;

/* What io.c knows about the request that this thread serves. */
struct present_request {
    bool removes_set_id; /* It must remove set-user-ID bits. */
    double answer_at_s;  /* when it may be answered; 0: now */
    const void *data;    /* the request as it was read */
    size_t size;
    int fd;                              /* from which it was read */
    struct operation_request *operation; /* metadata.c; NULL: not ordered */
    /* The number of a metadata request that is not ordered, 0: none; its mount. */
    uint64_t unordered;
    struct mount *mount;
};
extern __thread struct present_request present_request;

extern const struct fuse_custom_io mount_io;

/* Tell io.c that a new session begins. */
void io_begin(void);

static inline struct mount *mount_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* Return whose budget a file counts in that this request opens. */
static inline uid_t owner_of(fuse_req_t req)
{
    return opens_owner(&mount_of(req)->opens, fuse_req_ctx(req)->uid);
}

static inline struct inode *inode_of(struct mount *mount, fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID ? &mount->inodes.root : (struct inode *)ino;
}

/* Begin a metadata request on an inode, or on a name in it: count it, and ask the
 * scheduler. Return its application. If this is negative, the handler must return at
 * once: the request has to wait, or was answered. `locked`: the kernel holds the lock
 * of the inode meanwhile. begin_operation_in_two() is for a request for which it holds
 * the lock of a second inode, too. */
int begin_operation(fuse_req_t req, enum operation operation, struct inode *inode,
                    const char *name, bool locked);
int begin_operation_in_two(fuse_req_t req, enum operation operation,
                           struct inode *inode, const char *name, struct inode *second);

/* Count a request that is not charged to an application. */
void count_only(fuse_req_t req, enum operation operation);

/* Answer with the look-up of a file. */
void reply_entry(fuse_req_t req, struct inode *parent, const char *name,
                 struct stat *status);

void set_name_handlers(struct fuse_lowlevel_ops *handlers);
void set_attribute_handlers(struct fuse_lowlevel_ops *handlers);
void set_file_handlers(struct fuse_lowlevel_ops *handlers);
void set_folder_handlers(struct fuse_lowlevel_ops *handlers);

#endif
