/* SPDX-License-Identifier: MIT
 *
 * Charging, waiting and counting in the page. page.h has the equations.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "shim.h"

__extension__ typedef unsigned __int128 uint128;

/* A waiter looks at the page again after this time, whatever happens; a new grant
 * wakes it at once. */
static const uint64_t SLICE_NS = 50000000;

/* A call moves at most this many bytes (MAX_RW_COUNT of the kernel). */
static const size_t CALL_MAX_BYTES = 0x7ffff000;

static uint64_t time_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t pace_now_ns(void)
{
    return time_ns(CLOCK_MONOTONIC);
}

/* --- The grant ------------------------------------------------------------------ */

static uint64_t bytes_in(uint64_t rate, uint64_t duration_ns)
{
    return (uint64_t)(((uint128)rate * duration_ns) >> RATE_SHIFT);
}

/* Nanoseconds until `rate` has served `bytes`, at most one slice. */
static uint64_t time_for(uint64_t bytes, uint64_t rate)
{
    if (bytes_in(rate, SLICE_NS) <= bytes)
        return SLICE_NS;
    return (uint64_t)((((uint128)bytes << RATE_SHIFT) + rate - 1) / rate);
}

static bool read_curve(struct page_curve *curve, struct grant *grant)
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

/* Continue the curve beyond the lease with the floor. */
static bool past_lease(struct grant *grant, uint64_t lease_ns, uint64_t floor)
{
    if (floor == RATE_UNLIMITED)
        return false;
    if (lease_ns > grant->from_ns) {
        grant->granted_bytes += bytes_in(grant->rate, lease_ns - grant->from_ns);
        grant->from_ns = lease_ns;
    }
    grant->rate = floor;
    return true;
}

/* Read the grant in force; false: there is no limit. */
static bool read_grant(struct page_bucket *bucket, uint64_t now, struct grant *grant)
{
    uint64_t lease = LOAD(attached_page->lease_ns);
    grant->grant_number =
        atomic_load_explicit(&bucket->grant_number, memory_order_acquire);
    if (RARELY(!read_curve(&bucket->curve[grant->grant_number & 1], grant)))
        return false;
    if (grant->rate == RATE_UNLIMITED)
        return false;
    if (LIKELY(now < lease && lease - now <= LEASE_MAX_NS))
        return true;
    return now >= lease && past_lease(grant, lease, LOAD(attached_page->floor_rate));
}

static uint64_t granted_at(const struct grant *grant, uint64_t now)
{
    uint64_t since = now > grant->from_ns ? now - grant->from_ns : 0;
    return grant->granted_bytes + bytes_in(grant->rate, since);
}

static bool is_ahead(uint64_t tag, uint64_t granted)
{
    return (int64_t)(tag - granted) > 0;
}

/* --- Charging ------------------------------------------------------------------- */

/* Charge `size` bytes and return the start tag. The one compare-and-swap of a call. */
static uint64_t charge(struct paced_call *call, uint64_t size)
{
    uint64_t least = call->granted - call->credit;
    uint64_t charged = LOAD(call->bucket->charged_bytes);
    uint64_t start;
    do
        start = is_ahead(charged, least) ? charged : least;
    while (!atomic_compare_exchange_weak_explicit(
        &call->bucket->charged_bytes, &charged, start + size, memory_order_relaxed,
        memory_order_relaxed));
    return start;
}

/* The call is not made: its thread is cancelled, or it goes to a journal. */
static void abandon(void *of)
{
    struct paced_call *call = of;
    SUBTRACT(call->bucket->charged_bytes, call->reserved);
    ADD(call->class->ended_calls, 1);
}

/* --- Waiting -------------------------------------------------------------------- */

static void sleep_until(struct page_bucket *bucket, uint32_t turn, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    raw_call(SYS_futex, (long)&bucket->grant_number, FUTEX_WAIT_BITSET, (long)turn,
             (long)&until, 0, (long)FUTEX_BITSET_MATCH_ANY);
}

/* When this thread last looked at the page in a wait, 0 outside. A call that comes
 * soon after is made by a signal handler: it must not wait. One that comes later is made
 * after a longjmp out of the handler: it may. */
static __thread uint64_t waiting_ns;
static const uint64_t HANDLER_NS = 1000000000;

/* What cannot go to the file now can go to a journal: nobody waits for that. */
static bool is_relieved(const struct paced_call *call)
{
    return call->may_stage && pace_wants_staging();
}

/* Sleep until the grant has reached `tag` and is not paused. */
static SLOW void sleep_for(struct paced_call *call, uint64_t tag, bool cancellable)
{
    struct page_class *class = call->class;
    struct grant grant;
    uint64_t now = pace_now_ns();
    while (LOAD(attached_page->mode) == MODE_CONTROL && !LOAD(seccomp_active) &&
           !is_relieved(call) && read_grant(call->bucket, now, &grant)) {
        uint64_t granted = granted_at(&grant, now);
        uint64_t debt = is_ahead(tag, granted) ? tag - granted : 0;
        if (debt == 0 && grant.rate > 0)
            break;
        waiting_ns = now;
        STORE(class->heartbeat_ns, now);
        STORE(class->last_active_ns, now);
        sleep_until(call->bucket, grant.grant_number,
                    now + time_for(debt + 1, grant.rate));
        uint64_t woken = pace_now_ns();
        ADD(class->held_up_ns, woken - now);
        now = woken;
        if (cancellable)
            pthread_testcancel();
    }
}

static void stop_waiting(void *of)
{
    struct paced_call *call = of;
    SUBTRACT(call->class->waiting_calls, 1);
    waiting_ns = 0;
}

static SLOW void wait_for(struct paced_call *call, uint64_t tag, bool cancellable)
{
    if (waiting_ns != 0 && pace_now_ns() - waiting_ns < HANDLER_NS)
        return;
    ADD(call->class->waiting_calls, 1);
    pthread_cleanup_push(stop_waiting, call);
    sleep_for(call, tag, cancellable);
    pthread_cleanup_pop(1);
}

/* Note the wait that a dry run does not make, and forgive the debt as the wait would
 * have. */
static SLOW void foresee(struct paced_call *call, uint64_t finish)
{
    struct grant grant;
    uint64_t now = pace_now_ns();
    if (!read_grant(call->bucket, now, &grant) || grant.rate == 0)
        return;
    uint64_t granted = granted_at(&grant, now);
    uint64_t debt = is_ahead(finish, granted) ? finish - granted : 0;
    ADD(call->class->held_up_ns,
        (uint64_t)(((uint128)debt << RATE_SHIFT) / grant.rate));
    SUBTRACT(call->bucket->charged_bytes, debt);
}

/* Wait until `finish` is paid, unless so little is owed that it is carried on. */
static void pay(struct paced_call *call, uint64_t finish)
{
    if (!is_ahead(finish, call->granted + call->slack))
        return;
    if (LOAD(attached_page->mode) == MODE_DRY_RUN)
        foresee(call, finish);
    else
        wait_for(call, finish, false);
}

/* --- A call from begin to end ------------------------------------------------------ */

static void call_agent(void)
{
    raw_call(SYS_futex, (long)&attached_page->posts, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static void wake_agent(void)
{
    ADD(attached_page->posts, 1);
    call_agent();
}

static bool is_idle(uint64_t last, uint64_t now)
{
    return now > last && now - last > LOAD(attached_page->gap_ns);
}

/* A phase is the job's: the gap between two reads may be full of writes. */
static bool job_is_idle(uint64_t now)
{
    for (int i = 0; i < PACED_CLASSES; i++)
        if (!is_idle(LOAD(attached_page->classes[i].last_active_ns), now))
            return false;
    return true;
}

/* Note the first call of a class after a gap, and of a phase if it is the job's first.
 * The phase is there before others can see that it has begun. */
static SLOW void resume(struct page_class *class, uint64_t last, uint64_t now)
{
    bool first = job_is_idle(now);
    if (first)
        STORE(attached_page->phase_begin_ns, now);
    if (!atomic_compare_exchange_strong(&class->last_active_ns, &last, now))
        return;
    STORE(class->resumed_ns, now);
    if (first)
        wake_agent();
}

static void note_begin(struct page_class *class, uint64_t now)
{
    ADD(class->begun_calls, 1);
    uint64_t last = atomic_load_explicit(&class->last_active_ns, memory_order_acquire);
    if (RARELY(is_idle(last, now)))
        resume(class, last, now);
}

/* What a gap may keep of the grant: nothing from before the phase. */
static uint64_t credit_at(const struct grant *grant, uint64_t now)
{
    uint64_t begun = LOAD(attached_page->phase_begin_ns);
    uint64_t since = bytes_in(grant->rate, now > begun ? now - begun : 0);
    return since < grant->credit_bytes ? since : grant->credit_bytes;
}

static struct page_bucket *bucket_of(enum io_class class)
{
    enum io_class paced = class == CLASS_DRAIN ? CLASS_WRITE : class;
    uint32_t index = LOAD(attached_page->bucket_of[paced]);
    return index < BUCKETS ? &attached_page->buckets[index] : NULL;
}

/* Begin a visit; false if it is not paced. */
static bool enter(struct paced_call *call, enum io_class class, bool may_stage)
{
    call->may_stage = may_stage;
    if (LOAD(attached_page->mode) == MODE_OFF || LOAD(seccomp_active))
        return false;
    uint64_t now = pace_now_ns();
    struct grant grant;
    call->class = &attached_page->classes[class];
    if (class == CLASS_DRAIN)
        ADD(call->class->begun_calls,
            1); /* the program does nothing: no phase begins */
    else
        note_begin(call->class, now);
    call->bucket = bucket_of(class);
    if (call->bucket == NULL || !read_grant(call->bucket, now, &grant)) {
        call->bucket = NULL;
        return false;
    }
    call->granted = granted_at(&grant, now);
    call->credit = credit_at(&grant, now);
    call->slack = grant.slack_bytes;
    call->paused = grant.rate == 0;
    call->start = call->granted;
    call->reserved = 0;
    return true;
}

/* Wait before the call; like the call itself this is a cancellation point. False: it is
 * to be staged. */
static SLOW bool queue(struct paced_call *call)
{
    if (LOAD(attached_page->mode) != MODE_CONTROL)
        return true;
    pthread_cleanup_push(abandon, call);
    wait_for(call, call->start, true);
    pthread_cleanup_pop(0);
    if (!is_relieved(call))
        return true;
    abandon(call);
    call->class = NULL;
    return false;
}

bool pace_begin_sized(struct paced_call *call, enum io_class class, size_t size,
                      bool may_stage)
{
    if (!enter(call, class, may_stage))
        return true;
    call->reserved = size < CALL_MAX_BYTES ? size : CALL_MAX_BYTES;
    call->start = charge(call, call->reserved);
    if (RARELY(call->paused || is_ahead(call->start, call->granted + call->slack)))
        return queue(call);
    return true;
}

bool pace_begin(struct paced_call *call, enum io_class class, bool may_stage)
{
    return !enter(call, class, may_stage) || LIKELY(!call->paused) || queue(call);
}

/* Correct a reservation to what was moved, or charge it now; return the finish tag. */
static uint64_t settle(struct paced_call *call, size_t moved)
{
    if (call->reserved == 0)
        call->start = charge(call, moved);
    else if (RARELY(call->reserved != moved))
        SUBTRACT(call->bucket->charged_bytes, call->reserved - moved);
    return call->start + moved;
}

static void note_end(struct page_class *class)
{
    ADD(class->ended_calls, 1);
    STORE(class->last_active_ns, time_ns(CLOCK_MONOTONIC_COARSE));
}

void pace_end(struct paced_call *call, size_t moved)
{
    ADD(call->class->moved_bytes, moved);
    if (call->bucket != NULL) {
        uint64_t finish = settle(call, moved);
        if (moved > 0)
            pay(call, finish);
    }
    note_end(call->class);
}

void pace_end_async(struct paced_call *call, size_t moved)
{
    ADD(call->class->moved_bytes, moved);
    if (call->bucket != NULL)
        settle(call, moved);
    note_end(call->class);
}

void pace_count_metadata(void)
{
    if (LOAD(attached_page->mode) != MODE_OFF)
        ADD(attached_page->classes[CLASS_META].ended_calls, 1);
}

/* --- Staging ------------------------------------------------------------------------ */

void pace_note_absorbed(void)
{
    if (LOAD(attached_page->mode) == MODE_OFF || LOAD(seccomp_active))
        return;
    struct page_class *class = &attached_page->classes[CLASS_WRITE];
    note_begin(class, pace_now_ns());
    note_end(class);
}

bool pace_wants_staging(void)
{
    if (LOAD(attached_page->mode) != MODE_CONTROL ||
        LOAD(attached_page->staging.mode) != STAGING_WRITES)
        return false;
    uint64_t lease = LOAD(attached_page->lease_ns), now = pace_now_ns();
    return now < lease && lease - now <= LEASE_MAX_NS;
}

uint64_t pace_drain_step_bytes(void)
{
    const uint64_t STEP_NS = 20000000, LEAST_BYTES = 256 << 10;
    struct grant grant;
    struct page_bucket *bucket = bucket_of(CLASS_DRAIN);
    if (LOAD(attached_page->mode) != MODE_CONTROL || bucket == NULL ||
        !read_grant(bucket, pace_now_ns(), &grant))
        return UINT64_MAX;
    uint64_t bytes = bytes_in(grant.rate, STEP_NS);
    return bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

bool pace_drainer_is_alive(void)
{
    const uint64_t FRESH_NS = UINT64_C(5000000000);
    uint64_t seen = LOAD(attached_page->classes[CLASS_DRAIN].heartbeat_ns),
             now = pace_now_ns();
    return seen != 0 && now - seen < FRESH_NS;
}

/* --- What the program says ---------------------------------------------------------- */

static bool is_heard(void)
{
    return attached_page != NULL && LOAD(attached_page->mode) != MODE_OFF &&
           !LOAD(seccomp_active);
}

/* It posts an operation before its first byte: who decides knows the volume by then. */
void pace_announce_phase(uint64_t volume)
{
    if (!is_heard())
        return;
    ADD(attached_page->announced_bytes, volume);
    STORE(attached_page->announced_at_ns, pace_now_ns());
    atomic_fetch_add_explicit(&attached_page->phases_begun, 1, memory_order_release);
    wake_agent();
}

/* No post: if the operation is known to be over, this must not begin another. */
void pace_announce_end(void)
{
    if (!is_heard())
        return;
    STORE(attached_page->announced_at_ns, pace_now_ns());
    atomic_fetch_add_explicit(&attached_page->phases_ended, 1, memory_order_release);
    call_agent();
}
