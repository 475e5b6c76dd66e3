/* SPDX-License-Identifier: MIT */
#include "limiter.h"

#include <math.h>
#include <string.h>

/* Tolerance for rounding of the clock, in seconds of the rate. */
#define TOLERANCE_S 1e-9

/* If no request waits, drop what exceeds the slack. */
static void cut(struct pool *pool)
{
    double most_bytes =
        fmax(pool->rate * LIMITER_SLACK_S, (double)pool->reserved_bytes);
    if (!pool->awaited)
        pool->level_bytes = fmin(pool->level_bytes, most_bytes);
}

static void fill(struct pool *pool, double now_s)
{
    if (now_s <= pool->filled_s)
        return;
    pool->level_bytes += pool->rate * (now_s - pool->filled_s);
    pool->filled_s = now_s;
    cut(pool);
}

static void fill_all(struct limiter *limiter, double now_s)
{
    for (int i = 0; i < POOLS; i++)
        fill(&limiter->pools[i], now_s);
}

static void set_rate(struct pool *pool, double rate, double now_s)
{
    fill(pool, now_s);
    if (isinf(rate) || isinf(pool->rate)) {
        pool->level_bytes = isinf(rate) ? INFINITY : 0.0;
        pool->epoch++;
    }
    pool->rate = rate;
    cut(pool);
}

void limiter_init(struct limiter *limiter, const double rates[POOLS], double now_s)
{
    memset(limiter, 0, sizeof(*limiter));
    for (int i = 0; i < POOLS; i++)
        limiter->pools[i] = (struct pool){
            .rate = INFINITY, .level_bytes = INFINITY, .filled_s = now_s, .epoch = 1};
    for (int i = 0; i < 2; i++)
        limiter->end[i] = &limiter->first[i];
    limiter->wake_s = INFINITY;
    limiter_set(limiter, rates, now_s);
}

void limiter_set(struct limiter *limiter, const double rates[POOLS], double now_s)
{
    limiter->unlimited = true;
    for (int i = 0; i < POOLS; i++) {
        set_rate(&limiter->pools[i], rates[i], now_s);
        if (!isinf(rates[i]))
            limiter->unlimited = false;
    }
}

bool limiter_is_open(const struct limiter *limiter)
{
    return limiter->unlimited && !limiter->waiting;
}

void limiter_arrive(struct limiter *limiter, struct limited *request, double now_s)
{
    /* Fill first: bandwidth from before the arrival is lost beyond the slack. */
    fill_all(limiter, now_s);
    request->number = ++limiter->arrivals;
    request->next = NULL;
    *limiter->end[request->is_write] = request;
    limiter->end[request->is_write] = &request->next;
    limiter->waiting++;
}

/* Return a mask of the pools that hold too little; reserve the bytes in the others. */
static unsigned missing_pools(struct limiter *limiter, const struct limited *request)
{
    const int own[2] = {request->is_write ? POOL_WRITE : POOL_READ, POOL_TOTAL};
    unsigned missing = 0;
    for (int i = 0; i < 2; i++) {
        struct pool *pool = &limiter->pools[own[i]];
        double size = (double)request->size_bytes;
        if (pool->level_bytes >= size - pool->rate * TOLERANCE_S) {
            if (pool->reserved_bytes < request->size_bytes)
                pool->reserved_bytes = request->size_bytes;
        } else {
            double ready_s = pool->filled_s + (size - pool->level_bytes) / pool->rate;
            pool->awaited = true;
            limiter->wake_s = fmin(limiter->wake_s, ready_s);
            missing |= 1u << own[i];
        }
    }
    return missing;
}

static void take(struct limiter *limiter, struct limited *request)
{
    const int own[2] = {request->is_write ? POOL_WRITE : POOL_READ, POOL_TOTAL};
    for (int i = 0; i < 2; i++) {
        struct pool *pool = &limiter->pools[own[i]];
        if (!isinf(pool->rate)) {
            pool->level_bytes -= (double)request->size_bytes;
            request->taken[own[i]] = pool->epoch;
        }
    }
}

static struct limited *pop(struct limiter *limiter, int queue)
{
    struct limited *request = limiter->first[queue];
    limiter->first[queue] = request->next;
    if (!request->next)
        limiter->end[queue] = &limiter->first[queue];
    limiter->waiting--;
    return request;
}

struct limited *limiter_next(struct limiter *limiter, double now_s)
{
    fill_all(limiter, now_s);
    limiter->wake_s = INFINITY;
    for (int i = 0; i < POOLS; i++) {
        limiter->pools[i].awaited = false;
        limiter->pools[i].reserved_bytes = 0;
    }
    struct limited *const *first = limiter->first;
    int older = first[0] && first[1] ? first[1]->number < first[0]->number : !first[0];
    for (int turn = 0; turn < 2; turn++) {
        int queue = turn ? !older : older;
        if (!first[queue])
            continue;
        unsigned missing = missing_pools(limiter, first[queue]);
        if (!missing) {
            take(limiter, first[queue]);
            return pop(limiter, queue);
        }
        if (missing == 1u << POOL_TOTAL)
            break;
    }
    return NULL;
}

void limiter_complete(struct limiter *limiter, struct limited *request,
                      int64_t moved_bytes, double now_s)
{
    for (int i = 0; i < POOLS; i++) {
        struct pool *pool = &limiter->pools[i];
        if (request->taken[i] != pool->epoch || isinf(pool->rate))
            continue;
        request->taken[i] = 0;
        fill(pool, now_s);
        pool->level_bytes += (double)(request->size_bytes - moved_bytes);
    }
}
