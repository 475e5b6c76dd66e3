/* SPDX-License-Identifier: MIT
 *
 * Bandwidth limits: token pools, with requests first come, first served.
 *
 * A pool fills at its limit B (bytes/s). A request of s bytes is sent when its pools
 * hold s bytes, and takes them. So in any time t at most B t bytes are sent, plus what
 * the pool held before. While no request waits, a pool holds at most LIMITER_SLACK_S
 * seconds of B: enough to make up for timers that fire late. While a request waits, the
 * pool fills without a bound, so that no bandwidth is lost however late the timer is.
 *
 * Reads and writes have a pool each, and share the total pool. Requests of one kind are
 * sent in order of arrival. A request that waits for the total pool is not overtaken,
 * because small requests would starve large ones. A request that waits for the pool of
 * its kind does not hold up the other kind.
 *
 * Pure: time (s, of any clock) is passed in. The caller serialises the calls.
 */
#ifndef PENSTOCK_LIMITER_H
#define PENSTOCK_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#define LIMITER_SLACK_S 0.020

/* Pools: of all data, of reads, of writes. */
enum { POOL_TOTAL, POOL_READ, POOL_WRITE, POOLS };

/* The part of a request that the limiter needs; the caller owns it. */
struct limited {
    struct limited *next;
    int64_t size_bytes;
    uint64_t number;       /* of the arrival */
    uint32_t taken[POOLS]; /* epoch of the pool from which it took its size; or 0 */
    bool is_write;
};

struct pool {
    double rate; /* bytes/s; infinity: no limit */
    double level_bytes;
    double filled_s;        /* time at which the level was computed */
    bool awaited;           /* A request waits for more than the pool holds. */
    int64_t reserved_bytes; /* held for a request that waits for another pool */
    uint32_t epoch;         /* counts changes from and to "no limit"; from 1 */
};

struct limiter {
    struct pool pools[POOLS];
    struct limited *first[2], **end[2]; /* queues: reads, writes */
    uint64_t arrivals;
    int64_t waiting;
    double wake_s; /* when limiter_next() must be called again; infinity: never */
    bool unlimited;
};

void limiter_init(struct limiter *limiter, const double rates[POOLS], double now_s);

/* Replace the limits; they also hold for requests that already wait. */
void limiter_set(struct limiter *limiter, const double rates[POOLS], double now_s);

/* Return true if there is no limit and no request waits. */
bool limiter_is_open(const struct limiter *limiter);

/* Queue a new request. */
void limiter_arrive(struct limiter *limiter, struct limited *request, double now_s);

/* Return the next request to send now; else set `wake_s` and return NULL. */
struct limited *limiter_next(struct limiter *limiter, double now_s);

/* Give back what a request did not move (end of file, an error). */
void limiter_complete(struct limiter *limiter, struct limited *request,
                      int64_t moved_bytes, double now_s);

#endif
