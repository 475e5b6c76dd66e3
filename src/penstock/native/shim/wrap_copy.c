/* SPDX-License-Identifier: MIT
 *
 * Calls that move data inside the kernel, or later: copies, POSIX aio, syscall().
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "shim.h"

/* --- Copies --------------------------------------------------------------------- */

/* One call may be a whole file; each of these may also return a short count. */
enum { COPY_MAX_BYTES = 4 << 20 };

/* A copy reads one descriptor and writes another; either may be controlled. */
struct copy {
    struct paced_call reading;
    struct paced_call writing;
};

static bool is_paced(const struct paced_call *call)
{
    return call->class != NULL && call->bucket != NULL;
}

static struct copy begin_copy(int from, int to, size_t *size)
{
    struct copy copy;
    wrap_begin(&copy.reading, from, CLASS_READ);
    wrap_begin(&copy.writing, to, CLASS_WRITE);
    bool paced = is_paced(&copy.reading) || is_paced(&copy.writing);
    if (paced && *size > COPY_MAX_BYTES)
        *size = COPY_MAX_BYTES;
    return copy;
}

static ssize_t end_copy(struct copy *copy, ssize_t moved)
{
    wrap_end(&copy->reading, moved);
    return wrap_end(&copy->writing, moved);
}

EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    struct copy copy = begin_copy(from, to, &size);
    return end_copy(&copy, REAL(sendfile)(to, from, offset, size));
}

EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
    struct copy copy = begin_copy(from, to, &size);
    return end_copy(&copy, REAL(sendfile64)(to, from, offset, size));
}

EXPORT ssize_t copy_file_range(int from, off64_t *from_offset, int to,
                               off64_t *to_offset, size_t size, unsigned flags)
{
    struct copy copy = begin_copy(from, to, &size);
    return end_copy(
        &copy, REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags));
}

EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset,
                      size_t size, unsigned flags)
{
    struct copy copy = begin_copy(from, to, &size);
    return end_copy(&copy, REAL(splice)(from, from_offset, to, to_offset, size, flags));
}

/* --- POSIX aio: charged when given; the wait is for those who came first ------------ */

/* It is carried out later, by a thread of libc, on the file itself. */
static void begin_order(struct paced_call *call, int fd, enum io_class class,
                        size_t size)
{
    call->class = NULL;
    if (!identity_is_controlled(fd))
        return;
    if (identity_is_stageable(fd))
        stage_leave(fd);
    pace_begin_sized(call, class, size, false);
}

static int handed_over(struct paced_call *call, int answer, size_t size)
{
    if (call->class != NULL)
        pace_end_async(call, answer == 0 ? size : 0);
    return answer;
}

EXPORT int aio_write(struct aiocb *order)
{
    struct paced_call call;
    begin_order(&call, order->aio_fildes, CLASS_WRITE, order->aio_nbytes);
    return handed_over(&call, REAL(aio_write)(order), order->aio_nbytes);
}

EXPORT int aio_write64(struct aiocb64 *order)
{
    struct paced_call call;
    begin_order(&call, order->aio_fildes, CLASS_WRITE, order->aio_nbytes);
    return handed_over(&call, REAL(aio_write64)(order), order->aio_nbytes);
}

EXPORT int aio_read(struct aiocb *order)
{
    struct paced_call call;
    begin_order(&call, order->aio_fildes, CLASS_READ, order->aio_nbytes);
    return handed_over(&call, REAL(aio_read)(order), order->aio_nbytes);
}

EXPORT int aio_read64(struct aiocb64 *order)
{
    struct paced_call call;
    begin_order(&call, order->aio_fildes, CLASS_READ, order->aio_nbytes);
    return handed_over(&call, REAL(aio_read64)(order), order->aio_nbytes);
}

static void hand_over_one(const struct aiocb *order)
{
    struct paced_call call;
    if (order == NULL || order->aio_lio_opcode == LIO_NOP)
        return;
    enum io_class class = order->aio_lio_opcode == LIO_READ ? CLASS_READ : CLASS_WRITE;
    begin_order(&call, order->aio_fildes, class, order->aio_nbytes);
    handed_over(&call, 0, order->aio_nbytes);
}

EXPORT int lio_listio(int mode, struct aiocb *const orders[], int count,
                      struct sigevent *event)
{
    for (int i = 0; i < count; i++)
        hand_over_one(orders[i]);
    return REAL(lio_listio)(mode, orders, count, event);
}

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64), "one layout for both");

EXPORT int lio_listio64(int mode, struct aiocb64 *const orders[], int count,
                        struct sigevent *event)
{
    for (int i = 0; i < count; i++)
        hand_over_one((const struct aiocb *)orders[i]);
    return REAL(lio_listio64)(mode, orders, count, event);
}

/* --- System calls by number ----------------------------------------------------- */

/* The program forbids itself system calls from now on. */
static void seal(void)
{
    stage_leave_all();
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
        seal();
    return REAL(prctl)(option, rest[0], rest[1], rest[2], rest[3]);
}

/* Whether a system call reads or writes its first argument. */
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

/* The places of a copy's descriptors and of its size among its arguments. */
static bool copies_data(long number, int *from, int *to, int *size)
{
    bool sends = number == SYS_sendfile;
    *from = sends ? 1 : 0;
    *to = sends ? 0 : 2;
    *size = sends ? 3 : 4;
    return sends || number == SYS_copy_file_range || number == SYS_splice;
}

/* Note what a system call changes in the meaning of descriptors, or hides. */
static void note_call(long number, const long a[6], long answer)
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

/* Calls by number that staging would have to look at: nothing is staged then. */
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
#ifdef SYS_open /* what newer machines do without */
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

/* Names, descriptors or rights mean something else afterwards. */
static bool goes_elsewhere(long number)
{
    return number == SYS_chroot || number == SYS_pivot_root || number == SYS_setns ||
           number == SYS_unshare;
}

static void look_at_call(long number, const long a[6])
{
    if (concerns_staging(number))
        stage_leave_all();
    if (goes_elsewhere(number))
        stage_stop();
    if (number == SYS_sendmsg)
        wrap_leave_passed((const struct msghdr *)a[1]);
}

static bool seals(long number, long operation)
{
    return number == SYS_seccomp ||
           (number == SYS_prctl && operation == PR_SET_SECCOMP);
}

static long pass(long number, const long a[6])
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
    if (seals(number, a[0]))
        seal();
    if (RARELY(LOAD(stage_enabled)))
        look_at_call(number, a);
    enum io_class class;
    int from, to, size;
    if (moves_data(number, &class)) {
        struct paced_call call;
        wrap_begin(&call, (int)a[0], class);
        return wrap_end(&call, pass(number, a));
    }
    if (copies_data(number, &from, &to, &size)) {
        struct copy copy = begin_copy((int)a[from], (int)a[to], (size_t *)&a[size]);
        return end_copy(&copy, pass(number, a));
    }
    long answer = pass(number, a);
    note_call(number, a, answer);
    return answer;
}
