/* SPDX-License-Identifier: MIT
 *
 * Threads that never stop to write, beside a call that waits until data are drained:
 *
 *     busy sync|fork|read
 *
 * "sync" and "fork": every thread makes, writes and closes files of its own. "read":
 * all threads write to one file, and another descriptor of it is read. Every write has
 * other data, the number of the round. The last number of each thread is printed.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 24, NUMBERS = 375, SIZE = NUMBERS * 8, CALLS = 3 };

static atomic_bool over;
static atomic_uint_fast64_t rounds[THREADS]; /* that are over */
static atomic_int begun;
static int shared = -1;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void write_own(long thread, const uint64_t *data)
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
    for (uint64_t round = 1; !atomic_load(&over); round++) {
        uint64_t data[NUMBERS];
        for (int i = 0; i < NUMBERS; i++)
            data[i] = round;
        if (shared < 0)
            write_own(thread, data);
        else if (pwrite(shared, data, SIZE, thread * SIZE) != SIZE)
            fail("pwrite");
        atomic_store(&rounds[thread], round);
        if (round == 1)
            atomic_fetch_add(&begun, 1);
    }
    return NULL;
}

/* Whatever a thread has written before the read must be there. */
static void read_shared(void)
{
    uint64_t least[THREADS], data[THREADS][NUMBERS];
    for (int thread = 0; thread < THREADS; thread++)
        least[thread] = atomic_load(&rounds[thread]);
    int fd = open("shared", O_RDWR);
    if (pread(fd, data, sizeof data, 0) != sizeof data)
        fail("pread");
    for (int thread = 0; thread < THREADS; thread++)
        for (int i = 0; i < NUMBERS; i++)
            if (data[thread][i] < least[thread]) {
                fprintf(stderr, "thread %d: older data than was written\n", thread);
                exit(1);
            }
    close(fd);
}

static void call_once(const char *call)
{
    if (strcmp(call, "sync") == 0)
        sync();
    else if (strcmp(call, "read") == 0)
        read_shared();
    else {
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
    for (int thread = 0; thread < THREADS; thread++)
        printf("%" PRIuFAST64 "\n", atomic_load(&rounds[thread]));
    return 0;
}
