/* SPDX-License-Identifier: MIT
 *
 * bbio SCENE FOLDER: check one statement of burst-buffer coordination (section IV)
 * about BBIO. Each scene quotes the statement that it checks. The exit status is 0 if
 * the statement holds; otherwise a line on standard error says what does not.
 *
 * The program is linked with libbbio.a and run under libbbio_posix.so, without anything
 * else of penstock. It writes its files into the working directory; FOLDER is an empty
 * folder for buffers. The scene `absent` is run without the preload library.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bbio.h>

enum { SMALL = 5000, BUFFER = 64 << 10, LARGE = 200000 };

static const char *folder;
static char data[LARGE];

#define CHECK(condition) check(condition, #condition, __LINE__)

static void check(int holds, const char *condition, int line)
{
    if (holds)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    _exit(1);
}

/* Return the size of the file itself, without data in buffers: by the function of libc
 * that the preload library replaces. */
static long stored(int fd)
{
    typedef int statx_call(int, const char *, int, unsigned, struct statx *);
    union {
        void *address;
        statx_call *call;
    } look = {dlsym(dlopen("libc.so.6", RTLD_LAZY), "statx")};
    struct statx status;
    CHECK(look.address != NULL);
    CHECK(look.call(fd, "", AT_EMPTY_PATH, STATX_SIZE, &status) == 0);
    return (long)status.stx_size;
}

static int create(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    return fd;
}

static void put(int fd, size_t size)
{
    CHECK(write(fd, data, size) == (ssize_t)size);
}

static void start(void)
{
    CHECK(BBIO_Init(folder, BUFFER) == 0);
}

static int names_in_folder(void)
{
    int count = 0;
    DIR *names = opendir(folder);
    CHECK(names != NULL);
    while (readdir(names) != NULL)
        count++;
    closedir(names);
    return count - 2; /* . and .. */
}

/* --- The callback ----------------------------------------------------------------- */

static int calls;        /* since the last look */
static int called_fd;    /* argument of the last call */
static long stored_then; /* size of the file at the last call */

static void note(int fd)
{
    calls++;
    called_fd = fd;
    stored_then = stored(fd);
    errno = ENOTTY; /* must not reach the program */
}

static int calls_since_last(void)
{
    int count = calls;
    calls = 0;
    return count;
}

/* --- BBIO_Init ---------------------------------------------------------------------- */

/* "initializes BBIO, giving it the path to a directory where it can write buffered
 * data" */
static void scene_init_with_a_path(void)
{
    start();
    int fd = create("a");
    put(fd, SMALL);
    CHECK(stored(fd) == 0);
    CHECK(names_in_folder() == 1);
    CHECK(close(fd) == 0);
    CHECK(names_in_folder() == 0);
}

static void scene_init_with_a_relative_path(void)
{
    CHECK(mkdir("buffers", 0700) == 0);
    CHECK(BBIO_Init("buffers", BUFFER) == 0);
    int fd = create("a");
    put(fd, SMALL);
    CHECK(stored(fd) == 0);
}

static void scene_init_without_the_directory(void)
{
    CHECK(BBIO_Init("missing", BUFFER) == -1);
    CHECK(errno == ENOENT);
    int fd = create("a");
    put(fd, SMALL);
    CHECK(stored(fd) == SMALL);
}

/* "Leaving this path NULL instructs BBIO to use RAM as storage." */
static void scene_init_in_memory(void)
{
    CHECK(BBIO_Init(NULL, BUFFER) == 0);
    int fd = create("a");
    put(fd, SMALL);
    CHECK(stored(fd) == 0);
    CHECK(names_in_folder() == 0);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(stored(fd) == SMALL);
}

/* "The size provided is the maximum size allowed for a buffer associated with any
 * single file descriptor." */
static void scene_every_file_has_a_buffer_of_the_size(void)
{
    start();
    int one = create("a"), other = create("b");
    for (int i = 0; i < 2; i++) {
        put(one, 30000);
        put(other, 30000);
    }
    CHECK(stored(one) == 0 && stored(other) == 0);
    put(one, 30000);
    CHECK(stored(one) > 0 && stored(other) == 0);
}

/* "Whenever the buffer is filled or if a write is issued with a size that cannot fit
 * the buffer, the buffer automatically resizes if there is available space or is
 * flushed." */
static void scene_a_buffer_resizes(void)
{
    CHECK(BBIO_Init(folder, 1 << 20) == 0);
    int fd = create("a");
    put(fd, SMALL);
    put(fd, LARGE);
    put(fd, LARGE);
    CHECK(stored(fd) == 0);
}

static void scene_a_full_buffer_is_flushed(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, note) == 0);
    for (int i = 0; i < 30; i++)
        put(fd, 30000);
    CHECK(stored(fd) >= 30 * 30000 - BUFFER);
    CHECK(calls > 1);
}

static void scene_a_write_that_does_not_fit_is_flushed(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, note) == 0);
    put(fd, LARGE); /* nothing is in the buffer yet */
    CHECK(calls_since_last() == 0);
    put(fd, SMALL);
    put(fd, LARGE);
    CHECK(calls_since_last() == 1);
    CHECK(stored_then == LARGE);
    CHECK(stored(fd) == 2 * LARGE + SMALL);
}

/* --- BBIO_Enable, BBIO_Disable, BBIO_Flush, BBIO_Finalize --------------------------- */

/* "By default, buffering is enabled for all files outside of system directories." */
static void scene_enabled_by_default(void)
{
    start();
    int fd = create("a");
    put(fd, SMALL);
    CHECK(stored(fd) == 0);
}

static void scene_system_directories_are_left_out(void)
{
    char name[16];
    start();
    int fd = open("/proc/self/comm", O_WRONLY);
    CHECK(fd >= 0);
    CHECK(write(fd, "changed", 7) == 7);
    CHECK(prctl(PR_GET_NAME, name) == 0);
    CHECK(strcmp(name, "changed") == 0);
}

/* "enables buffering for a particular file descriptor" */
static void scene_enable(void)
{
    int fd = create("a");
    start();
    put(fd, SMALL);
    CHECK(stored(fd) == SMALL); /* opened before */
    CHECK(BBIO_Enable(fd) == 0);
    put(fd, SMALL);
    CHECK(stored(fd) == SMALL);
    CHECK(BBIO_Disable(fd) == 0 && BBIO_Enable(fd) == 0);
    put(fd, SMALL);
    CHECK(stored(fd) == 2 * SMALL);
}

static void scene_enable_a_descriptor_that_is_not_open(void)
{
    start();
    CHECK(BBIO_Enable(-1) == -1 && errno == EBADF);
    CHECK(BBIO_Enable(1000) == -1 && errno == EBADF);
    CHECK(BBIO_On_flush(1000, note) == -1 && errno == EBADF);
}

/* "disables buffering for a particular file descriptor. If buffering was previously
 * enabled and some data have been put in the buffer, the buffer is flushed." */
static void scene_disable(void)
{
    start();
    int fd = create("a"), other = create("b");
    put(fd, SMALL);
    put(other, SMALL);
    CHECK(BBIO_Disable(fd) == 0);
    CHECK(stored(fd) == SMALL && stored(other) == 0);
    put(fd, SMALL);
    CHECK(stored(fd) == 2 * SMALL);
}

static void put_more(int fd)
{
    put(fd, SMALL);
}

static void scene_disable_with_a_callback_that_writes(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, put_more) == 0);
    put(fd, SMALL);
    CHECK(BBIO_Disable(fd) == 0);
    CHECK(stored(fd) == 2 * SMALL);
    put(fd, SMALL);
    CHECK(stored(fd) == 3 * SMALL);
}

/* "forces a flush on the buffer associated with the file descriptor" */
static void scene_flush(void)
{
    start();
    int fd = create("a"), other = create("b");
    put(fd, SMALL);
    put(other, SMALL);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(stored(fd) == SMALL && stored(other) == 0);
    put(fd, SMALL);
    CHECK(stored(fd) == SMALL);
}

/* "finalizes BBIO. It will flush all the buffers currently managed." */
static void scene_finalize(void)
{
    start();
    int fd = create("a"), other = create("b");
    put(fd, SMALL);
    put(other, SMALL);
    CHECK(BBIO_Finalize() == 0);
    CHECK(stored(fd) == SMALL && stored(other) == SMALL);
    put(fd, SMALL);
    CHECK(stored(fd) == 2 * SMALL);
    CHECK(BBIO_Finalize() == 0);
    start();
    int later = create("c");
    put(later, SMALL);
    CHECK(stored(later) == 0);
}

/* --- BBIO_On_flush ------------------------------------------------------------------ */

/* Write, flush, and check that the callback was called once and before. */
static void check_called(int fd, int (*flush)(int))
{
    long before = stored(fd);
    put(fd, SMALL);
    CHECK(calls_since_last() == 0);
    CHECK(flush(fd) == 0);
    CHECK(calls_since_last() == 1);
    CHECK(called_fd == fd);
    CHECK(stored_then == before);
}

static int finalize(int fd)
{
    (void)fd;
    return BBIO_Finalize();
}

/* "installs a callback function that will be called before any flush (whether this
 * flush is triggered manually by BBIO_Flush, BBIO_Disable, or BBIO_Finalize ..." */
static void scene_called_before_a_manual_flush(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, note) == 0);
    check_called(fd, BBIO_Flush);
    check_called(fd, BBIO_Flush);
    check_called(fd, BBIO_Disable);
    CHECK(BBIO_Enable(fd) == 0);
    check_called(fd, BBIO_Flush);
    check_called(fd, finalize);
    CHECK(stored(fd) == 5 * SMALL);
}

/* "... or automatically when the buffer is full)" */
static void scene_called_before_a_full_buffer_is_flushed(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, note) == 0);
    put(fd, 30000);
    put(fd, 30000);
    CHECK(calls_since_last() == 0);
    errno = 0;
    put(fd, 30000);
    CHECK(errno == 0);
    CHECK(calls_since_last() == 1);
    CHECK(called_fd == fd && stored_then == 0 && stored(fd) > 0);
}

/* "block only when closing the file or forcing a flush" (section III-A) */
static void scene_called_before_fsync_and_close(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, note) == 0);
    check_called(fd, fsync);
    check_called(fd, fdatasync);
    check_called(fd, close);
}

/* "The callback will not be called when trying to flush an empty buffer." */
static void scene_not_called_for_an_empty_buffer(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, note) == 0);
    CHECK(BBIO_Flush(fd) == 0);
    put(fd, SMALL);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(calls_since_last() == 1);
    CHECK(BBIO_Flush(fd) == 0 && fsync(fd) == 0);
    CHECK(BBIO_Disable(fd) == 0 && BBIO_Enable(fd) == 0);
    CHECK(close(fd) == 0 && BBIO_Finalize() == 0);
    CHECK(calls_since_last() == 0);
}

static void scene_called_for_its_own_descriptor_only(void)
{
    start();
    int fd = create("a"), other = create("b");
    CHECK(BBIO_On_flush(fd, note) == 0);
    put(other, SMALL);
    CHECK(BBIO_Flush(other) == 0);
    CHECK(close(other) == 0);
    CHECK(calls_since_last() == 0);
    CHECK(close(fd) == 0);
    CHECK(create("c") == fd); /* the number of a closed file is free again */
    put(fd, SMALL);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(calls_since_last() == 0);
}

static void scene_installed_while_disabled(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_Disable(fd) == 0);
    CHECK(BBIO_On_flush(fd, note) == 0);
    put(fd, SMALL);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(calls_since_last() == 0);
    CHECK(BBIO_Enable(fd) == 0);
    check_called(fd, BBIO_Flush);
}

static void unexpected(int fd)
{
    (void)fd;
    CHECK(!"the callback was replaced");
}

static void scene_replaced_and_removed(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, unexpected) == 0);
    CHECK(BBIO_On_flush(fd, note) == 0);
    check_called(fd, BBIO_Flush);
    CHECK(BBIO_On_flush(fd, NULL) == 0);
    put(fd, SMALL);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(calls_since_last() == 0);
}

static void flush_and_write(int fd)
{
    calls++;
    CHECK(BBIO_Flush(fd) == 0);
    put(fd, SMALL);
}

static void scene_a_callback_may_flush_and_write(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, flush_and_write) == 0);
    put(fd, SMALL);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(calls == 1);
    CHECK(stored(fd) >= SMALL);
    CHECK(BBIO_On_flush(fd, NULL) == 0);
    CHECK(BBIO_Flush(fd) == 0);
    CHECK(stored(fd) == 2 * SMALL);
}

static void say(int fd)
{
    (void)fd;
    CHECK(write(1, "called\n", 7) == 7);
}

static atomic_int calls_by_all;
static atomic_bool other_may_write, other_has_written;

static void *write_in_another_thread(void *argument)
{
    while (!atomic_load(&other_may_write))
        usleep(1000);
    put(*(int *)argument, SMALL);
    atomic_store(&other_has_written, true);
    return NULL;
}

static void wait_for_other_thread(int fd)
{
    (void)fd;
    if (atomic_fetch_add(&calls_by_all, 1) > 0)
        return;
    atomic_store(&other_may_write, true);
    while (!atomic_load(&other_has_written))
        usleep(1000);
}

/* A thread that writes during the flush drains as well; the flush is still one. */
static void scene_called_once_by_all_threads(void)
{
    pthread_t other;
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, wait_for_other_thread) == 0);
    CHECK(pthread_create(&other, NULL, write_in_another_thread, &fd) == 0);
    put(fd, SMALL);
    CHECK(BBIO_Disable(fd) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(atomic_load(&calls_by_all) == 1);
    CHECK(stored(fd) == 2 * SMALL);
    put(fd, SMALL);
    CHECK(stored(fd) == 3 * SMALL);
}

/* The test looks for the line. */
static void scene_called_at_the_end_of_the_program(void)
{
    start();
    int fd = create("a");
    CHECK(BBIO_On_flush(fd, say) == 0);
    put(fd, SMALL);
}

/* --- Section IV-C ------------------------------------------------------------------- */

/* "When BBIO captures a POSIX or a LibC function call" */
static void scene_posix_and_libc_calls(void)
{
    struct iovec parts[2] = {{data, SMALL}, {data, SMALL}};
    start();
    int fd = create("a");
    CHECK(pwrite(fd, data, SMALL, SMALL) == SMALL);
    CHECK(writev(fd, parts, 1) == SMALL);
    CHECK(pwritev(fd, parts, 2, 2 * SMALL) == 2 * SMALL);
    CHECK(stored(fd) == 0);
    FILE *file = fopen("b", "w");
    CHECK(file != NULL);
    fd = fileno(file);
    CHECK(BBIO_On_flush(fd, note) == 0);
    CHECK(fwrite(data, 1, 30000, file) == 30000);
    CHECK(fflush(file) == 0);
    CHECK(stored(fd) == 0);
    CHECK(fclose(file) == 0);
    CHECK(calls == 1 && called_fd == fd);
}

/* "the local file is a log of the operations to be performed on a file" */
static void scene_operations_keep_their_order(void)
{
    char back[4];
    start();
    int fd = create("a");
    CHECK(pwrite(fd, "aaaa", 4, 0) == 4);
    CHECK(pwrite(fd, "bb", 2, 1) == 2);
    CHECK(pwrite(fd, "c", 1, 2) == 1);
    CHECK(close(fd) == 0);
    fd = open("a", O_RDONLY);
    CHECK(read(fd, back, 4) == 4);
    CHECK(memcmp(back, "abca", 4) == 0);
}

/* "BBIO will still associate a buffer to files opened in both read and write modes but
 * will disable it if read operations are issued." */
static void scene_a_read_disables_the_buffer(void)
{
    char back[SMALL];
    start();
    int fd = open("a", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && BBIO_On_flush(fd, note) == 0);
    put(fd, SMALL);
    CHECK(stored(fd) == 0);
    CHECK(pread(fd, back, SMALL, 0) == SMALL);
    CHECK(calls_since_last() == 1);
    CHECK(stored(fd) == SMALL);
    put(fd, SMALL);
    CHECK(stored(fd) == 2 * SMALL);
}

/* "the application will buffer its I/O only if the dynamic library is preloaded" */
static void scene_absent(void)
{
    CHECK(BBIO_Init("missing", BUFFER) == 0);
    int fd = create("a");
    CHECK(BBIO_Enable(fd) == 0 && BBIO_On_flush(fd, note) == 0);
    put(fd, SMALL);
    CHECK(stored(fd) == SMALL);
    CHECK(BBIO_Flush(fd) == 0 && BBIO_Disable(fd) == 0 && BBIO_Finalize() == 0);
    CHECK(calls == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
#define SCENE(name) {#name, scene_##name}
    SCENE(init_with_a_path),
    SCENE(init_with_a_relative_path),
    SCENE(init_without_the_directory),
    SCENE(init_in_memory),
    SCENE(every_file_has_a_buffer_of_the_size),
    SCENE(a_buffer_resizes),
    SCENE(a_full_buffer_is_flushed),
    SCENE(a_write_that_does_not_fit_is_flushed),
    SCENE(enabled_by_default),
    SCENE(system_directories_are_left_out),
    SCENE(enable),
    SCENE(enable_a_descriptor_that_is_not_open),
    SCENE(disable),
    SCENE(disable_with_a_callback_that_writes),
    SCENE(flush),
    SCENE(finalize),
    SCENE(called_before_a_manual_flush),
    SCENE(called_before_a_full_buffer_is_flushed),
    SCENE(called_before_fsync_and_close),
    SCENE(not_called_for_an_empty_buffer),
    SCENE(called_for_its_own_descriptor_only),
    SCENE(installed_while_disabled),
    SCENE(replaced_and_removed),
    SCENE(a_callback_may_flush_and_write),
    SCENE(called_once_by_all_threads),
    SCENE(called_at_the_end_of_the_program),
    SCENE(posix_and_libc_calls),
    SCENE(operations_keep_their_order),
    SCENE(a_read_disables_the_buffer),
    SCENE(absent),
};

int main(int number, char **words)
{
    if (number != 3)
        return 2;
    folder = words[2];
    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, words[1]) != 0)
            continue;
        scenes[i].run();
        return 0;
    }
    return 2;
}
