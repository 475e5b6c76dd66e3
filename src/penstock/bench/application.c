/* SPDX-License-Identifier: MIT
 *
 * application START PATH BLOCK PHASE...: from the monotonic time START (ns) on, work and
 * do I/O in turn. A PHASE is `w` and nanoseconds of work, which is sleep, or `i` and bytes
 * of I/O, which are written to PATH in calls of BLOCK bytes and announced by penstock.h.
 * Prints the monotonic time at which each phase has ended, in nanoseconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../native/shim/penstock.h"
#include "clock.h"

/* It writes the same bytes of the file again and again: fresh memory is slow. */
enum { SPAN = 4 << 20 };

static void write_all(int fd, const char *data, long long volume, long long block)
{
    penstock_begin((uint64_t)volume);
    for (long long done = 0; done < volume;) {
        long long left = volume - done;
        ssize_t moved =
            pwrite(fd, data, (size_t)(left < block ? left : block), done % SPAN);
        if (moved <= 0)
            exit(1);
        done += moved;
    }
    penstock_end();
}

int main(int words, char **word)
{
    if (words < 5)
        return 2;
    long long ended = atoll(word[1]), block = atoll(word[3]);
    int fd = open(word[2], O_RDWR | O_CREAT, 0600);
    char *data = malloc((size_t)block);
    if (fd < 0 || data == NULL)
        return 1;
    /* The kernel splits a write from memory that was never touched. */
    memset(data, 'a', (size_t)block);
    sleep_until(ended);
    for (int i = 4; i < words; i++) {
        long long amount = atoll(word[i] + 1);
        if (word[i][0] == 'w')
            sleep_until(ended + amount);
        else
            write_all(fd, data, amount, block);
        ended = now_ns();
        printf("%lld\n", ended);
    }
    return 0;
}
