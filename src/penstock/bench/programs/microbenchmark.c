/* SPDX-License-Identifier: MIT
 *
 * microbenchmark START REQUESTS SIZE CALL DELAY PARTS PATH...: one group of the
 * benchmark of burst-buffer coordination. Starting at the monotonic time START (ns),
 * write REQUESTS requests of SIZE bytes with a pause of DELAY nanoseconds between them.
 * PARTS threads write equal parts of a request at the same time, each to its own file,
 * in calls of CALL bytes, and wait for each other. There are PARTS paths, or PARTS
 * paths for every request. The phase is announced through penstock.h, so that its
 * pauses do not end it. Prints the monotonic times (ns) at which the first file was
 * opened and the last one was closed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../native/shim/penstock.h"
#include "clock.h"

static long long start, size, call, delay;
static int requests, parts, paths;
static char **path, *data;
static pthread_barrier_t barrier;

static int opened(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        exit(1);
    return fd;
}

static void write_all(int fd, long long length)
{
    for (long long done = 0; done < length;) {
        long long left = length - done;
        ssize_t moved = write(fd, data + done, (size_t)(left < call ? left : call));
        if (moved <= 0)
            exit(1);
        done += moved;
    }
}

static void *write_part(void *number)
{
    int part = (int)(intptr_t)number, fd = opened(path[part]);
    for (int i = 0; i < requests; i++) {
        if (i > 0) {
            pthread_barrier_wait(&barrier);
            sleep_until(now_ns() + delay);
        }
        if (i > 0 && paths > parts) {
            if (close(fd) != 0)
                exit(1);
            fd = opened(path[i * parts + part]);
        }
        write_all(fd, size / parts);
    }
    if (close(fd) != 0)
        exit(1);
    return NULL;
}

int main(int words, char **word)
{
    if (words < 8)
        return 2;
    start = atoll(word[1]), size = atoll(word[3]), call = atoll(word[4]);
    delay = atoll(word[5]), requests = atoi(word[2]), parts = atoi(word[6]);
    path = word + 7, paths = words - 7;
    data = malloc((size_t)size);
    pthread_t *thread = calloc((size_t)parts, sizeof *thread);
    if (data == NULL || thread == NULL || (paths != parts && paths != parts * requests))
        return 2;
    /* The kernel splits a write from memory that was never touched. */
    memset(data, 'a', (size_t)size);
    pthread_barrier_init(&barrier, NULL, (unsigned)parts);
    sleep_until(start);
    long long began = now_ns();
    penstock_begin((uint64_t)(requests * size));
    for (int i = 0; i < parts; i++)
        if (pthread_create(&thread[i], NULL, write_part, (void *)(intptr_t)i) != 0)
            return 1;
    for (int i = 0; i < parts; i++)
        pthread_join(thread[i], NULL);
    long long ended = now_ns();
    penstock_end();
    printf("%lld %lld\n", began, ended);
    return 0;
}
