/* SPDX-License-Identifier: MIT
 *
 * The list of all wrapped calls. The library exports these names, those of hints.c and
 * bbio.c, and the old names of stat (wrap_stage.c).
 *
 * X(name, stand_in): `stand_in` answers while libc's function is not looked up yet (a
 * wrapper called from inside dlsym), or if libc does not have it.
 */
#ifndef PENSTOCK_REAL_H
#define PENSTOCK_REAL_H

#include <aio.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sched.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>
#include <wchar.h>

/* Names that headers hide, or that older headers lack. */
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
int fcntl64(int, int, ...);
ssize_t copy_file_range(int, off64_t *, int, off64_t *, size_t, unsigned);
int statx(int, const char *restrict, int, unsigned, struct statx *restrict);
ssize_t preadv2(int, const struct iovec *, int, off_t, int);
ssize_t preadv64v2(int, const struct iovec *, int, off64_t, int);
ssize_t pwritev2(int, const struct iovec *, int, off_t, int);
ssize_t pwritev64v2(int, const struct iovec *, int, off64_t, int);
int close_range(unsigned, unsigned, int);
void closefrom(int);
int execveat(int, const char *, char *const[], char *const[], int);
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
char *__fgets_chk(char *, size_t, int, FILE *);
char *__fgets_unlocked_chk(char *, size_t, int, FILE *);
int __fprintf_chk(FILE *, int, const char *, ...);
int __vfprintf_chk(FILE *, int, const char *, va_list);
int __printf_chk(int, const char *, ...);
int __vprintf_chk(int, const char *, va_list);
int __dprintf_chk(int, int, const char *, ...);
int __vdprintf_chk(int, int, const char *, va_list);
int __fwprintf_chk(FILE *, int, const wchar_t *, ...);
int __vfwprintf_chk(FILE *, int, const wchar_t *, va_list);
int __wprintf_chk(int, const wchar_t *, ...);
int __vwprintf_chk(int, const wchar_t *, va_list);
ssize_t __getdelim(char **, size_t *, int, FILE *);
int _IO_putc(int, FILE *);
int _IO_getc(FILE *);
int __overflow(FILE *, int);
int __uflow(FILE *);
int __underflow(FILE *);

/* clang-format off */
#define REAL_OPENING(X) \
    X(open, raw_open) X(open64, raw_open) X(openat, raw_openat) X(openat64, raw_openat) \
    X(creat, failing) X(creat64, failing) \
    X(__open_2, raw_open_2) X(__open64_2, raw_open_2) \
    X(__openat_2, raw_openat) X(__openat64_2, raw_openat) \
    X(mkstemp, failing) X(mkstemp64, failing) X(mkostemp, failing) X(mkostemp64, failing) \
    X(mkstemps, failing) X(mkstemps64, failing) \
    X(mkostemps, failing) X(mkostemps64, failing) \
    X(dup, failing) X(dup2, failing) X(dup3, failing) X(fcntl, failing) X(fcntl64, failing) \
    X(close, raw_close) X(close_range, failing) X(closefrom, failing) X(daemon, failing)

#define REAL_DATA(X) \
    X(read, raw_read) X(pread, failing) X(pread64, failing) X(readv, failing) \
    X(preadv, failing) X(preadv64, failing) X(preadv2, failing) X(preadv64v2, failing) \
    X(__read_chk, raw_read) X(__pread_chk, failing) X(__pread64_chk, failing) \
    X(write, raw_write) X(pwrite, failing) X(pwrite64, failing) X(writev, failing) \
    X(pwritev, failing) X(pwritev64, failing) X(pwritev2, failing) X(pwritev64v2, failing) \
    X(sendfile, failing) X(sendfile64, failing) X(copy_file_range, failing) \
    X(splice, failing) X(aio_read, failing) X(aio_read64, failing) \
    X(aio_write, failing) X(aio_write64, failing) X(lio_listio, failing) \
    X(lio_listio64, failing) X(syscall, failing) X(prctl, failing)

#define REAL_STDIO(X) \
    X(fopen, failing_null) X(fopen64, failing_null) \
    X(freopen, failing_null) X(freopen64, failing_null) \
    X(fclose, failing) X(fcloseall, failing) X(fflush, failing) \
    X(fseek, failing) X(fseeko, failing) X(fseeko64, failing) X(rewind, failing) \
    X(fsetpos, failing) X(fsetpos64, failing) \
    X(fwrite, failing_null) X(fwrite_unlocked, failing_null) \
    X(fputs, failing) X(fputs_unlocked, failing) X(puts, failing) \
    X(putc, failing) X(putc_unlocked, failing) X(__overflow, failing) \
    X(vfprintf, failing) X(__vfprintf_chk, failing) \
    X(vdprintf, failing) X(__vdprintf_chk, failing) \
    X(fread, failing_null) X(fread_unlocked, failing_null) \
    X(__fread_chk, failing_null) X(__fread_unlocked_chk, failing_null) \
    X(fgets, failing_null) X(fgets_unlocked, failing_null) \
    X(__fgets_chk, failing_null) X(__fgets_unlocked_chk, failing_null) \
    X(getc, failing) X(getc_unlocked, failing) X(getdelim, failing) \
    X(__uflow, failing) X(__underflow, failing)

/* Wrapped, but another function of libc serves them: X(name, function). */
#define SERVED_BY_OTHERS(X) \
    X(fflush_unlocked, fflush) X(fputc, putc) X(_IO_putc, putc) X(putchar, putc) \
    X(fputc_unlocked, putc_unlocked) X(putchar_unlocked, putc_unlocked) \
    X(fprintf, vfprintf) X(printf, vfprintf) X(vprintf, vfprintf) \
    X(__fprintf_chk, __vfprintf_chk) X(__printf_chk, __vfprintf_chk) \
    X(__vprintf_chk, __vfprintf_chk) \
    X(dprintf, vdprintf) X(__dprintf_chk, __vdprintf_chk) \
    X(fgetc, getc) X(_IO_getc, getc) X(getchar, getc) \
    X(fgetc_unlocked, getc_unlocked) X(getchar_unlocked, getc_unlocked) \
    X(getline, getdelim) X(__getdelim, getdelim)

#define REAL_WIDE(X) \
    X(fwide, failing) X(fputwc, failing) X(fputwc_unlocked, failing) \
    X(putwc, failing) X(putwc_unlocked, failing) \
    X(putwchar, failing) X(putwchar_unlocked, failing) \
    X(fputws, failing) X(fputws_unlocked, failing) \
    X(fwprintf, failing) X(vfwprintf, failing) X(wprintf, failing) X(vwprintf, failing) \
    X(__fwprintf_chk, failing) X(__vfwprintf_chk, failing) \
    X(__wprintf_chk, failing) X(__vwprintf_chk, failing)

#define REAL_NAMES(X) \
    X(stat, failing) X(stat64, failing) X(lstat, failing) X(lstat64, failing) \
    X(fstatat, failing) X(fstatat64, failing) X(statx, failing) \
    \
    X(unlink, failing) X(unlinkat, failing) X(remove, failing) \
    X(rename, failing) X(renameat, failing) X(renameat2, failing) \
    \
    X(link, failing) X(linkat, failing) \
    X(truncate, failing) X(truncate64, failing) X(chmod, failing) X(fchmodat, failing) \
    X(chown, failing) X(lchown, failing) X(fchownat, failing) X(utimensat, failing) \
    X(utimes, failing) X(utime, failing) X(setxattr, failing) X(lsetxattr, failing) \
    X(chdir, failing) X(fchdir, failing)

/* Further calls that only staging needs to see. */
#define REAL_STAGING(X) \
    X(fstat, failing) X(fstat64, failing) X(lseek, failing) X(lseek64, failing) \
    X(fsync, failing) X(fdatasync, failing) X(sync, failing) X(syncfs, failing) \
    X(futimens, failing) X(futimes, failing) \
    X(fchmod, failing) X(fchown, failing) X(fsetxattr, failing) \
    X(sync_file_range, failing) X(ftruncate, failing) X(ftruncate64, failing) \
    X(fallocate, failing) X(fallocate64, failing) \
    X(posix_fallocate, failing) X(posix_fallocate64, failing) \
    X(mmap, raw_mmap) X(mmap64, raw_mmap) X(flock, failing) \
    X(lockf, failing) X(lockf64, failing) X(ioctl, failing) X(fdopen, failing_null) \
    X(execve, failing) X(execv, failing) X(execvp, failing) X(execvpe, failing) \
    X(execl, failing) X(execle, failing) X(execlp, failing) X(fexecve, failing) \
    X(execveat, failing) X(sendmsg, failing) X(sendmmsg, failing) \
    X(chroot, failing) X(setns, failing) X(unshare, failing) \
    X(posix_spawn, failing) X(posix_spawnp, failing) X(system, failing) \
    X(popen, failing_null) X(_exit, raw_exit) X(_Exit, raw_exit) X(quick_exit, raw_exit)

#define REAL_CALLS(X) \
    REAL_OPENING(X) REAL_DATA(X) REAL_STDIO(X) REAL_WIDE(X) REAL_NAMES(X) REAL_STAGING(X)
/* clang-format on */

#define X(name, stand_in) __typeof__(&name) name;
struct real_calls {
    REAL_CALLS(X)
};
#undef X

extern struct real_calls real;
extern atomic_int real_resolved;

/* Look up every name in the libraries loaded after this one; only the first call does
 * anything. */
void real_resolve(void);

/* The function of libc behind the wrapper. */
#define REAL(name) \
    (atomic_load_explicit(&real_resolved, memory_order_acquire) \
         ? real.name \
         : (real_resolve(), real.name))

/* Make a system call without libc: it does not set errno, is no cancellation point, and
 * may be used at any moment. Returns the result, or -errno. */
long raw_call(long number, long a, long b, long c, long d, long e, long f);

/* Return the number of the calling process. */
long raw_getpid(void);

#endif
