/* SPDX-License-Identifier: MIT */
#include "metadata.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

/* Most operations at a time in threads of libfuse; further ones run in the pool, so
 * that threads are left for reads and writes even if the storage does not answer. */
#define MAX_OPERATIONS 48

void count_only(fuse_req_t req, enum operation operation)
{
    atomic_fetch_add_explicit(&mount_of(req)->counts[operation], 1,
                              memory_order_relaxed);
}

/* Give a request to libfuse again, in a thread of the pool. */
static void run(struct passage *passage)
{
    struct operation_request *operation = (struct operation_request *)passage;
    struct fuse_buf buffer = {.size = operation->size, .mem = operation->data};
    present_request =
        (struct present_request){.removes_set_id = operation->removes_set_id,
                                 .answer_at_s = operation->answer_at_s,
                                 .operation = operation};
    set_removal_of_set_id(operation->removes_set_id);
    fuse_session_process_buf(operation->mount->session, &buffer);
    present_request = (struct present_request){.operation = NULL};
    free(operation);
}

/* Return the request of this thread for the gate; NULL if memory is short. */
static struct operation_request *new_operation(struct mount *mount, int application,
                                               bool is_urgent)
{
    struct operation_request *operation =
        malloc(sizeof(*operation) + present_request.size);
    if (!operation)
        return NULL;
    const struct fuse_in_header *header = present_request.data;
    *operation =
        (struct operation_request){.passage = {.kind = KIND_METADATA,
                                               .application = application,
                                               .is_urgent = is_urgent,
                                               .run = run},
                                   .mount = mount,
                                   .unique = header->unique,
                                   .fd = present_request.fd,
                                   .removes_set_id = present_request.removes_set_id,
                                   .answer_at_s = present_request.answer_at_s,
                                   .size = present_request.size};
    return operation;
}

/* Return true if an operation may run in the thread that has read it. */
static bool take_thread(struct mount *mount)
{
    if (atomic_fetch_add(&mount->own_operations, 1) < MAX_OPERATIONS)
        return true;
    atomic_fetch_sub(&mount->own_operations, 1);
    return false;
}

/* Keep the bytes of the request of this thread: it runs in the pool. */
static void keep_bytes(struct operation_request *operation)
{
    operation->is_in_pool = true;
    memcpy(operation->data, present_request.data, operation->size);
}

/* Begin the request of this thread, without a scheduler. Return false if it runs in the
 * pool. */
static bool begin_unordered(struct mount *mount)
{
    if (take_thread(mount)) {
        const struct fuse_in_header *header = present_request.data;
        present_request.unordered = header->unique;
        present_request.mount = mount;
        return true;
    }
    struct operation_request *operation = new_operation(mount, 0, false);
    if (!operation)
        return true;
    keep_bytes(operation);
    gate_run_in_pool(&mount->metadata, &operation->passage);
    return false;
}

/* Pass the request of this thread to the scheduler. Return false if it has to wait, or
 * runs in the pool. */
static bool may_go(struct mount *mount, int application, bool is_urgent)
{
    struct operation_request *operation = new_operation(mount, application, is_urgent);
    if (!operation)
        return true;
    bool is_sent = gate_enter(&mount->metadata, &operation->passage);
    if (is_sent && take_thread(mount)) {
        present_request.operation = operation;
        return true;
    }
    keep_bytes(operation);
    if (is_sent || gate_park(&mount->metadata, &operation->passage))
        gate_run_in_pool(&mount->metadata, &operation->passage);
    return false;
}

/* Return the application of a request that the scheduler has sent, or answer that the
 * mount ends and return -1. */
static int resume(fuse_req_t req, const struct passage *passage)
{
    if (!passage->is_refused)
        return passage->application;
    fuse_reply_err(req, ENOTCONN);
    return -1;
}

static int begin_with_locks(fuse_req_t req, enum operation number, struct inode *inode,
                            const char *name, const struct locks *locks)
{
    struct mount *mount = mount_of(req);
    if (present_request.operation)
        return resume(req, &present_request.operation->passage);
    count_only(req, number);
    if (!atomic_load_explicit(&mount->classifier.is_on, memory_order_relaxed)) {
        if (begin_unordered(mount))
            return 0;
        fuse_reply_none(req);
        return -1;
    }
    const struct fuse_ctx *context = fuse_req_ctx(req);
    int application = classify(&mount->classifier, &mount->inodes, inode, name,
                               context->pid, context->uid);
    bool is_shared;
    present_request.answer_at_s = operations_charge(&mount->operations, application,
                                                    locks, gate_now(), &is_shared);
    if (!may_go(mount, application, is_shared)) {
        fuse_reply_none(req);
        return -1;
    }
    if (present_request.operation)
        return resume(req, &present_request.operation->passage);
    return application;
}

int begin_operation(fuse_req_t req, enum operation number, struct inode *inode,
                    const char *name, bool locked)
{
    struct locks locks = {.inodes = {locked ? inode : NULL}};
    return begin_with_locks(req, number, inode, name, &locks);
}

int begin_operation_in_two(fuse_req_t req, enum operation number, struct inode *inode,
                           const char *name, struct inode *second)
{
    /* For a renaming the second inode is another folder. */
    struct locks locks = {.inodes = {inode, second},
                          .of_mount = number == OPERATION_rename && second};
    return begin_with_locks(req, number, inode, name, &locks);
}

int end_operation(uint64_t unique)
{
    if (present_request.unordered && present_request.unordered == unique) {
        present_request.unordered = 0;
        atomic_fetch_sub(&present_request.mount->own_operations, 1);
        return -1;
    }
    struct operation_request *operation = present_request.operation;
    if (!operation || operation->unique != unique)
        return -1;
    int fd = operation->fd;
    present_request.operation = NULL;
    if (operation->passage.is_counted)
        gate_leave(&operation->mount->metadata, &operation->passage, 0);
    /* libfuse still uses the bytes of a request in the pool. */
    if (operation->is_in_pool)
        return fd;
    atomic_fetch_sub(&operation->mount->own_operations, 1);
    free(operation);
    return fd;
}
