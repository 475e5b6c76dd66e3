/* SPDX-License-Identifier: MIT
 *
 * writer PATH SIZE COUNT SOURCE CALL: print "ready", read a monotonic time (ns) from
 * standard input, and from that time on write the first SIZE bytes of SOURCE to the
 * beginning of PATH, COUNT times; if CALL is "read", read them there COUNT times.
 * Prints the processor time of one call (ns, the minimum over batches) and the
 * monotonic time of the end (ns).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 10 };

static long long time_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* `room` is the buffer of reads; NULL: write. */
static double batch_ns(int fd, const char *data, char *room, size_t size, long count)
{
    long long begun = time_ns(CLOCK_THREAD_CPUTIME_ID);
    for (long i = 0; i < count; i++) {
        ssize_t moved =
            room == NULL ? pwrite(fd, data, size, 0) : pread(fd, room, size, 0);
        if (moved != (ssize_t)size)
            exit(1);
    }
    return (double)(time_ns(CLOCK_THREAD_CPUTIME_ID) - begun) / (double)count;
}

/* All writers map one file: filling a buffer for each of 64 writers would take a
 * minute. */
static const char *mapped(const char *path, size_t size)
{
    int fd = open(path, O_RDONLY);
    void *data = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (fd < 0 || data == MAP_FAILED)
        exit(1);
    return data;
}

static void await_start(void)
{
    long long start = 0;
    puts("ready");
    fflush(stdout);
    if (scanf("%lld", &start) != 1)
        exit(1);
    struct timespec until = {start / 1000000000, start % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(int words, char **word)
{
    if (words != 6)
        return 2;
    size_t size = strtoull(word[2], NULL, 10);
    long count = atol(word[3]);
    const char *data = mapped(word[4], size);
    char *room = strcmp(word[5], "read") == 0 ? malloc(size) : NULL;
    int fd = open(word[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || (room != NULL && pwrite(fd, data, size, 0) != (ssize_t)size))
        return 1;
    await_start();
    double least = 1e18;
    int batches = count >= 1000 ? BATCHES : 1;
    for (int i = 0; i < batches; i++) {
        long part = count * (i + 1) / batches - count * i / batches;
        double cost = batch_ns(fd, data, room, size, part);
        least = cost < least ? cost : least;
    }
    printf("%.1f %lld\n", least, time_ns(CLOCK_MONOTONIC));
    return 0;
}
