/* SPDX-License-Identifier: MIT
 *
 * Copies inside the kernel, POSIX aio, and system calls by number (syscall(), prctl()).
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "shim.h"

/* --- Copies --------------------------------------------------------------------- */

/* A copy may be as large as a file. While it is paced, one call moves at most this
 * much: callers must expect a short count anyway. */
enum { COPY_MAX_BYTES = 4 << 20 };

/* A copy reads one descriptor and writes another; each may be controlled or not. */
struct copy {
    struct paced_call reading;
    struct paced_call writing;
    bool is_refused; /* with errno */
};

static bool has_bucket(const struct paced_call *call)
{
    return call->class != NULL && call->bucket != NULL;
}

/* A judged call takes its bucket only when it ends. */
static bool is_paced(const struct paced_call *call, enum io_class class)
{
    return has_bucket(call) ||
           (call->class != NULL && call->judged && pace_has_limit(class));
}

static struct copy copy_begin(int from, int to, size_t *size)
{
    struct copy copy;
    wrap_begin_read(&copy.reading, from, *size);
    copy.is_refused = !wrap_begin(&copy.writing, to, CLASS_WRITE);
    bool paced =
        is_paced(&copy.reading, CLASS_READ) || is_paced(&copy.writing, CLASS_WRITE);
    if (paced && *size > COPY_MAX_BYTES)
        *size = COPY_MAX_BYTES;
    return copy;
}

static ssize_t copy_end(struct copy *copy, ssize_t moved)
{
    wrap_end(&copy->reading, moved);
    /* A signal that ended the wait of the one side also ends that of the other. */
    if (has_bucket(&copy->reading) && has_bucket(&copy->writing))
        copy->writing.interrupted |= copy->reading.interrupted;
    return wrap_end(&copy->writing, moved);
}

EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    struct copy copy = copy_begin(from, to, &size);
    return copy_end(&copy,
                    copy.is_refused ? -1 : REAL(sendfile)(to, from, offset, size));
}

EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
    struct copy copy = copy_begin(from, to, &size);
    return copy_end(&copy,
                    copy.is_refused ? -1 : REAL(sendfile64)(to, from, offset, size));
}

EXPORT ssize_t copy_file_range(int from, off64_t *from_offset, int to,
                               off64_t *to_offset, size_t size, unsigned flags)
{
    struct copy copy = copy_begin(from, to, &size);
    return copy_end(&copy, copy.is_refused
                               ? -1
                               : REAL(copy_file_range)(from, from_offset, to, to_offset,
                                                       size, flags));
}

EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset,
                      size_t size, unsigned flags)
{
    struct copy copy = copy_begin(from, to, &size);
    return copy_end(&copy, copy.is_refused ? -1
                                           : REAL(splice)(from, from_offset, to,
                                                          to_offset, size, flags));
}

/* --- POSIX aio ------------------------------------------------------------------ */

/* A request is charged when it is submitted. The submitter waits until the requests
 * before it are granted, not for its own bytes: libc carries it out later, in a thread
 * of its own, on the file itself. */
static bool aio_begin(struct paced_call *call, int fd, enum io_class class, size_t size)
{
    call->class = NULL;
    if (!identity_is_controlled(fd))
        return true;
    call->fd = fd;
    if (!wrap_write_through(fd, class))
        return false;
    pace_begin_async(call, class, size);
    return true;
}

static int aio_submitted(struct paced_call *call, int answer, size_t size)
{
    if (call->class != NULL)
        pace_end_async(call, answer == 0 ? size : 0);
    return answer;
}

EXPORT int aio_write(struct aiocb *request)
{
    struct paced_call call;
    if (!aio_begin(&call, request->aio_fildes, CLASS_WRITE, request->aio_nbytes))
        return -1;
    return aio_submitted(&call, REAL(aio_write)(request), request->aio_nbytes);
}

EXPORT int aio_write64(struct aiocb64 *request)
{
    struct paced_call call;
    if (!aio_begin(&call, request->aio_fildes, CLASS_WRITE, request->aio_nbytes))
        return -1;
    return aio_submitted(&call, REAL(aio_write64)(request), request->aio_nbytes);
}

EXPORT int aio_read(struct aiocb *request)
{
    struct paced_call call;
    aio_begin(&call, request->aio_fildes, CLASS_READ, request->aio_nbytes);
    return aio_submitted(&call, REAL(aio_read)(request), request->aio_nbytes);
}

EXPORT int aio_read64(struct aiocb64 *request)
{
    struct paced_call call;
    aio_begin(&call, request->aio_fildes, CLASS_READ, request->aio_nbytes);
    return aio_submitted(&call, REAL(aio_read64)(request), request->aio_nbytes);
}

/* False, with errno: none of the requests is submitted. */
static bool submit_one(const struct aiocb *request)
{
    struct paced_call call;
    if (request == NULL || request->aio_lio_opcode == LIO_NOP)
        return true;
    enum io_class class =
        request->aio_lio_opcode == LIO_READ ? CLASS_READ : CLASS_WRITE;
    if (!aio_begin(&call, request->aio_fildes, class, request->aio_nbytes))
        return false;
    aio_submitted(&call, 0, request->aio_nbytes);
    return true;
}

EXPORT int lio_listio(int mode, struct aiocb *const requests[], int count,
                      struct sigevent *event)
{
    for (int i = 0; i < count; i++)
        if (!submit_one(requests[i]))
            return -1;
    return REAL(lio_listio)(mode, requests, count, event);
}

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64), "one layout for both");

EXPORT int lio_listio64(int mode, struct aiocb64 *const requests[], int count,
                        struct sigevent *event)
{
    for (int i = 0; i < count; i++)
        if (!submit_one((const struct aiocb *)requests[i]))
            return -1;
    return REAL(lio_listio64)(mode, requests, count, event);
}

/* --- System calls by number ----------------------------------------------------- */

/* The program installs a seccomp filter. */
static void note_seccomp(void)
{
    stage_write_through_all();
    atomic_store(&seccomp_active, true);
}

static void note_bypass(void)
{
    if (attached_page != NULL)
        ADD(attached_page->bypass_setups, 1);
}

EXPORT int prctl(int option, ...)
{
    unsigned long rest[4];
    va_list arguments;
    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        rest[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (option == PR_SET_SECCOMP)
        note_seccomp();
    return REAL(prctl)(option, rest[0], rest[1], rest[2], rest[3]);
}

static bool writes_back(long number)
{
    return number == SYS_fsync || number == SYS_fdatasync ||
           number == SYS_sync_file_range || number == SYS_close;
}

/* Return true if a system call reads or writes the descriptor in its first argument. */
static bool moves_data(long number, enum io_class *class)
{
    switch (number) {
    case SYS_read:
    case SYS_pread64:
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
        *class = CLASS_READ;
        return true;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
        *class = CLASS_WRITE;
        return true;
    default:
        return false;
    }
}

/* Return true if a system call copies; get the positions of its descriptors and of its
 * size among its arguments. */
static bool copies_data(long number, int *from, int *to, int *size)
{
    bool sends = number == SYS_sendfile;
    *from = sends ? 1 : 0;
    *to = sends ? 0 : 2;
    *size = sends ? 3 : 4;
    return sends || number == SYS_copy_file_range || number == SYS_splice;
}

/* Note a system call that opens or closes descriptors, or that sets up I/O which cannot
 * be controlled. */
static void note_descriptors(long number, const long a[6], long answer)
{
    switch (number) {
    case SYS_openat:
    case SYS_dup:
#ifdef SYS_open
    case SYS_open:
#endif
#ifdef SYS_openat2
    case SYS_openat2:
#endif
        identity_forget((int)answer);
        break;
    case SYS_close:
        identity_forget((int)a[0]);
        break;
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup3:
        identity_forget((int)a[1]);
        break;
#ifdef SYS_close_range
    case SYS_close_range:
        identity_forget_range((unsigned)a[0], (unsigned)a[1]);
        break;
#endif
#ifdef SYS_io_uring_setup
    case SYS_io_uring_setup:
#endif
    case SYS_io_setup:
        note_bypass();
        break;
    default:
        break;
    }
}

/* Return true if a system call could see or change a staged file. Everything is drained
 * before such a call. */
static bool concerns_staging(long number)
{
    switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_close:
    case SYS_mmap:
    case SYS_dup:
    case SYS_dup3:
    case SYS_fcntl:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_flock:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_lseek:
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_utimensat:
    case SYS_fchmod:
    case SYS_fchmodat:
    case SYS_fchown:
    case SYS_fchownat:
    case SYS_fsetxattr:
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_openat:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_linkat:
    case SYS_clone:
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit:
    case SYS_exit_group:
    case SYS_io_setup:
#ifdef SYS_io_uring_setup
    case SYS_io_uring_setup:
#endif
#ifdef SYS_openat2
    case SYS_openat2:
#endif
#ifdef SYS_close_range
    case SYS_close_range:
#endif
#ifdef SYS_clone3
    case SYS_clone3:
#endif
    case SYS_truncate:
#ifdef SYS_open /* newer architectures do not have these */
    case SYS_open:
    case SYS_creat:
    case SYS_stat:
    case SYS_lstat:
    case SYS_dup2:
    case SYS_chmod:
    case SYS_chown:
    case SYS_lchown:
    case SYS_fork:
    case SYS_vfork:
    case SYS_rename:
    case SYS_unlink:
    case SYS_link:
#endif
        return true;
    default:
        return false;
    }
}

/* Return true if a system call changes what names, descriptors or rights mean. */
static bool changes_meaning(long number)
{
    return number == SYS_chroot || number == SYS_pivot_root || number == SYS_setns ||
           number == SYS_unshare;
}

static void prepare_staging(long number, const long a[6])
{
    if (concerns_staging(number))
        stage_write_through_all();
    if (changes_meaning(number))
        stage_stop();
    if (number == SYS_sendmsg)
        wrap_write_through_passed((const struct msghdr *)a[1]);
}

static bool installs_filter(long number, long operation)
{
    return number == SYS_seccomp ||
           (number == SYS_prctl && operation == PR_SET_SECCOMP);
}

static long pass_through(long number, const long a[6])
{
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORT long syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (installs_filter(number, a[0]))
        note_seccomp();
    if (RARELY(LOAD(stage_enabled)))
        prepare_staging(number, a);
    enum io_class class;
    int from, to, size;
    if (moves_data(number, &class)) {
        struct paced_call call;
        if (!wrap_begin(&call, (int)a[0], class))
            return -1;
        return wrap_end(&call, pass_through(number, a));
    }
    if (copies_data(number, &from, &to, &size)) {
        struct copy copy = copy_begin((int)a[from], (int)a[to], (size_t *)&a[size]);
        return copy_end(&copy, copy.is_refused ? -1 : pass_through(number, a));
    }
    struct paced_call call;
    wrap_begin_sync(&call, writes_back(number) ? (int)a[0] : -1);
    long answer = pass_through(number, a);
    wrap_end_sync(&call, 0);
    note_descriptors(number, a, answer);
    return answer;
}
