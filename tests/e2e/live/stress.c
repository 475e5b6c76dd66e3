/* SPDX-License-Identifier: MIT
 *
 * stress: threads write, read, duplicate and close their own and each other's
 * descriptors and streams in the working directory. For the thread sanitizer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 300 };

static int shared_fd;
static FILE *shared_stream;

static void write_and_read(int mine)
{
    char data[4096] = {0};
    struct iovec part = {data, sizeof data};
    pwrite(shared_fd, data, sizeof data, 0);
    pwritev(mine, &part, 1, 0);
    pread(mine, data, sizeof data, 0);
}

/* A descriptor is closed and opened by one thread while another one uses it. */
static void storm(int mine)
{
    int copy = dup(mine);
    int high = fcntl(mine, F_DUPFD_CLOEXEC, 100);
    dup2(mine, high);
    write(copy, "x", 1);
    write(high, "x", 1);
    close(copy);
    close_range((unsigned)high, (unsigned)high, 0);
    int line[2];
    if (pipe(line) == 0) {
        write(line[1], "x", 1);
        close(line[0]);
        close(line[1]);
    }
}

static void use_streams(int round)
{
    struct stat status;
    fprintf(shared_stream, "round %d\n", round);
    fputc('x', shared_stream);
    if (round % 50 == 0)
        fflush(shared_stream);
    stat("shared", &status);
}

static void *work(void *of)
{
    char name[32];
    snprintf(name, sizeof name, "mine-%ld", (long)of);
    int mine = open(name, O_RDWR | O_CREAT, 0600);
    for (int round = 0; round < ROUNDS; round++) {
        write_and_read(mine);
        storm(mine);
        use_streams(round);
    }
    close(mine);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    shared_fd = open("shared", O_RDWR | O_CREAT, 0600);
    shared_stream = fopen("stream", "w");
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fclose(shared_stream);
    return 0;
}
