/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include "pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Shortest time between two wake-ups of the scheduler. */
#define SHORTEST_SLEEP_S 20e-6

#ifndef PENSTOCK_TEST_CLOCK /* Tests set the time themselves. */
double gate_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#endif

int gate_init(struct gate *gate, int threads)
{
    const double no_limits[POOLS] = {INFINITY, INFINITY, INFINITY};
    memset(gate, 0, sizeof(*gate));
    limiter_init(&gate->limiter, no_limits, gate_now());
    gate->waiting.newer = gate->waiting.older = &gate->waiting;
    gate->sleeps_until_s = INFINITY;
    gate->pool = pool_new(threads);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->timer, &clock);
    pthread_mutex_init(&gate->mutex, NULL);
    return gate->pool ? 0 : ENOMEM;
}

/* --- Waiting and released requests; the caller holds the mutex -------------------- */

static void begin_waiting(struct gate *gate, struct passage *passage)
{
    passage->is_waiting = true;
    passage->newer = &gate->waiting;
    passage->older = gate->waiting.older;
    passage->older->newer = passage;
    gate->waiting.older = passage;
    gate->waiting_count++;
    gate->waiting_by_application[passage->application]++;
}

static void release(struct gate *gate, struct passage *passage)
{
    passage->is_waiting = false;
    passage->is_released = true;
    passage->older->newer = passage->newer;
    passage->newer->older = passage->older;
    gate->waiting_count--;
    gate->waiting_by_application[passage->application]--;
    if (passage->is_parked) {
        struct tally *tally = &gate->tallies[passage->kind];
        tally->held_up_s += gate_now() - passage->arrived_s;
        pool_push(gate->pool, passage);
    }
}

/* Pass a request that the scheduler has sent to the limiter. */
static void limit(struct gate *gate, struct passage *passage, double now_s)
{
    if (passage->kind >= KIND_SYNC || limiter_is_open(&gate->limiter))
        release(gate, passage);
    else
        limiter_arrive(&gate->limiter, &passage->limited, now_s);
}

/* Return the request in a slot if the scheduler may send it, and free the slot. */
static struct passage *take_waiting(struct gate *gate, int64_t slot)
{
    if (slot < 0 || slot >= gate->slot_count)
        return NULL;
    struct passage *passage = gate->slots[slot];
    gate->slots[slot] = NULL;
    return passage;
}

static double next_wake_s(struct gate *gate)
{
    double wake_s = gate->limiter.wake_s;
    if (gate->has_scheduler)
        wake_s = fmin(wake_s, gate->scheduler.wake_s(gate->scheduler.state));
    return wake_s;
}

static void dispatch_at(struct gate *gate, double now_s)
{
    struct penstock_scheduler *scheduler = &gate->scheduler;
    struct passage *passage;
    struct limited *limited;
    while (gate->has_scheduler &&
           (passage = take_waiting(gate, scheduler->next(scheduler->state, now_s))))
        limit(gate, passage, now_s);
    if (gate->limiter.waiting)
        while ((limited = limiter_next(&gate->limiter, now_s)))
            release(gate, (struct passage *)limited);
    if (next_wake_s(gate) < gate->sleeps_until_s)
        pthread_cond_signal(&gate->timer);
}

void gate_dispatch(struct gate *gate)
{
    dispatch_at(gate, gate_now());
}

/* Make room for a slot; return false if memory is short. */
static bool make_room(struct gate *gate, int64_t slot)
{
    if (slot < gate->slot_count)
        return true;
    int64_t count = slot < 512 ? 1024 : 2 * slot;
    struct passage **slots = realloc(gate->slots, (size_t)count * sizeof(*slots));
    if (!slots)
        return false;
    size_t added = (size_t)(count - gate->slot_count);
    memset(slots + gate->slot_count, 0, added * sizeof(*slots));
    gate->slots = slots;
    gate->slot_count = count;
    return true;
}

/* Queue a new request at the scheduler, or at the limiter if there is none. */
static void arrive(struct gate *gate, struct passage *passage)
{
    struct penstock_scheduler *scheduler = &gate->scheduler;
    double now_s = passage->arrived_s;
    int64_t kind = passage->is_urgent ? KIND_URGENT : passage->kind;
    if (gate->has_scheduler) {
        int64_t slot = scheduler->arrive(scheduler->state, passage->application, kind,
                                         passage->limited.size_bytes, now_s);
        if (slot >= 0 && make_room(gate, slot) && !gate->slots[slot]) {
            passage->slot = slot;
            gate->slots[slot] = passage;
            return;
        }
    }
    limit(gate, passage, now_s);
}

/* --- A request -------------------------------------------------------------------- */

bool gate_enter(struct gate *gate, struct passage *passage)
{
    if (!atomic_load_explicit(&gate->is_active, memory_order_relaxed))
        return true;
    pthread_mutex_lock(&gate->mutex);
    passage->is_counted = true;
    passage->slot = -1;
    passage->limited.is_write = passage->kind == KIND_WRITE;
    passage->arrived_s = gate_now();
    if (gate->is_closed) {
        passage->is_refused = passage->is_released = true;
    } else {
        begin_waiting(gate, passage);
        arrive(gate, passage);
        dispatch_at(gate, passage->arrived_s);
    }
    bool may_go = passage->is_released;
    pthread_mutex_unlock(&gate->mutex);
    return may_go;
}

bool gate_park(struct gate *gate, struct passage *passage)
{
    pthread_mutex_lock(&gate->mutex);
    bool may_go = passage->is_released;
    passage->is_parked = !may_go;
    if (may_go)
        gate->tallies[passage->kind].held_up_s += gate_now() - passage->arrived_s;
    pthread_mutex_unlock(&gate->mutex);
    return may_go;
}

/* Tell the scheduler and the limiter that a request is complete. */
static void complete(struct gate *gate, struct passage *passage, int64_t moved_bytes)
{
    struct penstock_scheduler *scheduler = &gate->scheduler;
    pthread_mutex_lock(&gate->mutex);
    double now_s = gate_now();
    struct meter *meter = gate->meters[passage->application];
    if (meter)
        meter_record(meter, now_s - passage->arrived_s, moved_bytes, now_s);
    if (passage->kind < KIND_SYNC)
        limiter_complete(&gate->limiter, &passage->limited, moved_bytes, now_s);
    if (gate->has_scheduler && passage->slot >= 0)
        scheduler->complete(scheduler->state, passage->slot, moved_bytes, now_s);
    dispatch_at(gate, now_s);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_leave(struct gate *gate, struct passage *passage, int64_t moved_bytes)
{
    struct tally *tally = &gate->tallies[passage->kind];
    atomic_fetch_add_explicit(&tally->requests, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->moved_bytes, moved_bytes, memory_order_relaxed);
    if (passage->is_counted && !passage->is_refused)
        complete(gate, passage, moved_bytes);
}

void gate_run_in_pool(struct gate *gate, struct passage *passage)
{
    pool_push(gate->pool, passage);
}

/* --- The timer and the end -------------------------------------------------------- */

static void sleep_until(struct gate *gate, double wake_s)
{
    gate->sleeps_until_s = wake_s;
    if (isinf(wake_s)) {
        pthread_cond_wait(&gate->timer, &gate->mutex);
    } else {
        double whole_s = floor(wake_s);
        struct timespec until = {(time_t)whole_s, (long)(1e9 * (wake_s - whole_s))};
        pthread_cond_timedwait(&gate->timer, &gate->mutex, &until);
    }
}

/* Main loop of the timer: call the scheduler at its wake-up times. */
static void *run_timer(void *argument)
{
    struct gate *gate = argument;
    double now_s = 0.0;
    pthread_mutex_lock(&gate->mutex);
    while (!gate->is_ending) {
        /* A scheduler that always wants to be called must not keep the mutex. */
        sleep_until(gate, fmax(next_wake_s(gate), now_s + SHORTEST_SLEEP_S));
        now_s = gate_now();
        /* Skip a wake-up that the scheduler has withdrawn: it would close a time window
         * at the wrong time. */
        if (next_wake_s(gate) <= now_s)
            dispatch_at(gate, now_s);
    }
    pthread_mutex_unlock(&gate->mutex);
    return NULL;
}

int gate_start(struct gate *gate)
{
    int error = pool_start(gate->pool);
    return error ? error : pthread_create(&gate->timer_thread, NULL, run_timer, gate);
}

void gate_close(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->is_closed = true;
    while (gate->waiting_count) {
        gate->waiting.newer->is_refused = true;
        release(gate, gate->waiting.newer);
    }
    for (int64_t slot = 0; slot < gate->slot_count; slot++)
        gate->slots[slot] = NULL;
    gate->has_scheduler = false;
    gate->limiter.waiting = 0;
    gate->limiter.wake_s = INFINITY;
    pthread_mutex_unlock(&gate->mutex);
}

void gate_end(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->is_ending = true;
    pthread_cond_signal(&gate->timer);
    pthread_mutex_unlock(&gate->mutex);
    pthread_join(gate->timer_thread, NULL);
}
