/* SPDX-License-Identifier: MIT
 *
 * Reading requests and writing answers, between libfuse and the kernel.
 *
 * libfuse 3.14 lacks three things. (1) Removal of set-user-ID bits and capabilities by
 * the file system (FUSE_HANDLE_KILLPRIV_V2); without it the kernel asks for an extended
 * attribute before every write. It is switched on in the answer to the first request,
 * and each request says whether bits must go. (2) Look-ups in one folder at the same
 * time (FUSE_PARALLEL_DIROPS): libfuse has an option, but does not tell the kernel. It
 * is switched on in the same answer. (3) Nothing in libfuse can answer later without
 * keeping all arguments of the request; here the answer is a sequence of bytes.
 */
#include "metadata.h"
#include "readers.h"
#include "replies.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

__thread struct present_request present_request;

/* Only the first request and its answer use these, before there are other threads. */
static bool is_first_answer;
static uint32_t offered; /* flags of the kernel */
/* Flags that are switched on here, if the kernel offers them. */
#define WANTED_FLAGS (FUSE_HANDLE_KILLPRIV_V2 | FUSE_PARALLEL_DIROPS)

#define MAX_DESCRIPTORS 4096
/* Descriptor of libfuse -> its duplicate, 0: none. */
static _Atomic int duplicates[MAX_DESCRIPTORS];

void io_begin(void)
{
    offered = 0;
    is_first_answer = true;
    for (int fd = 0; fd < MAX_DESCRIPTORS; fd++) {
        int own = atomic_exchange(&duplicates[fd], 0);
        if (own)
            close(own);
    }
}

/* Return a duplicate of a descriptor that stays open. libfuse closes its own ones when
 * the mount ends. An answer that is written later would go to the file that has got the
 * number meanwhile. */
static int lasting_descriptor(int fd)
{
    if (fd < 0 || fd >= MAX_DESCRIPTORS)
        return fd;
    int own = atomic_load(&duplicates[fd]);
    if (own)
        return own;
    int made = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (made < 0)
        return fd;
    if (atomic_compare_exchange_strong(&duplicates[fd], &own, made))
        return made;
    close(made);
    return own;
}

/* Return true if a request must remove set-user-ID bits. */
static bool must_remove_set_id(const struct fuse_in_header *header)
{
    const void *argument = header + 1;
    switch (header->opcode) {
    case FUSE_WRITE:
        return ((const struct fuse_write_in *)argument)->write_flags &
               FUSE_WRITE_KILL_SUIDGID;
    case FUSE_SETATTR:
        return ((const struct fuse_setattr_in *)argument)->valid & FATTR_KILL_SUIDGID;
    case FUSE_OPEN:
        return ((const struct fuse_open_in *)argument)->open_flags &
               FUSE_OPEN_KILL_SUIDGID;
    case FUSE_CREATE:
        return ((const struct fuse_create_in *)argument)->open_flags &
               FUSE_OPEN_KILL_SUIDGID;
    default:
        return false;
    }
}

static ssize_t read_request(int fd, void *buffer, size_t size, void *userdata)
{
    (void)userdata;
    ssize_t got = read_in_turn(fd, buffer, size);
    const struct fuse_in_header *header = buffer;
    present_request =
        (struct present_request){.data = buffer, .fd = lasting_descriptor(fd)};
    if (got < (ssize_t)sizeof(*header))
        return got;
    if (header->opcode == FUSE_INIT) {
        const struct fuse_init_in *init = (const void *)(header + 1);
        offered = init->flags;
    }
    present_request.size = (size_t)got;
    present_request.removes_set_id = must_remove_set_id(header);
    set_removal_of_set_id(present_request.removes_set_id);
    return got;
}

static ssize_t write_answer(int fd, struct iovec *parts, int count, void *userdata)
{
    (void)userdata;
    if (is_first_answer && count > 1) {
        is_first_answer = false;
        struct fuse_init_out *init = parts[1].iov_base;
        init->flags |= offered & WANTED_FLAGS;
    }
    const struct fuse_out_header *header = parts[0].iov_base;
    int read_from = end_operation(header->unique);
    int lasting = read_from >= 0 ? read_from : lasting_descriptor(fd);
    double due_s = present_request.answer_at_s;
    present_request.answer_at_s = 0.0;
    if (due_s > 0.0 && reply_at(due_s, lasting, parts, count)) {
        ssize_t size = 0;
        for (int i = 0; i < count; i++)
            size += (ssize_t)parts[i].iov_len;
        return size;
    }
    return writev(lasting, parts, count);
}

const struct fuse_custom_io mount_io = {.read = read_request, .writev = write_answer};
