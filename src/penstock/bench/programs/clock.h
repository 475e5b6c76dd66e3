/* SPDX-License-Identifier: MIT
 *
 * The monotonic clock, for the programs of the benchmarks.
 */
#ifndef PENSTOCK_BENCH_CLOCK_H
#define PENSTOCK_BENCH_CLOCK_H

#include <time.h>

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_until(long long time_ns)
{
    struct timespec until = {time_ns / 1000000000, time_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

#endif
