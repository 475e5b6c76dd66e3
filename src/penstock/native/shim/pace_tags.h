/* SPDX-License-Identifier: MIT
 *
 * Grants, tags and slices (page.h: "Pacing"), for pace.c and pace_wait.c.
 */
#ifndef PENSTOCK_PACE_TAGS_H
#define PENSTOCK_PACE_TAGS_H

#include "shim.h"

__extension__ typedef unsigned __int128 uint128;

/* A slice: what the rate grants in this time, but not less than a page of memory. */
static const uint64_t SLICE_NS = 20000000;
static const uint64_t SLICE_LEAST_BYTES = 4096;

/* More calls in flight are not believed: calls that were killed stay counted. */
static const int64_t IN_FLIGHT_MAX = 1 << 16;

/* --- The grant ------------------------------------------------------------------ */

static inline uint64_t bytes_in(uint64_t rate, uint64_t duration_ns)
{
    return (uint64_t)(((uint128)rate * duration_ns) >> RATE_SHIFT);
}

/* Copy a curve; false if the copy is torn. */
static inline bool read_curve(struct page_curve *curve, struct grant *grant)
{
    grant->from_ns = LOAD(curve->from_ns);
    grant->granted_bytes = LOAD(curve->granted_bytes);
    grant->rate = LOAD(curve->rate);
    grant->credit_bytes = LOAD(curve->credit_bytes);
    grant->slack_bytes = LOAD(curve->slack_bytes);
    return LOAD(curve->check) ==
           (grant->from_ns ^ grant->granted_bytes ^ grant->rate ^ grant->credit_bytes ^
            grant->slack_bytes ^ PAGE_MAGIC);
}

/* Continue the curve with the floor rate from the end of the lease on; false: the floor
 * is no limit. */
static inline bool apply_floor(struct grant *grant, uint64_t lease_ns,
                               uint64_t floor_rate)
{
    if (floor_rate == RATE_UNLIMITED)
        return false;
    if (lease_ns > grant->from_ns) {
        grant->granted_bytes += bytes_in(grant->rate, lease_ns - grant->from_ns);
        grant->from_ns = lease_ns;
    }
    grant->rate = floor_rate;
    return true;
}

/* Read the grant in force; false: there is no limit. */
static inline bool read_grant(struct page_bucket *bucket, uint64_t now_ns,
                              struct grant *grant)
{
    uint64_t lease_ns = LOAD(*attached_lease_ns);
    grant->grant_number =
        atomic_load_explicit(&bucket->grant_number, memory_order_acquire);
    if (RARELY(!read_curve(&bucket->curve[grant->grant_number & 1], grant)))
        return false;
    if (grant->rate == RATE_UNLIMITED)
        return false;
    if (LIKELY(now_ns < lease_ns && lease_ns - now_ns <= LEASE_MAX_NS))
        return true;
    return now_ns >= lease_ns &&
           apply_floor(grant, lease_ns, LOAD(attached_page->floor_rate));
}

/* Return G(now_ns). */
static inline uint64_t granted_at(const struct grant *grant, uint64_t now_ns)
{
    uint64_t since_ns = now_ns > grant->from_ns ? now_ns - grant->from_ns : 0;
    return grant->granted_bytes + bytes_in(grant->rate, since_ns);
}

/* Compare tags modulo 2^64. */
static inline bool is_ahead(uint64_t tag, uint64_t granted_bytes)
{
    return (int64_t)(tag - granted_bytes) > 0;
}

static inline void take_grant(struct paced_call *call, const struct grant *grant,
                              uint64_t now_ns)
{
    call->granted_bytes = granted_at(grant, now_ns);
    call->slack_bytes = grant->slack_bytes;
    call->rate = grant->rate;
}

/* Read the grant again for the next slice; false if there is no limit. The least tag
 * stays: what was granted since the call began is not lost, however long it took. */
static inline bool renew_grant(struct paced_call *call)
{
    struct grant grant;
    uint64_t now_ns = pace_now_ns();
    if (!read_grant(call->bucket, now_ns, &grant))
        return false;
    take_grant(call, &grant, now_ns);
    return true;
}

/* --- Charging ------------------------------------------------------------------- */

static inline uint64_t slice_at(uint64_t rate)
{
    uint64_t bytes = bytes_in(rate, SLICE_NS);
    return bytes > SLICE_LEAST_BYTES ? bytes : SLICE_LEAST_BYTES;
}

/* Return the start tag of a call that finds `charged` bytes in its bucket. */
static inline uint64_t start_after(const struct paced_call *call, uint64_t charged)
{
    return is_ahead(charged, call->least_tag) ? charged : call->least_tag;
}

/* Return true if the grant does not reach `tag` yet; smaller debts than the slack are
 * carried over to the next call. */
static inline bool is_due_later(const struct paced_call *call, uint64_t tag)
{
    return is_ahead(tag, call->granted_bytes + call->slack_bytes);
}

/* Return how many of `bytes` are charged together: one slice, or all if they are
 * granted already. */
static inline uint64_t slice_of(const struct paced_call *call, uint64_t bytes)
{
    if (LIKELY(bytes <= SLICE_LEAST_BYTES))
        return bytes;
    uint64_t slice = slice_at(call->rate);
    uint64_t finish = start_after(call, LOAD(call->bucket->charged_bytes)) + bytes;
    return bytes <= slice || !is_due_later(call, finish) ? bytes : slice;
}

/* Charge `bytes` and return the start tag: the one compare-and-swap of a call. */
static inline uint64_t charge_in_order(struct paced_call *call, uint64_t bytes)
{
    uint64_t charged = LOAD(call->bucket->charged_bytes);
    uint64_t start_tag;
    do
        start_tag = start_after(call, charged);
    while (!atomic_compare_exchange_weak_explicit(
        &call->bucket->charged_bytes, &charged, start_tag + bytes, memory_order_relaxed,
        memory_order_relaxed));
    return start_tag;
}

static inline uint64_t calls_in_flight(void)
{
    int64_t calls = 0;
    for (int i = 0; i < CLASSES; i++)
        calls += (int64_t)(LOAD(attached_page->classes[i].begun_calls) -
                           LOAD(attached_page->classes[i].ended_calls));
    return (uint64_t)(calls < 1 ? 1 : calls < IN_FLIGHT_MAX ? calls : IN_FLIGHT_MAX);
}

/* Return the debt that a call waits for at most: twice what it charges at once, at
 * least a slice, for each call in flight. If all charge as much, a job without other
 * debt is never above this. With other debt, about half of the grant pays it off. */
static inline uint64_t turn_bytes(uint64_t rate, uint64_t bytes)
{
    uint64_t slice = slice_at(rate);
    return (2 * calls_in_flight() - 1) * (bytes > slice ? bytes : slice);
}

static SLOW uint64_t start_in_turn(const struct paced_call *call, uint64_t start_tag,
                                   uint64_t bytes)
{
    uint64_t latest = call->granted_bytes + turn_bytes(call->rate, bytes);
    return is_ahead(start_tag, latest) ? latest : start_tag;
}

/* Charge `bytes`; return a start tag that is not behind the whole debt of the job. */
static inline uint64_t charge(struct paced_call *call, uint64_t bytes)
{
    uint64_t start_tag = charge_in_order(call, bytes);
    return RARELY(is_due_later(call, start_tag)) ? start_in_turn(call, start_tag, bytes)
                                                 : start_tag;
}

/* --- pace_wait.c ---------------------------------------------------------------- */

/* A call that can be staged need not wait for the file. */
static inline bool can_stage_now(const struct paced_call *call)
{
    return call->may_stage && pace_wants_staging();
}

/* Wait until the grant has reached `tag`, and in turns for the rest of the call. A wait
 * that is ended leaves the rest as debt of the job. False: this process is a copy of
 * the one that waited, forked by a signal handler. */
bool pace_wait_for(struct paced_call *, uint64_t tag, bool cancellable);

#endif
