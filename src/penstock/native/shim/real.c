/* SPDX-License-Identifier: MIT
 *
 * The libc functions behind the wrapped calls (real.h), looked up by dlsym.
 *
 * Until they are looked up, and for those that libc does not have, stand-ins answer: a
 * raw system call where a program may need it that early, else ENOSYS.
 */
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

atomic_int real_resolved;

#if defined(__x86_64__)
__attribute__((no_sanitize("thread"))) long raw_call(long number, long a, long b,
                                                     long c, long d, long e, long f)
{
    long answer;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
}
#elif defined(__aarch64__)
__attribute__((no_sanitize("thread"))) long raw_call(long number, long a, long b,
                                                     long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "the shim knows the system calls of x86-64 and aarch64 only"
#endif

long raw_getpid(void)
{
    return raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static long raw_answer(long answer)
{
    if (answer >= 0)
        return answer;
    errno = (int)-answer;
    return -1;
}

static ssize_t raw_read(int fd, void *data, size_t size)
{
    return raw_answer(raw_call(SYS_read, fd, (long)data, (long)size, 0, 0, 0));
}

static ssize_t raw_write(int fd, const void *data, size_t size)
{
    return raw_answer(raw_call(SYS_write, fd, (long)data, (long)size, 0, 0, 0));
}

static int raw_close(int fd)
{
    return (int)raw_answer(raw_call(SYS_close, fd, 0, 0, 0, 0, 0));
}

static int raw_openat(int at, const char *path, int flags, mode_t mode)
{
    return (int)raw_answer(raw_call(SYS_openat, at, (long)path, flags, mode, 0, 0));
}

static int raw_open(const char *path, int flags, mode_t mode)
{
    return raw_openat(AT_FDCWD, path, flags, mode);
}

static int raw_open_2(const char *path, int flags)
{
    return raw_openat(AT_FDCWD, path, flags, 0);
}

/* Sanitizers call this before they have started themselves. */
__attribute__((no_sanitize("thread"))) static void *
raw_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    long answer =
        raw_call(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset);
    if (answer >= 0 || answer < -4095)
        return (void *)answer;
    errno = (int)-answer;
    return MAP_FAILED;
}

static void raw_exit(int status)
{
    for (;;)
        raw_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static long failing(void)
{
    errno = ENOSYS;
    return -1;
}

static void *failing_null(void)
{
    errno = ENOSYS;
    return NULL;
}

#define X(name, stand_in) .name = (__typeof__(&name))(void *)stand_in,
struct real_calls real = {REAL_CALLS(X)};
#undef X

static void *look_up(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    /* Before glibc 2.34 POSIX aio is in librt, which may be loaded after this library;
     * RTLD_NEXT does not find it then. */
    if (function == NULL && strstr(name, "io_") != NULL) {
        void *librt = dlopen("librt.so.1", RTLD_LAZY);
        function = librt ? dlsym(librt, name) : NULL;
    }
    return function;
}

static void resolve(void *pointer, const char *name)
{
    void *function = look_up(name);
    if (function != NULL)
        memcpy(pointer, &function, sizeof function);
}

void real_resolve(void)
{
    /* dlsym may allocate, and an allocator may read files when it starts: the wrappers
     * called then use the stand-ins. */
    static __thread int resolving;
    if (resolving || atomic_load(&real_resolved))
        return;
    resolving = 1;
    int kept_errno = errno;
#define X(name, stand_in) resolve(&real.name, #name);
    REAL_CALLS(X)
#undef X
    errno = kept_errno;
    atomic_store(&real_resolved, 1);
    resolving = 0;
}
