/* SPDX-License-Identifier: MIT
 *
 * Charging and counting in the page. page.h has the equations and the memory ordering,
 * pace_tags.h the arithmetic, pace_wait.c the waiting.
 *
 * A call goes through
 *
 *     pace_begin or pace_begin_sized   count it, read the grant, perhaps wait
 *     the call itself
 *     pace_end                         count its bytes, charge them, perhaps wait
 *
 * With free_cached_reads or free_absorbed_writes, a call is judged when it ends: what
 * memory served (cache.c) is neither charged nor held up, and is no activity of the
 * job. A call that is expected to stay in memory is not counted when it begins.
 *
 * Or, if it makes written data durable and moves no bytes of its own, through
 *
 *     pace_begin_sync, the call itself, pace_end_sync
 *
 * A large call is charged slice by slice, but made in one piece.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "pace_tags.h"

/* The kernel moves at most this many bytes in one call (MAX_RW_COUNT). */
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

/* --- Begin and end of a call ---------------------------------------------------- */

/* Ring the bell of the user, which tells the agent to look at this page. */
static void wake_agent(void)
{
    struct penstock_bell *bell = attached_bell;
    if (bell == NULL)
        return;
    ADD(bell->posts[attached_bell_slot - 1], 1);
    atomic_fetch_add_explicit(&bell->rings, 1, memory_order_release);
    raw_call(SYS_futex, (long)&bell->rings, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

/* Tell the agent that an operation begins. */
static void post(void)
{
    ADD(attached_page->operations_begun, 1);
    wake_agent();
}

static bool is_gap(uint64_t last_active_ns, uint64_t now_ns)
{
    return now_ns > last_active_ns &&
           now_ns - last_active_ns > LOAD(attached_page->gap_ns);
}

/* Return true if no paced class is active. An operation is of the job, not of a class:
 * a gap between two reads may be full of writes. */
static bool job_is_idle(uint64_t now_ns)
{
    for (int i = 0; i < PACED_CLASSES; i++)
        if (!is_gap(LOAD(attached_page->classes[i].last_active_ns), now_ns))
            return false;
    return true;
}

/* Count a gap inside an announced phase. Callers that pause together may begin before
 * the first of them gets here, so calls in flight do not show that there was none. */
static void count_pause(struct page_class *class, uint64_t from_ns, uint64_t to_ns)
{
    const uint64_t TICK_NS = 10000000; /* the end of a call may be stamped too early */
    if (LOAD(attached_page->phases_begun) == LOAD(attached_page->phases_ended) ||
        from_ns + TICK_NS < LOAD(attached_page->announced_at_ns))
        return;
    ADD(class->pauses, 1);
    ADD(class->paused_ns, to_ns - from_ns);
}

/* Note the first call of a class after a gap; if the whole job was idle, an
 * operation begins. phase_begin_ns is stored first: see "Memory ordering" in page.h. */
static SLOW void note_resume(struct page_class *class, uint64_t last_active_ns,
                             uint64_t now_ns)
{
    bool begins_phase = job_is_idle(now_ns);
    if (begins_phase)
        STORE(attached_page->phase_begin_ns, now_ns);
    if (!atomic_compare_exchange_strong(&class->last_active_ns, &last_active_ns,
                                        now_ns))
        return; /* another call was first */
    STORE(class->resumed_ns, now_ns);
    if (begins_phase) {
        count_pause(class, last_active_ns, now_ns);
        post();
    }
}

INLINED void note_begin(struct page_class *class, uint64_t now_ns)
{
    ADD(class->begun_calls, 1);
    uint64_t last_active_ns =
        atomic_load_explicit(&class->last_active_ns, memory_order_acquire);
    if (RARELY(is_gap(last_active_ns, now_ns)))
        note_resume(class, last_active_ns, now_ns);
}

/* Return the credit of a call: unused grant, but none from before this operation. */
static uint64_t credit_at(const struct grant *grant, uint64_t now_ns)
{
    uint64_t begin_ns = LOAD(attached_page->phase_begin_ns);
    uint64_t in_phase =
        bytes_in(grant->rate, now_ns > begin_ns ? now_ns - begin_ns : 0);
    return in_phase < grant->credit_bytes ? in_phase : grant->credit_bytes;
}

static struct page_bucket *bucket_of(enum io_class class)
{
    enum io_class paced = class == CLASS_DRAIN ? CLASS_WRITE : class;
    uint32_t index = LOAD(attached_page->bucket_of[paced]);
    return index < BUCKETS ? &attached_page->buckets[index] : NULL;
}

static bool is_counting(void)
{
    return LOAD(attached_page->mode) != MODE_OFF && !LOAD(seccomp_active);
}

/* Return true if a call is charged only if it reaches the storage. */
INLINED bool is_judged(const struct paced_call *call, enum io_class class)
{
    return call->fd >= 0 &&
           ((class == CLASS_READ && LIKELY(LOAD(attached_page->free_cached_reads))) ||
            (class == CLASS_WRITE &&
             RARELY(LOAD(attached_page->free_absorbed_writes))));
}

/* Begin a judged call that is expected to stay in memory; false: begin it as others. */
static APART bool begin_in_memory(struct paced_call *call, enum io_class class,
                                  size_t size)
{
    if (!is_counting())
        return false;
    call->begin_ns = pace_now_ns();
    enum cache_expectation expectation =
        cache_expect(call->fd, class, size, call->begin_ns);
    call->uncertain = expectation == EXPECT_EITHER;
    if (expectation != EXPECT_MEMORY)
        return false;
    call->class = &attached_page->classes[class];
    call->bucket = NULL;
    call->begun = false;
    call->interrupted = false;
    return true;
}

bool pace_begin_unknown(struct paced_call *call, int fd, size_t size)
{
    const size_t LARGE_BYTES = 1 << 20;
    if (attached_page == NULL || !LOAD(attached_page->free_cached_reads) ||
        !is_counting() || LOAD(stage_enabled) || size >= LARGE_BYTES)
        return false;
    cache_begin_unknown();
    call->fd = fd;
    call->class = &attached_page->classes[CLASS_READ];
    call->bucket = NULL;
    call->judged = call->unknown = true;
    call->begun = call->interrupted = false;
    call->begin_ns = pace_now_ns();
    return true;
}

/* Count the begin of a call and read its grant; false if the call is not paced. */
static bool start(struct paced_call *call, enum io_class class, bool may_stage)
{
    call->may_stage = may_stage;
    if (!is_counting())
        return false;
    uint64_t now_ns = pace_now_ns();
    struct grant grant;
    call->begin_ns = now_ns;
    call->begun = true;
    call->class = &attached_page->classes[class];
    if (class == CLASS_DRAIN)
        ADD(call->class->begun_calls, 1); /* a drain begins no operation of the job */
    else
        note_begin(call->class, now_ns);
    call->bucket = bucket_of(class);
    if (call->bucket == NULL || !read_grant(call->bucket, now_ns, &grant)) {
        call->bucket = NULL;
        return false;
    }
    take_grant(call, &grant, now_ns);
    call->least_tag = call->granted_bytes - credit_at(&grant, now_ns);
    call->start_tag = call->granted_bytes;
    call->reserved_bytes = 0;
    call->rest_bytes = 0;
    call->interrupted = false;
    return true;
}

/* Return the reservation of a call that is not made, because its thread was cancelled
 * or a journal takes the write. */
static void cancel(void *argument)
{
    struct paced_call *call = argument;
    SUBTRACT(call->bucket->charged_bytes, call->reserved_bytes);
    ADD(call->class->ended_calls, 1);
}

/* Wait until the call may begin. This is a cancellation point, as the call itself is.
 * False: the write is to be staged instead. */
static SLOW bool wait_for_start(struct paced_call *call)
{
    if (LOAD(attached_page->mode) != MODE_CONTROL)
        return true;
    bool same_process;
    pthread_cleanup_push(cancel, call);
    same_process = pace_wait_for(call, call->start_tag, true);
    pthread_cleanup_pop(0);
    call->begin_ns = pace_now_ns();
    if (!same_process)
        call->reserved_bytes = 0; /* the child makes a call of its own */
    if (call->judged)
        cache_note_wait();
    if (!can_stage_now(call))
        return true;
    cancel(call);
    call->class = NULL;
    return false;
}

/* Begin a call of `size` bytes. A slice is charged first, or all if these are not more
 * than `whole_bytes`. */
INLINED bool begin_reserved(struct paced_call *call, enum io_class class, size_t size,
                            bool may_stage, size_t whole_bytes)
{
    call->uncertain = call->unknown = false;
    call->judged = is_judged(call, class);
    if (RARELY(call->judged) && begin_in_memory(call, class, 0))
        return true;
    if (!start(call, class, may_stage))
        return true;
    size = size < CALL_MAX_BYTES ? size : CALL_MAX_BYTES;
    call->reserved_bytes = size <= whole_bytes ? size : slice_of(call, size);
    call->start_tag = charge(call, call->reserved_bytes);
    if (RARELY(call->rate == 0 || is_due_later(call, call->start_tag)))
        return wait_for_start(call);
    return true;
}

bool pace_begin_sized(struct paced_call *call, enum io_class class, size_t size,
                      bool may_stage)
{
    return begin_reserved(call, class, size, may_stage, 0);
}

/* Least bytes of a step of a drain, unless its records are smaller. */
enum { DRAIN_STEP_LEAST_BYTES = 64 << 10 };

void pace_begin_step(struct paced_call *call, enum io_class class, size_t size)
{
    begin_reserved(call, class, size, false, DRAIN_STEP_LEAST_BYTES);
}

bool pace_begin(struct paced_call *call, enum io_class class, size_t size,
                bool may_stage)
{
    call->uncertain = call->unknown = false;
    call->judged = is_judged(call, class);
    if (call->judged && begin_in_memory(call, class, size))
        return true;
    return !start(call, class, may_stage) || LIKELY(call->rate > 0) ||
           call->uncertain || wait_for_start(call);
}

bool pace_has_limit(enum io_class class)
{
    struct grant grant;
    struct page_bucket *bucket = bucket_of(class);
    return is_counting() && bucket != NULL && read_grant(bucket, pace_now_ns(), &grant);
}

/* The request is charged whole and waits behind all debt: nobody waits for its end. */
void pace_begin_async(struct paced_call *call, enum io_class class, size_t size)
{
    call->judged = false; /* it goes on when nobody can judge it */
    if (!start(call, class, false))
        return;
    call->reserved_bytes = size < CALL_MAX_BYTES ? size : CALL_MAX_BYTES;
    call->start_tag = charge_in_order(call, call->reserved_bytes);
    if (call->rate == 0 || is_due_later(call, call->start_tag))
        wait_for_start(call);
}

/* Dry run: charge the rest of a call, count the time that the call would have waited,
 * and drop the debt that the wait would have paid. */
static void count_wait(struct paced_call *call, uint64_t finish_tag)
{
    struct grant grant;
    uint64_t now_ns = pace_now_ns();
    if (call->rest_bytes > 0)
        finish_tag = charge_in_order(call, call->rest_bytes) + call->rest_bytes;
    if (!read_grant(call->bucket, now_ns, &grant) || grant.rate == 0)
        return;
    uint64_t granted = granted_at(&grant, now_ns);
    uint64_t debt = is_ahead(finish_tag, granted) ? finish_tag - granted : 0;
    ADD(call->class->would_hold_up_ns,
        (uint64_t)(((uint128)debt << RATE_SHIFT) / grant.rate));
    SUBTRACT(call->bucket->charged_bytes, debt);
}

static SLOW void wait_for_finish(struct paced_call *call, uint64_t finish_tag)
{
    if (LOAD(attached_page->mode) == MODE_DRY_RUN)
        count_wait(call, finish_tag);
    else
        pace_wait_for(call, finish_tag, false);
}

/* Charge the first slice of the bytes moved, or correct the reservation to them; note
 * the rest. Return the finish tag of what is charged. */
INLINED uint64_t charge_moved(struct paced_call *call, size_t moved_bytes)
{
    uint64_t charged = call->reserved_bytes;
    if (charged == 0) {
        charged = slice_of(call, moved_bytes);
        call->start_tag = charge(call, charged);
    } else if (RARELY(charged > moved_bytes)) {
        SUBTRACT(call->bucket->charged_bytes, charged - moved_bytes);
        charged = moved_bytes;
    }
    call->rest_bytes = moved_bytes - charged;
    return call->start_tag + charged;
}

INLINED void note_end(struct page_class *class, uint64_t now_ns)
{
    ADD(class->ended_calls, 1);
    STORE(class->last_active_ns, now_ns);
}

/* Count the time inside the call and return the time now. The exact clock costs 20 ns,
 * the coarse one 5 ns: a small call during which the coarse clock did not tick is timed
 * only once in SAMPLED_CALLS, and then counts for all of these. */
INLINED uint64_t count_busy(struct paced_call *call, size_t moved_bytes)
{
    enum { SAMPLED_CALLS = 8, SMALL_BYTES = 16 << 10 };
    static __thread unsigned small_calls;
    uint64_t now_ns = time_ns(CLOCK_MONOTONIC_COARSE);
    bool sampled = moved_bytes < SMALL_BYTES && now_ns < call->begin_ns;
    if (sampled && ++small_calls % SAMPLED_CALLS != 0)
        return now_ns;
    now_ns = pace_now_ns();
    ADD(call->class->busy_ns,
        (now_ns - call->begin_ns) * (sampled ? SAMPLED_CALLS : 1));
    return now_ns;
}

/* Count what the call itself did; the file is dirty after a write. Returns the time. */
INLINED uint64_t count_moved(struct paced_call *call, size_t moved_bytes)
{
    ADD(call->class->moved_bytes, moved_bytes);
    if (call->class == &attached_page->classes[CLASS_WRITE] && moved_bytes > 0)
        identity_mark_dirty(call->fd);
    return count_busy(call, moved_bytes);
}

/* Charge the bytes moved and wait until the grant covers them. Returns the time, which
 * was `now_ns` before. */
INLINED uint64_t finish(struct paced_call *call, size_t moved_bytes, uint64_t now_ns)
{
    if (call->bucket == NULL)
        return now_ns;
    uint64_t finish_tag = charge_moved(call, moved_bytes);
    bool must_wait = call->rest_bytes > 0 || is_due_later(call, finish_tag);
    if (LIKELY(!must_wait || moved_bytes == 0))
        return now_ns;
    wait_for_finish(call, finish_tag);
    return pace_now_ns();
}

/* End a call that is charged only as far as it has reached the storage. */
static APART void end_judged(struct paced_call *call, size_t moved_bytes)
{
    enum io_class class = (enum io_class)(call->class - attached_page->classes);
    uint64_t now_ns = pace_now_ns(), busy_ns = now_ns - call->begin_ns;
    if (call->unknown) {
        if (!cache_must_look_up(call->fd, moved_bytes, busy_ns) ||
            !identity_is_controlled(call->fd))
            return;
        cache_add_unknown(call->fd);
    }
    struct cache_split split =
        cache_split(call->fd, class, moved_bytes, call->begin_ns, now_ns);
    if (split.memory_bytes > 0)
        ADD(call->class->memory_bytes, split.memory_bytes);
    if (class == CLASS_WRITE && moved_bytes > 0)
        identity_mark_dirty(call->fd);
    if (split.storage_bytes > 0 && !call->begun)
        start(call, class, false);
    if (!call->begun)
        return;
    if (split.storage_bytes > 0) {
        ADD(call->class->moved_bytes, split.storage_bytes);
        ADD(call->class->busy_ns, busy_ns);
        uint64_t end_ns = finish(call, split.storage_bytes, now_ns);
        if (end_ns != now_ns)
            cache_note_wait();
        note_end(call->class, end_ns);
    } else {
        finish(call, 0, now_ns);
        ADD(call->class->ended_calls, 1);
    }
}

/* End a call that is charged for all that it has moved. */
static APART void end_charged(struct paced_call *call, size_t moved_bytes)
{
    uint64_t now_ns = count_moved(call, moved_bytes);
    note_end(call->class, finish(call, moved_bytes, now_ns));
}

void pace_end(struct paced_call *call, size_t moved_bytes)
{
    if (call->judged)
        end_judged(call, moved_bytes);
    else
        end_charged(call, moved_bytes);
}

void pace_end_merge(struct paced_call *call, size_t moved_bytes)
{
    ADD(attached_page->staging.merged_bytes, moved_bytes);
    uint64_t now_ns = count_busy(call, moved_bytes);
    note_end(call->class, finish(call, moved_bytes, now_ns));
}

void pace_end_async(struct paced_call *call, size_t moved_bytes)
{
    uint64_t now_ns = count_moved(call, moved_bytes);
    if (call->bucket != NULL) {
        charge_moved(call, moved_bytes);
        if (call->rest_bytes > 0)
            charge_in_order(call, call->rest_bytes);
    }
    note_end(call->class, now_ns);
}

void pace_begin_sync(struct paced_call *call)
{
    if (!is_counting())
        return;
    call->class = &attached_page->classes[CLASS_WRITE];
    call->begin_ns = pace_now_ns();
    note_begin(call->class, call->begin_ns);
}

void pace_end_sync(struct paced_call *call)
{
    uint64_t now_ns = pace_now_ns();
    ADD(call->class->busy_ns, now_ns - call->begin_ns);
    note_end(call->class, now_ns);
}

/* --- Staging -------------------------------------------------------------------- */

void pace_note_absorbed(void)
{
    if (!is_counting())
        return;
    struct page_class *class = &attached_page->classes[CLASS_WRITE];
    uint64_t now_ns = pace_now_ns();
    note_begin(class, now_ns);
    note_end(class, now_ns);
}

static bool has_lease(void)
{
    if (LOAD(attached_page->mode) != MODE_CONTROL)
        return false;
    uint64_t lease_ns = LOAD(*attached_lease_ns), now_ns = pace_now_ns();
    return now_ns < lease_ns && lease_ns - now_ns <= LEASE_MAX_NS;
}

bool pace_wants_staging(void)
{
    return LOAD(attached_page->staging.mode) == STAGING_WRITES && has_lease();
}

uint32_t pace_partition(void)
{
    uint32_t partition =
        atomic_load_explicit(&attached_page->staging.partition, memory_order_acquire);
    return partition != 0 && has_lease() ? partition : 0;
}

uint64_t pace_drain_step_bytes(uint32_t threads)
{
    const uint64_t STEP_NS = 20000000;
    struct grant grant;
    struct page_bucket *bucket = bucket_of(CLASS_DRAIN);
    if (LOAD(attached_page->mode) != MODE_CONTROL || bucket == NULL ||
        !read_grant(bucket, pace_now_ns(), &grant))
        return UINT64_MAX;
    uint64_t bytes = bytes_in(grant.rate, STEP_NS) / (threads > 0 ? threads : 1);
    return bytes > DRAIN_STEP_LEAST_BYTES ? bytes : DRAIN_STEP_LEAST_BYTES;
}

bool pace_drainer_is_alive(void)
{
    const uint64_t FRESH_NS = UINT64_C(5000000000);
    uint64_t heartbeat_ns = LOAD(attached_page->classes[CLASS_DRAIN].heartbeat_ns);
    return heartbeat_ns != 0 && pace_now_ns() - heartbeat_ns < FRESH_NS;
}

/* --- Announced operations ------------------------------------------------------- */

static bool accepts_announcements(void)
{
    return attached_page != NULL && is_counting();
}

/* The operation is posted before its first byte, so that the controller knows its
 * volume when it decides. */
void pace_announce_phase(uint64_t volume_bytes)
{
    if (!accepts_announcements())
        return;
    ADD(attached_page->announced_bytes, volume_bytes);
    STORE(attached_page->announced_at_ns, pace_now_ns());
    atomic_fetch_add_explicit(&attached_page->phases_begun, 1, memory_order_release);
    post();
}

/* The agent is woken without a post: a post would begin another operation. */
void pace_announce_end(void)
{
    if (!accepts_announcements())
        return;
    STORE(attached_page->announced_at_ns, pace_now_ns());
    atomic_fetch_add_explicit(&attached_page->phases_ended, 1, memory_order_release);
    wake_agent();
}
