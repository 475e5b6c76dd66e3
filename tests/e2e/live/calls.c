/* SPDX-License-Identifier: MIT
 *
 * calls SCENE: make the calls of one scene in the working directory, and print the
 * result of each call. The tests run every scene with and without the preload library
 * and compare the printed results, the files left behind, and the counters of the page.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <wchar.h>

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
char *__fgets_chk(char *, size_t, int, FILE *);
int __fprintf_chk(FILE *, int, const char *, ...);
int __printf_chk(int, const char *, ...);
int __dprintf_chk(int, int, const char *, ...);
int __fwprintf_chk(FILE *, int, const wchar_t *, ...);
int __wprintf_chk(int, const wchar_t *, ...);

static char data[1 << 20];

/* Print results to descriptor 2 with write(): some scenes test stdio itself. */
static long say(const char *what, long answer)
{
    char line[128];
    int length = snprintf(line, sizeof line, "%s %ld %d\n", what, answer,
                          answer < 0 ? errno : 0);
    if (write(2, line, (size_t)length) != length)
        _exit(3);
    return answer;
}
#define SAY(call) say(#call, (long)(call))

static int make(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        _exit(4);
    return fd;
}

/* --- Data ----------------------------------------------------------------------- */

/* test_shim_calls.py has a table VOLUMES with the bytes of each scene. */

static struct iovec parts[2] = {{data, 1000}, {data + 5000, 24}};

static void scene_write(void)
{
    int fd = make("a");
    SAY(write(fd, data, 1000));
    SAY(pwrite(fd, data, 100, 10));
    SAY(pwrite64(fd, data, 10, 5000));
    SAY(write(fd, data, 0));
}

static void scene_writev(void)
{
    int fd = make("a");
    SAY(writev(fd, parts, 2));
    SAY(pwritev(fd, parts, 2, 1));
    SAY(pwritev64(fd, parts, 2, 2));
    SAY(pwritev2(fd, parts, 2, 3, 0));
    SAY(pwritev64v2(fd, parts, 2, -1, 0));
}

static void scene_read(void)
{
    int fd = make("a");
    SAY(write(fd, data, 2000));
    SAY(lseek(fd, 0, SEEK_SET));
    SAY(read(fd, data, 1500));
    SAY(read(fd, data, 1500));
    SAY(read(fd, data, 1500));
    SAY(pread(fd, data, 100, 0));
    SAY(pread64(fd, data, 100, 1990));
    SAY(__pread_chk(fd, data, 5, 0, sizeof data));
    SAY(__pread64_chk(fd, data, 5, 0, sizeof data));
    SAY(lseek(fd, 0, SEEK_SET));
    SAY(__read_chk(fd, data, 5, sizeof data));
}

static void scene_readv(void)
{
    int fd = make("a");
    SAY(write(fd, data, 2048));
    SAY(lseek(fd, 0, SEEK_SET));
    SAY(readv(fd, parts, 2));
    SAY(preadv(fd, parts, 2, 0));
    SAY(preadv64(fd, parts, 2, 0));
    SAY(preadv2(fd, parts, 2, -1, 0));
    SAY(preadv64v2(fd, parts, 2, 0, 0));
}

static void scene_copies(void)
{
    int from = make("a"), to = make("b"), line[2];
    SAY(write(from, data, 10000));
    SAY(lseek(from, 0, SEEK_SET));
    SAY(sendfile(to, from, NULL, 1000));
    SAY(sendfile64(to, from, NULL, 1000));
    SAY(copy_file_range(from, NULL, to, NULL, 3000, 0));
    SAY(pipe(line));
    SAY(splice(from, NULL, line[1], NULL, 500, 0));
    SAY(splice(line[0], NULL, to, NULL, 500, 0));
}

static void scene_aio(void)
{
    int fd = make("a");
    struct aiocb first = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 700};
    struct aiocb64 second = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 50};
    const struct aiocb *list[1] = {&first};
    SAY(aio_write(&first));
    SAY(aio_suspend(list, 1, NULL));
    SAY(aio_return(&first));
    SAY(aio_read(&first));
    SAY(aio_suspend(list, 1, NULL));
    SAY(aio_return(&first));
    SAY(aio_write64(&second));
    while (aio_error64(&second) == EINPROGRESS)
        usleep(1000);
    SAY(aio_return64(&second));
    SAY(aio_read64(&second));
    while (aio_error64(&second) == EINPROGRESS)
        usleep(1000);
    SAY(aio_return64(&second));
}

static void scene_listio(void)
{
    int fd = make("a");
    struct aiocb out = {.aio_fildes = fd,
                        .aio_buf = data,
                        .aio_nbytes = 300,
                        .aio_lio_opcode = LIO_WRITE};
    struct aiocb in = {.aio_fildes = fd,
                       .aio_buf = data,
                       .aio_nbytes = 300,
                       .aio_lio_opcode = LIO_READ};
    struct aiocb none = {.aio_lio_opcode = LIO_NOP};
    struct aiocb *orders[] = {&out, &none, NULL};
    struct aiocb *more[] = {&in};
    SAY(lio_listio(LIO_WAIT, orders, 3, NULL));
    SAY(aio_return(&out));
    SAY(lio_listio64(LIO_WAIT, (struct aiocb64 *const *)more, 1, NULL));
    SAY(aio_return(&in));
}

static void scene_syscall(void)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "a", O_RDWR | O_CREAT, 0600);
    int to = make("b");
    SAY(syscall(SYS_write, fd, data, 1000));
    SAY(syscall(SYS_pwrite64, fd, data, 100, 0L));
    SAY(syscall(SYS_writev, fd, parts, 2));
    SAY(syscall(SYS_pwritev, fd, parts, 2, 0L, 0L));
    SAY(syscall(SYS_pread64, fd, data, 40, 0L));
    SAY(syscall(SYS_lseek, fd, 0L, SEEK_SET));
    SAY(syscall(SYS_sendfile, to, fd, NULL, 60));
    SAY(syscall(SYS_write, 99, data, 1000));
    SAY(syscall(SYS_close, fd));
    SAY(syscall(SYS_write, fd, data, 1000));
}

/* --- stdio ---------------------------------------------------------------------- */

static void scene_stdio_write(void)
{
    FILE *file = fopen("a", "w");
    for (int i = 0; i < 300; i++)
        SAY(fwrite(data, 1, 100, file));
    SAY(fwrite(data, 50000, 2, file));
    SAY(fwrite_unlocked(data, 7, 3, file));
    SAY(fclose(file));
}

static void scene_stdio_text(void)
{
    FILE *file = fopen64("a", "w");
    for (int i = 0; i < 1000; i++) {
        fputs("hello ", file);
        fputs_unlocked("hello ", file);
        fputc('a', file);
        putc('b', file);
        fputc_unlocked('c', file);
        putc_unlocked('d', file);
        fprintf(file, "%d-%s\n", 12345, "x");
        __fprintf_chk(file, 1, "%d\n", 123);
    }
    SAY(ftell(file));
    SAY(fclose(file));
}

static void scene_stdio_positions(void)
{
    FILE *file = fopen("a", "w+");
    fpos_t here;
    SAY(fputs("0123456789", file));
    SAY(fseek(file, 2, SEEK_SET));
    SAY(fputs("ab", file));
    SAY(fseeko(file, 4, SEEK_SET));
    SAY(fputs("cd", file));
    SAY(fgetpos(file, &here));
    rewind(file);
    SAY(fputs("ef", file));
    SAY(fsetpos(file, &here));
    SAY(fputs("gh", file));
    SAY(fflush(file));
    SAY(fputs("ij", file));
    SAY(fflush_unlocked(file));
    SAY(fclose(file));
}

static void scene_stdio_unbuffered(void)
{
    FILE *file = fopen("a", "w");
    SAY(setvbuf(file, NULL, _IONBF, 0));
    SAY(fputs("no buffer", file));
    SAY(fprintf(file, "%d", 7));
    FILE *line = fopen("b", "w");
    SAY(setvbuf(line, NULL, _IOLBF, 0));
    SAY(fputs("one\ntwo", line));
    SAY(fclose(line));
    _exit(0);
}

static void scene_stdio_stdout(void)
{
    SAY(freopen("a", "w", stdout) != NULL);
    SAY(puts("a line"));
    SAY(printf("%d\n", 42));
    SAY(__printf_chk(1, "%d\n", 42));
    SAY(putchar('x'));
    SAY(putchar_unlocked('y'));
    exit(0);
}

static void fill(const char *name, size_t size)
{
    int fd = make(name);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = i % 64 == 63 ? '\n' : 'a';
    if (write(fd, data, size) != (ssize_t)size)
        _exit(5);
    close(fd);
}

static void scene_stdio_read(void)
{
    fill("a", 100000);
    FILE *file = fopen("a", "r");
    for (int i = 0; i < 100; i++)
        if (fread(data, 1, 100, file) != 100)
            _exit(6);
    SAY(fread(data, 1, 50000, file));
    SAY(__fread_chk(data, sizeof data, 1, 1000, file));
    while (fread_unlocked(data, 1, 3000, file) > 0)
        continue;
    SAY(fclose(file));
}

static void scene_stdio_lines(void)
{
    char *line = NULL;
    size_t room = 0;
    fill("a", 64000);
    FILE *file = fopen("a", "r");
    for (int i = 0; i < 200; i++) {
        if (fgets(data, 100, file) == NULL || fgets_unlocked(data, 100, file) == NULL ||
            __fgets_chk(data, sizeof data, 100, file) == NULL)
            _exit(6);
        if (getline(&line, &room, file) != 64 ||
            getdelim(&line, &room, '\n', file) != 64)
            _exit(7);
    }
    free(line);
    SAY(fclose(file));
}

static void scene_stdio_characters(void)
{
    fill("a", 20000);
    FILE *file = fopen("a", "r");
    long sum = 0;
    for (int i = 0; i < 4000; i++) {
        sum += fgetc(file) + getc(file);
        sum += getc_unlocked(file) + fgetc_unlocked(file);
        sum += getc_unlocked(file);
    }
    SAY(sum);
    SAY(fclose(file));
}

/* dprintf writes between the writes before and after it. */
static void scene_print_to(void)
{
    int fd = make("a");
    SAY(write(fd, "0123456789", 10));
    SAY(lseek(fd, 2, SEEK_SET));
    SAY(dprintf(fd, "%d%s", 12, "ab"));
    SAY(write(fd, "cd", 2));
    SAY(__dprintf_chk(fd, 1, "%05d", 77));
    SAY(pwrite(fd, "ef", 2, 9));
    SAY(dprintf(99, "none"));
}

static void *put_lines(void *file)
{
    for (int i = 0; i < 2000; i++)
        fwrite(data, 1, 30, file);
    return NULL;
}

static void scene_stdio_threads(void)
{
    pthread_t threads[3];
    FILE *file = fopen("a", "w");
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, put_lines, file);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    SAY(fclose(file));
}

/* A stream whose descriptor was replaced by dup2 writes to the new file. */
static void scene_stdio_under(void)
{
    int fd = make("a");
    SAY(dup2(fd, 1));
    SAY(write(1, "0123456789", 10));
    SAY(lseek(1, 0, SEEK_SET));
    SAY(printf("abc"));
    SAY(fclose(stdout));
    SAY(write(1, "x", 1));
    SAY(write(fd, "def", 3));
}

static void scene_wide_under(void)
{
    SAY(dup2(make("a"), 1));
    SAY(setvbuf(stdout, NULL, _IONBF, 0));
    SAY(write(1, "0123456789", 10));
    SAY(lseek(1, 0, SEEK_SET));
    SAY(wprintf(L"%d", 12));
    SAY(__wprintf_chk(1, L"%ls", L"ab"));
    SAY(putwchar(L'c'));
    SAY(putwchar_unlocked(L'd'));
    SAY(write(1, "ef", 2));
}

static void scene_reopened(void)
{
    char line[16];
    FILE *file = fopen("a", "w");
    SAY(fputs("one", file));
    SAY(freopen("b", "w", file) == file);
    SAY(fputws(L"two", file));
    SAY(freopen("c", "w+", file) == file);
    SAY(fputs("three", file));
    rewind(file);
    SAY(fread(line, 1, sizeof line, file));
    SAY(fclose(file));
    file = fopen("d", "w");
    SAY(freopen("none/none", "w", file) == NULL);
    SAY(open("a", O_RDONLY));
}

/* Wide characters are converted to the locale, with transliteration. */
static void put_wide(const char *name, const char *locale)
{
    SAY(setlocale(LC_ALL, locale) != NULL);
    FILE *file = fopen(name, "w");
    SAY(fwide(file, 0));
    SAY(fputwc(L'a', file));
    SAY(fwide(file, 0));
    SAY(fwide(file, -1));
    SAY(putwc(L'\u00e9', file));
    SAY(fputwc_unlocked(L'\u20ac', file));
    SAY(putwc_unlocked(L'\u201c', file));
    SAY(fputws(L"stra\u00dfe\n", file));
    SAY(fputws_unlocked(L"\u4e2d\u6587", file));
    SAY(fwprintf(file, L"%d-%ls-%s\n", 12, L"\u0416", "x"));
    SAY(__fwprintf_chk(file, 1, L"%3000d\n", 7));
    SAY(setlocale(LC_ALL, "C") != NULL);
    SAY(fputws(L"\u20ac later\n", file));
    SAY(fflush(file));
    SAY(ftell(file));
    SAY(fseek(file, 1, SEEK_SET));
    SAY(fputws(L"e", file));
    SAY(ferror(file));
    SAY(fclose(file));
}

static void scene_wide(void)
{
    put_wide("a", "C");
    put_wide("b", "C.UTF-8");
    FILE *file = fopen("c", "w");
    SAY(fputs("bytes", file));
    SAY(fwide(file, 1));
    SAY(fputwc(L'a', file) == WEOF);
    SAY(fputws(L"ab", file));
    SAY(fwprintf(file, L"%d", 1));
    SAY(fclose(file));
    file = fopen("d", "w");
    SAY(fwide(file, 1));
    SAY(fputws(L"", file));
    for (int i = 0; i < 9000; i++)
        fputwc(L'a' + i % 26, file);
    exit(0);
}

/* --- Identity ------------------------------------------------------------------- */

static void scene_duplicates(void)
{
    int fd = make("a");
    int second = dup(fd);
    int third = fcntl(second, F_DUPFD, 50);
    int fourth = fcntl(fd, F_DUPFD_CLOEXEC, 60);
    SAY(write(second, data, 1));
    SAY(write(third, data, 10));
    SAY(write(fourth, data, 100));
    SAY(dup2(fd, 70));
    SAY(write(70, data, 1000));
    SAY(dup3(fd, 71, O_CLOEXEC));
    SAY(close(fd));
    SAY(write(71, data, 10000));
    SAY(write(fd, data, 1));
}

/* A descriptor of a controlled file becomes a pipe: the pipe is never charged. */
static void reuse(int fd, const char *how)
{
    int line[2];
    if (pipe(line) != 0 || dup2(line[1], fd) != fd)
        _exit(8);
    say(how, write(fd, data, 1000));
    if (read(line[0], data, 1000) != 1000)
        _exit(9);
}

static int controlled_at(int number)
{
    int fd = make("a");
    int there = fcntl(fd, F_DUPFD, number);
    close(fd);
    if (there != number || write(there, data, 1) != 1)
        _exit(10);
    return there;
}

static void pipe_at(int number, const char *how)
{
    int line[2];
    if (pipe(line) != 0 || syscall(SYS_fcntl, line[1], F_DUPFD, number) != number)
        _exit(11);
    say(how, write(number, data, 1000));
    if (read(line[0], data, 1000) != 1000)
        _exit(12);
    syscall(SYS_close, number);
}

static void scene_reuse(void)
{
    reuse(controlled_at(100), "dup2");
    close(controlled_at(110));
    pipe_at(110, "close");
    SAY(close_range((unsigned)controlled_at(120), 120, 0));
    pipe_at(120, "close_range");
    syscall(SYS_close, controlled_at(130));
    pipe_at(130, "syscall");
    FILE *file = fdopen(controlled_at(140), "w");
    fclose(file);
    pipe_at(140, "fclose");
    closefrom(controlled_at(150));
    pipe_at(150, "closefrom");
}

static void scene_names(void)
{
    int fd;
    SAY(mkdir("inner", 0700));
    SAY(symlink("inner", "alias"));
    int folder = open("inner", O_RDONLY | O_DIRECTORY);
    SAY(write(fd = openat(folder, "b", O_RDWR | O_CREAT, 0600), data, 1));
    SAY(close(fd));
    SAY(write(fd = open("alias/b", O_RDWR), data, 10));
    SAY(close(fd));
    SAY(chdir("inner"));
    SAY(write(fd = __open_2("b", O_RDWR), data, 100));
    SAY(write(__open64_2("b", O_RDWR), data, 100));
    SAY(write(__openat_2(folder, "b", O_RDWR), data, 100));
    SAY(write(__openat64_2(folder, "b", O_RDWR), data, 100));
    SAY(write(creat("c", 0600), data, 1000));
    SAY(write(creat64("c", 0600), data, 1000));
    SAY(write(open(".", O_TMPFILE | O_RDWR, 0600), data, 10000));
    SAY(unlink("b"));
    SAY(write(fd, data, 100000));
}

static void scene_temporaries(void)
{
    char a[] = "aXXXXXX", b[] = "bXXXXXX.c";
    int first = mkstemp(a), second = mkostemps(b, 2, O_CLOEXEC);
    SAY(write(first, data, 10));
    SAY(write(second, data, 100));
    unlink(a);
    unlink(b);
}

static void put_new(int at, const char *name, size_t size)
{
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    SAY(write(fd, data, size));
    close(fd);
    unlinkat(at, name, 0);
}

/* Files that open() creates, by names that change their meaning. */
static void scene_created(void)
{
    int home = open(".", O_RDONLY | O_DIRECTORY);
    mkdir("d", 0700);
    mkdir("d/e", 0700);
    put_new(AT_FDCWD, "d/a", 1);
    put_new(AT_FDCWD, "d/a", 2);
    int at = open("d", O_RDONLY | O_DIRECTORY);
    put_new(at, "e/a", 10);
    put_new(at, "e/a", 20);
    close(at);
    mkdir("../free", 0700);
    SAY(chdir("../free"));
    mkdir("d", 0700);
    mkdir("d/e", 0700);
    put_new(AT_FDCWD, "d/a", 5000);
    SAY(open("d", O_RDONLY | O_DIRECTORY) == at);
    put_new(at, "e/a", 5000);
    rmdir("d/e");
    rmdir("d");
    SAY(fchdir(home));
    put_new(AT_FDCWD, "d/a", 100);
    rmdir("../free");
}

/* Open without following symbolic links: a regular file and a pipe in one directory. */
static void scene_not_followed(void)
{
    close(make("a"));
    SAY(mkfifo("b", 0600));
    for (int i = 0; i < 2; i++) {
        SAY(write(open("./a", O_WRONLY | O_NOFOLLOW), data, 10));
        int fd = open("./b", O_RDWR | O_NOFOLLOW);
        SAY(write(fd, data, 1000));
        SAY(read(fd, data, 1000));
    }
    unlink("b");
}

static void scene_fork(void)
{
    int status, fd = make("a");
    SAY(write(fd, data, 10));
    pid_t child = fork();
    if (child == 0) {
        int copy = dup(fd);
        write(copy, data, 100);
        write(make("b"), data, 1000);
        _exit(7);
    }
    SAY(waitpid(child, &status, 0) == child);
    SAY(WEXITSTATUS(status));
    SAY(write(fd, data, 1));
}

/* A child of vfork shares the descriptor table of the library with its parent, and must
 * not spoil it. */
static void scene_vfork(void)
{
    int status, line[2], fd = make("a");
    SAY(write(fd, data, 10));
    SAY(pipe(line));
    pid_t child = vfork();
    if (child == 0) {
        dup2(line[1], fd);
        write(fd, data, 500);
        close_range(100, 1000, 0);
        _exit(7);
    }
    SAY(waitpid(child, &status, 0) == child);
    SAY(read(line[0], data, 1000));
    SAY(write(fd, data, 100));
}

/* --- Files used by other processes, and attributes of files --------------------- */

static long send_descriptor(int line, int fd, int many)
{
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {"x", 1};
    struct mmsghdr list[1] = {{.msg_hdr = {.msg_iov = &part,
                                           .msg_iovlen = 1,
                                           .msg_control = room,
                                           .msg_controllen = sizeof room}}};
    struct cmsghdr *head = CMSG_FIRSTHDR(&list[0].msg_hdr);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return many ? sendmmsg(line, list, 1, 0) : sendmsg(line, &list[0].msg_hdr, 0);
}

static int receive_descriptor(int line)
{
    char room[CMSG_SPACE(sizeof(int))], byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room,
                             .msg_controllen = sizeof room};
    int fd = -1;
    if (recvmsg(line, &message, 0) != 1)
        _exit(13);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Read the file, let the sender write, and read again; then write. */
static void look_twice(int line)
{
    char word[16] = {0};
    int fd = receive_descriptor(line);
    SAY(pread(fd, word, 8, 0));
    write(line, "1", 1);
    read(line, word, 1);
    SAY(pread(fd, word, 8, 0));
    SAY(write(2, word, strlen(word)));
    SAY(pwrite(fd, "new", 3, 0));
    write(line, "2", 1);
}

/* A descriptor that was passed to another process is not staged any more, whether it
 * was written to before or not. */
static void scene_passed(void)
{
    for (int i = 0; i < 4; i++) {
        const char name[] = {(char)('a' + i), 0};
        int line[2], status;
        char byte;
        socketpair(AF_UNIX, SOCK_STREAM, 0, line);
        pid_t child = fork();
        if (child == 0) {
            look_twice(line[1]);
            _exit(0);
        }
        int fd = make(name), copy = dup(fd);
        if (i >= 2)
            SAY(write(fd, "before", 6));
        long sent = send_descriptor(line[0], fd, i % 2);
        read(line[0], &byte, 1);
        SAY(sent);
        SAY(pwrite(copy, "after", 5, 0));
        write(line[0], "x", 1);
        read(line[0], &byte, 1);
        SAY(waitpid(child, &status, 0) == child);
    }
    SAY(sendmsg(0, (struct msghdr *)8, 0) < 0);
}

/* Without CAP_FSETID, a write removes the set-user-id bit and the capabilities. */
static void drop_rights(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &head, sets) != 0)
        _exit(14);
    sets[0].effective &= ~(1u << CAP_FSETID);
    syscall(SYS_capset, &head, sets);
}

static int written(const char *name)
{
    int fd = make(name);
    SAY(write(fd, "#!/bin/sh\n", 10));
    return fd;
}

static void show_rights(const char *name, int fd)
{
    char value[64];
    struct stat status;
    SAY(close(fd));
    SAY(stat(name, &status));
    SAY(status.st_mode);
    SAY(getxattr(name, "security.capability", value, sizeof value));
}

/* Attributes set after a write stay, even if the write is drained later. */
static void scene_rights(void)
{
    const unsigned capability[5] = {0x02000001, 1u << CAP_NET_RAW, 0, 0, 0};
    const char *name = "security.capability";
    int fd;
    drop_rights();
    SAY(fchmod(fd = written("a"), 04711));
    show_rights("a", fd);
    fd = written("b");
    SAY(chmod("b", 06755));
    show_rights("b", fd);
    fd = written("c");
    SAY(fchmodat(AT_FDCWD, "c", 04755, 0));
    show_rights("c", fd);
    fd = written("d");
    SAY(fchown(fd, getuid(), getgid()));
    SAY(fchmod(fd, 04755));
    SAY(write(fd, "x", 1));
    show_rights("d", fd);
    fd = written("e");
    SAY(fsetxattr(fd, name, capability, sizeof capability, 0));
    show_rights("e", fd);
    fd = written("f");
    SAY(setxattr("f", name, capability, sizeof capability, 0));
    show_rights("f", fd);
    fd = written("g");
    SAY(lsetxattr("g", name, capability, sizeof capability, 0));
    show_rights("g", fd);
    fd = written("h");
    SAY(chown("h", getuid(), getgid()));
    SAY(fchownat(AT_FDCWD, "h", getuid(), getgid(), 0));
    SAY(lchown("h", getuid(), getgid()));
    show_rights("h", fd);
}

static void scene_unshared(void)
{
    int fd = make("a");
    SAY(write(fd, data, 1000));
    SAY(close_range(3, ~0U, 2)); /* CLOSE_RANGE_UNSHARE */
    SAY(write(fd, data, 10));
    SAY(write(make("b"), data, 10));
}

/* After chroot, neither /proc nor the journals can be reached. */
static void scene_elsewhere(void)
{
    int fd = make("a");
    SAY(write(fd, data, 1000));
    SAY(setns(fd, 0));
    SAY(write(fd, data, 10));
    SAY(unshare(CLONE_FS | CLONE_FILES));
    SAY(write(fd, data, 100));
    SAY(setns(fd, 0));
    SAY(chroot("none"));
    SAY(write(make("c"), data, 30));
    SAY(chroot("."));
    SAY(write(fd, data, 20));
    int more = make("b");
    SAY(write(more, data, 3000));
    SAY(lseek(more, 0, SEEK_SET));
    SAY(read(more, data, 4000));
    SAY(close(more));
}

/* --- Bad arguments: the errors of the kernel, unchanged ------------------------- */

static void scene_errors(void)
{
    const char *volatile nowhere = (char *)8;
    const char *volatile nothing = NULL;
    struct stat status;
    struct rlimit limit = {1000, RLIM_INFINITY};
    int fd = make("a"), only_read = open("a", O_RDONLY);
    SAY(write(-1, data, 10));
    SAY(write(99, data, 10));
    SAY(read(2000000, data, 10));
    SAY(close(-1));
    SAY(dup2(99, 98));
    SAY(fcntl(99, F_DUPFD, 3));
    SAY(write(only_read, data, 10));
    SAY(write(fd, nowhere, 10));
    SAY(writev(fd, (struct iovec *)nowhere, 3));
    SAY(readv(fd, (struct iovec *)nowhere, 3));
    SAY(read(fd, (void *)nowhere, 10));
    SAY(open(nowhere, O_RDONLY));
    SAY(open(nothing, O_RDONLY));
    SAY(stat(nowhere, &status));
    SAY(unlink(nowhere));
    SAY(rename(nowhere, nowhere));
    SAY(openat(99, "x", O_RDONLY));
    SAY(pread(fd, data, 10, -5));
    SAY(sendfile(fd, 99, NULL, 10));
    SAY(copy_file_range(99, NULL, fd, NULL, 10, 0));
    SAY(syscall(-5));
    SAY(fopen("none/none", "r") != NULL);
    SAY(-errno);
    signal(SIGXFSZ, SIG_IGN);
    SAY(setrlimit(RLIMIT_FSIZE, &limit));
    SAY(write(fd, data, 4000));
    SAY(write(fd, data, 4000));
}

static void scene_errno(void)
{
    int fd = make("a");
    errno = 77;
    write(fd, data, 100);
    say("errno", errno);
    fclose(fdopen(dup(fd), "w"));
    say("errno", errno);
}

/* --- Waiting: the test pauses the job ------------------------------------------- */

static int late_fd;

static void write_in_handler(int number)
{
    (void)number;
    write(late_fd, data, 10);
}

/* A signal handler interrupts a wait and writes: its write must not wait. */
static void scene_handler(void)
{
    int fd = make("a");
    late_fd = make("b");
    signal(SIGUSR1, write_in_handler);
    SAY(write(fd, data, sizeof data));
}

static void fork_now(int number)
{
    (void)number;
    fork();
}

/* A signal handler forks during a wait: the write returns in both processes. */
static void scene_fork_in_handler(void)
{
    int fd = make("a");
    pid_t parent = getpid();
    signal(SIGUSR1, fork_now);
    SAY(write(fd, data, sizeof data));
    if (getpid() == parent)
        wait(NULL);
}

static sigjmp_buf back;

static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

/* A signal handler leaves a wait by longjmp; a later call waits again. */
static void scene_longjmp(void)
{
    struct itimerval once = {{0, 0}, {0, 50000}};
    int fd = make("a");
    signal(SIGALRM, jump);
    if (sigsetjmp(back, 1) == 0) {
        setitimer(ITIMER_REAL, &once, NULL);
        write(fd, data, sizeof data);
    }
    usleep(1200000);
    make("jumped");
    SAY(write(fd, data, 1000));
}

static void *write_all(void *of)
{
    write(*(int *)of, data, sizeof data);
    return of;
}

static void scene_cancel(void)
{
    void *result;
    pthread_t thread;
    int fd = make("a");
    pthread_create(&thread, NULL, write_all, &fd);
    usleep(100000);
    SAY(pthread_cancel(thread));
    SAY(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED);
}

/* From here on any system call but read, write and exit kills the process. */
static void scene_seccomp(void)
{
    int fd = make("a");
    SAY(write(fd, data, 10));
    prctl(PR_SET_SECCOMP, 1, 0, 0, 0);
    write(fd, data, 1000);
    write(fd, data, 1000);
    syscall(SYS_exit, 0);
}

/* --- The table ------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*play)(void);
} scenes[] = {
#define SCENE(name) {#name, scene_##name}
    SCENE(write),
    SCENE(writev),
    SCENE(read),
    SCENE(readv),
    SCENE(copies),
    SCENE(aio),
    SCENE(listio),
    SCENE(syscall),
    SCENE(stdio_write),
    SCENE(stdio_text),
    SCENE(stdio_positions),
    SCENE(stdio_unbuffered),
    SCENE(stdio_stdout),
    SCENE(stdio_read),
    SCENE(stdio_lines),
    SCENE(stdio_characters),
    SCENE(duplicates),
    SCENE(reuse),
    SCENE(names),
    SCENE(temporaries),
    SCENE(created),
    SCENE(not_followed),
    SCENE(fork),
    SCENE(vfork),
    SCENE(errors),
    SCENE(errno),
    SCENE(handler),
    SCENE(fork_in_handler),
    SCENE(longjmp),
    SCENE(cancel),
    SCENE(seccomp),
    SCENE(print_to),
    SCENE(stdio_threads),
    SCENE(stdio_under),
    SCENE(wide_under),
    SCENE(reopened),
    SCENE(wide),
    SCENE(passed),
    SCENE(rights),
    SCENE(unshared),
    SCENE(elsewhere),
};

int main(int count, char **arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, arguments[1]) == 0) {
            scenes[i].play();
            return 0;
        }
    }
    return 2;
}
