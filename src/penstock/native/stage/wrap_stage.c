/* SPDX-License-Identifier: MIT
 *
 * Calls that are wrapped only for staging, because they would show that data are
 * missing in the file: seeks, truncation, syncs, mappings, locks, executions, stat.
 * Without staging they go straight to libc.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "stage.h"

/* Return true if the file of the descriptor may be staged. */
static inline bool may_be_staged(int fd)
{
    return RARELY(LOAD(stage_enabled)) && identity_is_controlled(fd) &&
           identity_is_stageable(fd);
}

static int flushed(int fd)
{
    return may_be_staged(fd) ? stage_flush(fd) : 0;
}

static int failed(int error)
{
    errno = error;
    return -1;
}

/* --- Offsets and sizes ------------------------------------------------------------ */

/* Seek from the end that includes staged data; -2: the kernel must do the call. */
static off64_t sought(int fd, off64_t offset, int whence)
{
    uint64_t end;
    if (whence == SEEK_DATA || whence == SEEK_HOLE)
        stage_flush(fd);
    if (whence != SEEK_END || !stage_end(fd, &end))
        return -2;
    struct stat64 status;
    if (REAL(fstat64)(fd, &status) != 0)
        return -1;
    if ((uint64_t)status.st_size > end)
        end = (uint64_t)status.st_size;
    if (__builtin_add_overflow((off64_t)end, offset, &offset))
        return failed(EOVERFLOW);
    return offset < 0 ? failed(EINVAL) : REAL(lseek64)(fd, offset, SEEK_SET);
}

EXPORT off_t lseek(int fd, off_t offset, int whence)
{
    off64_t answer = may_be_staged(fd) ? sought(fd, offset, whence) : -2;
    return answer != -2 ? answer : REAL(lseek)(fd, offset, whence);
}

EXPORT off64_t lseek64(int fd, off64_t offset, int whence)
{
    off64_t answer = may_be_staged(fd) ? sought(fd, offset, whence) : -2;
    return answer != -2 ? answer : REAL(lseek64)(fd, offset, whence);
}

static int changed(int fd, int answer)
{
    if (RARELY(LOAD(stage_enabled)))
        stage_changed(fd);
    return answer;
}

#define AFTER_FLUSH(name, parameters, arguments, fail) \
    EXPORT int name parameters \
    { \
        int error = flushed(fd); \
        return error != 0 ? fail(error) : changed(fd, REAL(name) arguments); \
    }

/* posix_fallocate returns its error. */
static int returned(int error)
{
    return error;
}

/* A later drain would change the times again, */
AFTER_FLUSH(futimens, (int fd, const struct timespec times[2]), (fd, times), failed)
AFTER_FLUSH(futimes, (int fd, const struct timeval times[2]), (fd, times), failed)
/* and clear the set-user-id bit and capabilities. */
AFTER_FLUSH(fchmod, (int fd, mode_t mode), (fd, mode), failed)
AFTER_FLUSH(fchown, (int fd, uid_t user, gid_t group), (fd, user, group), failed)
AFTER_FLUSH(fsetxattr,
            (int fd, const char *name, const void *value, size_t size, int flags),
            (fd, name, value, size, flags), failed)
AFTER_FLUSH(ftruncate, (int fd, off_t size), (fd, size), failed)
AFTER_FLUSH(ftruncate64, (int fd, off64_t size), (fd, size), failed)
AFTER_FLUSH(fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size),
            failed)
AFTER_FLUSH(fallocate64, (int fd, int mode, off64_t at, off64_t size),
            (fd, mode, at, size), failed)
AFTER_FLUSH(posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size), returned)
AFTER_FLUSH(posix_fallocate64, (int fd, off64_t at, off64_t size), (fd, at, size),
            returned)

/* --- Durability ------------------------------------------------------------------- */

/* Return true if the call is answered; reports late errors of a file that was left,
 * too. */
static bool synced(int fd, int *answer)
{
    int error = 0;
    if (LIKELY(!LOAD(stage_enabled)) || !identity_is_controlled(fd) ||
        !stage_sync(fd, &error))
        return false;
    *answer = error != 0 ? failed(error) : 0;
    return true;
}

EXPORT int fsync(int fd)
{
    int answer;
    struct paced_call call;
    if (synced(fd, &answer))
        return answer;
    wrap_begin_sync(&call, fd);
    return wrap_end_full_sync(&call, fd, REAL(fsync)(fd));
}

EXPORT int fdatasync(int fd)
{
    int answer;
    struct paced_call call;
    if (synced(fd, &answer))
        return answer;
    wrap_begin_sync(&call, fd);
    return wrap_end_full_sync(&call, fd, REAL(fdatasync)(fd));
}

EXPORT int sync_file_range(int fd, off64_t at, off64_t size, unsigned flags)
{
    struct paced_call call;
    int error = flushed(fd);
    if (error != 0)
        return failed(error);
    wrap_begin_sync(&call, fd);
    return wrap_end_sync(&call,
                         changed(fd, REAL(sync_file_range)(fd, at, size, flags)));
}

EXPORT void sync(void)
{
    stage_write_through_all();
    REAL(sync)();
}

EXPORT int syncfs(int fd)
{
    struct paced_call call;
    stage_write_through_all();
    wrap_begin_sync(&call, fd);
    return wrap_end_sync(&call, REAL(syncfs)(fd));
}

/* --- Mappings and locks: later uses of the file make no call ------------------ */

static void forbid_staging(int fd)
{
    if (RARELY(LOAD(stage_enabled)) && fd >= 0 && identity_is_controlled(fd))
        stage_forbid(fd);
}

/* Allocators and sanitizers call mmap before the library has started: such calls must
 * not look symbols up, and must not be instrumented. */
#define EARLY __attribute__((no_sanitize("thread")))

EARLY static bool is_early(void)
{
    return !atomic_load_explicit(&real_resolved, memory_order_acquire);
}

EARLY EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd,
                        off_t offset)
{
    if ((flags & MAP_ANONYMOUS) == 0 && !is_early())
        forbid_staging(fd);
    return real.mmap(at, size, protection, flags, fd, offset);
}

EARLY EXPORT void *mmap64(void *at, size_t size, int protection, int flags, int fd,
                          off64_t offset)
{
    if ((flags & MAP_ANONYMOUS) == 0 && !is_early())
        forbid_staging(fd);
    return real.mmap64(at, size, protection, flags, fd, offset);
}

EXPORT int flock(int fd, int operation)
{
    forbid_staging(fd);
    return REAL(flock)(fd, operation);
}

EXPORT int lockf(int fd, int command, off_t size)
{
    forbid_staging(fd);
    return REAL(lockf)(fd, command, size);
}

EXPORT int lockf64(int fd, int command, off64_t size)
{
    forbid_staging(fd);
    return REAL(lockf64)(fd, command, size);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (may_be_staged(fd) && !wrap_write_through(fd, CLASS_WRITE))
        return -1; /* it may write, as FICLONE does */
    return REAL(ioctl)(fd, request, argument);
}

/* --- Other processes, and other places ---------------------------------------- */

/* Copy from a pointer of the program's; false if the pointer is bad. */
static bool fetch(const void *from, void *to, size_t size)
{
    struct iovec there = {(void *)(uintptr_t)from, size}, here = {to, size};
    long process = raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    return raw_call(SYS_process_vm_readv, process, (long)&here, 1, (long)&there, 1,
                    0) == (long)size;
}

/* Write through from now on to the files of the descriptors in `part`. */
static void write_through_listed(const struct cmsghdr *part, const char *end)
{
    const char *place = (const char *)CMSG_DATA(part);
    const char *last = (const char *)part + part->cmsg_len;
    for (last = last < end ? last : end; place + sizeof(int) <= last;
         place += sizeof(int)) {
        int fd;
        memcpy(&fd, place, sizeof fd);
        forbid_staging(fd);
    }
}

/* A message can carry some 250 descriptors. */
void wrap_write_through_passed(const struct msghdr *message)
{
    struct msghdr head;
    _Alignas(struct cmsghdr) char control[8192];
    if (LOAD(seccomp_active) || !fetch(message, &head, sizeof head) ||
        head.msg_controllen == 0)
        return;
    if (head.msg_controllen > sizeof control)
        head.msg_controllen = sizeof control;
    if (!fetch(head.msg_control, control, head.msg_controllen))
        return;
    head.msg_control = control;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&head); part != NULL;
         part = CMSG_NXTHDR(&head, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
            write_through_listed(part, control + head.msg_controllen);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (RARELY(LOAD(stage_enabled)))
        wrap_write_through_passed(message);
    return REAL(sendmsg)(fd, message, flags);
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    for (unsigned i = 0; RARELY(LOAD(stage_enabled)) && i < count && i < UIO_MAXIOV;
         i++)
        wrap_write_through_passed(&messages[i].msg_hdr);
    return REAL(sendmmsg)(fd, messages, count, flags);
}

/* /proc and the staging folder may be unreachable after the call. */
#define ELSEWHERE(name, parameters, arguments) \
    EXPORT int name parameters \
    { \
        bool stopped = stage_stop(); \
        int answer = REAL(name) arguments; \
        if (answer != 0 && stopped) \
            stage_resume(); \
        identity_forget_directories(); \
        return answer; \
    }

ELSEWHERE(chroot, (const char *path), (path))
ELSEWHERE(setns, (int fd, int type), (fd, type))
ELSEWHERE(unshare, (int flags), (flags))

/* --- Other programs --------------------------------------------------------------- */

/* Repeat a call until no drainer has the program file open for writing. */
#define TRIED(call, error) \
    struct lock_wait wait = {0}; \
    int answer; \
    do \
        answer = call; \
    while (answer != 0 && stage_may_try_again(error, &wait)); \
    return answer;

/* Find the file in a folder of PATH; false if it is not executable there. */
static bool is_in(const char *folder, size_t length, const char *file, char path[4096])
{
    size_t rest = strlen(file) + 1;
    if (length + 1 + rest > 4096)
        return false;
    memcpy(path, folder, length);
    path[length] = '/';
    memcpy(path + length + (length > 0), file, rest);
    return raw_call(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0, 0, 0) == 0;
}

static void leave_found(const char *file)
{
    char program[4096];
    const char *folder =
        LOAD(stage_enabled) && !LOAD(seccomp_active) ? getenv("PATH") : NULL;
    if (folder == NULL || strchr(file, '/') != NULL) {
        stage_drain_program(AT_FDCWD, file, 0);
        return;
    }
    for (size_t length;; folder += length + 1) {
        length = strcspn(folder, ":");
        if (is_in(folder, length, file, program)) {
            stage_drain_program(AT_FDCWD, program, 0);
            return;
        }
        if (folder[length] == '\0')
            break;
    }
    stage_write_through_all();
}

EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    stage_drain_program(AT_FDCWD, path, 0);
    TRIED(REAL(execve)(path, arguments, environment), errno)
}

EXPORT int execv(const char *path, char *const arguments[])
{
    stage_drain_program(AT_FDCWD, path, 0);
    TRIED(REAL(execv)(path, arguments), errno)
}

EXPORT int execvp(const char *file, char *const arguments[])
{
    leave_found(file);
    TRIED(REAL(execvp)(file, arguments), errno)
}

EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    leave_found(file);
    TRIED(REAL(execvpe)(file, arguments, environment), errno)
}

EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
    stage_drain_program(fd, "", AT_EMPTY_PATH);
    TRIED(REAL(fexecve)(fd, arguments, environment), errno)
}

EXPORT int execveat(int at, const char *path, char *const arguments[],
                    char *const environment[], int flags)
{
    stage_drain_program(at, path, flags);
    TRIED(REAL(execveat)(at, path, arguments, environment, flags), errno)
}

/* Count the arguments of the list, then copy them to an array on the stack, as libc
 * does. */
#define LISTED(first, list, environment) \
    va_list rest; \
    size_t count = 1; \
    va_start(rest, first); \
    while (va_arg(rest, char *) != NULL) \
        count++; \
    va_end(rest); \
    char *list[count + 1]; \
    char *const *environment = environ; \
    list[0] = (char *)(uintptr_t)first; \
    va_start(rest, first); \
    for (size_t i = 1; i <= count; i++) \
        list[i] = va_arg(rest, char *);

EXPORT int execl(const char *path, const char *first, ...)
{
    LISTED(first, list, environment)
    va_end(rest);
    stage_drain_program(AT_FDCWD, path, 0);
    TRIED(REAL(execve)(path, list, environment), errno)
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    LISTED(first, list, environment)
    va_end(rest);
    leave_found(file);
    TRIED(REAL(execvpe)(file, list, environment), errno)
}

EXPORT int execle(const char *path, const char *first, ...)
{
    LISTED(first, list, environment)
    environment = va_arg(rest, char *const *);
    va_end(rest);
    stage_drain_program(AT_FDCWD, path, 0);
    TRIED(REAL(execve)(path, list, environment), errno)
}

EXPORT int posix_spawn(pid_t *child, const char *path,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[],
                       char *const environment[])
{
    stage_drain_program(AT_FDCWD, path, 0);
    TRIED(REAL(posix_spawn)(child, path, actions, attributes, arguments, environment),
          answer)
}

EXPORT int posix_spawnp(pid_t *child, const char *file,
                        const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[],
                        char *const environment[])
{
    leave_found(file);
    TRIED(REAL(posix_spawnp)(child, file, actions, attributes, arguments, environment),
          answer)
}

EXPORT int system(const char *command)
{
    stage_write_through_all();
    return REAL(system)(command);
}

EXPORT FILE *popen(const char *command, const char *type)
{
    stage_write_through_all();
    return REAL(popen)(command, type);
}

/* --- The end ---------------------------------------------------------------------- */

EXPORT void _exit(int status)
{
    stage_finish();
    REAL(_exit)(status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    stage_finish();
    REAL(_Exit)(status);
    __builtin_unreachable();
}

EXPORT void quick_exit(int status)
{
    stage_finish();
    REAL(quick_exit)(status);
    __builtin_unreachable();
}

/* --- What programs made for older libraries call instead of stat -------------- */

int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __xstat64(int, const char *, struct stat64 *);
int __lxstat64(int, const char *, struct stat64 *);
int __fxstat64(int, int, struct stat64 *);
int __fxstatat64(int, int, const char *, struct stat64 *, int);

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout for both");

/* The kernel's structure equals libc's on all supported machines. */
static int looked(int version, int at, const char *path, struct stat *status, int flags)
{
    if (version != 0 && version != 1)
        return failed(EINVAL);
    long answer = raw_call(SYS_newfstatat, at, (long)path, (long)status, flags, 0, 0);
    uint64_t end;
    if (RARELY(LOAD(stage_enabled)) && answer == 0 && S_ISREG(status->st_mode) &&
        stage_file_end(status->st_dev, status->st_ino, &end)) {
        answer = raw_call(SYS_newfstatat, at, (long)path, (long)status, flags, 0, 0);
        if (answer == 0 && (uint64_t)status->st_size < end)
            status->st_size = (off_t)end;
    }
    return answer == 0 ? 0 : failed((int)-answer);
}

#define OLD_STAT(suffix, type) \
    EXPORT int __xstat##suffix(int version, const char *path, type *status) \
    { \
        return looked(version, AT_FDCWD, path, (struct stat *)status, 0); \
    } \
    EXPORT int __lxstat##suffix(int version, const char *path, type *status) \
    { \
        return looked(version, AT_FDCWD, path, (struct stat *)status, \
                      AT_SYMLINK_NOFOLLOW); \
    } \
    EXPORT int __fxstat##suffix(int version, int fd, type *status) \
    { \
        return looked(version, fd, "", (struct stat *)status, AT_EMPTY_PATH); \
    } \
    EXPORT int __fxstatat##suffix(int version, int at, const char *path, type *status, \
                                  int flags) \
    { \
        return looked(version, at, path, (struct stat *)status, flags); \
    }

OLD_STAT(, struct stat)
OLD_STAT(64, struct stat64)
