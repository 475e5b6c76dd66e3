/* SPDX-License-Identifier: MIT
 *
 * Threads that never stop to write, beside a call that waits until data are drained:
 *
 *     busy sync|fork|read
 *
 * "sync" and "fork": every thread makes, writes and closes files of its own. "read":
 * all threads write to one file, and another descriptor of it is read.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 24, SIZE = 3000, CALLS = 3 };

static atomic_bool over;
static atomic_int begun;
static int shared = -1;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void write_own(long thread, const char *data)
{
    char name[32];
    snprintf(name, sizeof name, "own%ld", thread);
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 20; i++)
        if (pwrite(fd, data, SIZE, i * SIZE) != SIZE)
            fail("pwrite");
    if (close(fd) != 0)
        fail("close");
}

static void *work(void *argument)
{
    long thread = (long)argument;
    char data[SIZE];
    memset(data, 'a' + (int)(thread % 26), sizeof data);
    for (bool first = true; !atomic_load(&over); first = false) {
        if (shared < 0)
            write_own(thread, data);
        else if (pwrite(shared, data, SIZE, thread * SIZE) != SIZE)
            fail("pwrite");
        if (first)
            atomic_fetch_add(&begun, 1);
    }
    return NULL;
}

static void call_once(const char *call)
{
    if (strcmp(call, "sync") == 0)
        sync();
    else if (strcmp(call, "read") == 0) {
        char data[SIZE];
        int fd = open("shared", O_RDWR);
        if (pread(fd, data, SIZE, 0) != SIZE || data[SIZE - 1] != 'a')
            fail("pread");
        close(fd);
    } else {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            fail("fork");
    }
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    if (count != 2)
        return 2;
    if (strcmp(words[1], "read") == 0)
        shared = open("shared", O_RDWR | O_CREAT, 0600);
    for (long thread = 0; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, work, (void *)thread);
    while (atomic_load(&begun) < THREADS)
        usleep(1000);
    for (int i = 0; i < CALLS; i++)
        call_once(words[1]);
    atomic_store(&over, true);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    if (shared >= 0 && close(shared) != 0)
        fail("close");
    return 0;
}
