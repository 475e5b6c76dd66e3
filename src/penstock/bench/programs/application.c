/* SPDX-License-Identifier: MIT
 *
 * application START PATH BLOCK PHASE...: run the phases of an application, starting at
 * the monotonic time START (ns). A PHASE is `w` and nanoseconds of work (sleep), or
 * bytes of I/O, which are written to PATH in calls of BLOCK bytes: after `i` they are
 * announced through penstock.h, after `u` they are not. Prints the monotonic time (ns)
 * of the end of each phase.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../native/shim/penstock.h"
#include "clock.h"

/* All writes go to the first bytes of the file: allocating new pages would be slow. */
enum { SPAN = 4 << 20 };

static void write_all(int fd, const char *data, long long volume, long long block)
{
    for (long long done = 0; done < volume;) {
        long long left = volume - done;
        ssize_t moved =
            pwrite(fd, data, (size_t)(left < block ? left : block), done % SPAN);
        if (moved <= 0)
            exit(1);
        done += moved;
    }
}

static void announce_and_write(int fd, const char *data, long long volume,
                               long long block)
{
    penstock_begin((uint64_t)volume);
    write_all(fd, data, volume, block);
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
        else if (word[i][0] == 'i')
            announce_and_write(fd, data, amount, block);
        else
            write_all(fd, data, amount, block);
        ended = now_ns();
        printf("%lld\n", ended);
    }
    return 0;
}
