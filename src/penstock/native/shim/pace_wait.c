/* SPDX-License-Identifier: MIT
 *
 * Waiting: sleeps, turns and signals.
 *
 * A call waits without holding any lock, and nobody has to wake it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "pace_tags.h"

/* A waiting call looks at the page again after this time at the latest. Nobody wakes
 * it: the only sleep that misses no signal (ppoll) knows no futex. */
static const uint64_t LOOK_NS = 20000000;

/* A signal ends a wait only while the job owes no more than what the rate grants in
 * this time, and these bytes. */
static const uint64_t DEBT_NS = 2000000000;
static const uint64_t DEBT_LEAST_BYTES = 1 << 20;

enum { SIGNAL_MASK_BYTES = 8 }; /* of the kernel */

static void set_signal_mask(const uint64_t *mask, uint64_t *former)
{
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)mask, (long)former,
             SIGNAL_MASK_BYTES, 0, 0);
}

/* While a call waits, all signals are blocked but during its sleeps. So every handler
 * runs during a sleep, and none is missed. */
static void block_signals(struct paced_call *call)
{
    const uint64_t all = UINT64_MAX;
    set_signal_mask(&all, &call->signal_mask);
}

/* Sleep, with the signals of the program; true if a handler has run. */
static bool sleep_for_ns(const struct paced_call *call, uint64_t duration_ns)
{
    struct timespec duration = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                                .tv_nsec = (long)(duration_ns % 1000000000u)};
    return raw_call(SYS_ppoll, 0, 0, (long)&duration, (long)&call->signal_mask,
                    SIGNAL_MASK_BYTES, 0) == -EINTR;
}

/* When this thread last looked at the page during a wait; 0 while it does not wait. A
 * call within HANDLER_NS of that time comes from a signal handler that interrupted the
 * wait, and must not wait itself. A later call comes after a longjmp out of the
 * handler, and may wait. */
static __thread uint64_t waiting_since_ns;
static const uint64_t HANDLER_NS = 1000000000;

/* Return true if the debt of the job is small enough for a signal to end a wait. */
static bool may_owe_more(const struct page_bucket *bucket, const struct grant *grant,
                         uint64_t granted)
{
    uint64_t most =
        turn_bytes(grant->rate, 0) + bytes_in(grant->rate, DEBT_NS) + DEBT_LEAST_BYTES;
    return !is_ahead(LOAD(bucket->charged_bytes), granted + most);
}

/* Return how long `rate` needs to grant `bytes` (ns), at most LOOK_NS. */
static uint64_t time_to_grant_ns(uint64_t bytes, uint64_t rate)
{
    if (bytes_in(rate, LOOK_NS) <= bytes)
        return LOOK_NS;
    return (uint64_t)((((uint128)bytes << RATE_SHIFT) + rate - 1) / rate);
}

/* Return when a call that is paused since `waited_ns` looks at the page again: after a
 * short pause it goes on soon, after a long one within LOOK_NS. */
static uint64_t pause_look_ns(uint64_t waited_ns)
{
    const uint64_t LEAST_NS = 200000;
    uint64_t look_ns = waited_ns / 8 > LEAST_NS ? waited_ns / 8 : LEAST_NS;
    return look_ns < LOOK_NS ? look_ns : LOOK_NS;
}

/* Sleep until the grant has reached `tag` and is not paused. False: the call must not
 * wait any longer, because there is no limit now or a signal has come. */
static bool sleep_until(struct paced_call *call, uint64_t tag, bool cancellable)
{
    struct page_class *class = call->class;
    struct grant grant;
    uint64_t begin_ns = pace_now_ns(), now_ns = begin_ns;
    while (LOAD(attached_page->mode) == MODE_CONTROL && !LOAD(seccomp_active) &&
           !can_stage_now(call) && read_grant(call->bucket, now_ns, &grant)) {
        uint64_t granted = granted_at(&grant, now_ns);
        uint64_t debt = is_ahead(tag, granted) ? tag - granted : 0;
        if (debt == 0 && grant.rate > 0)
            return true;
        if (call->interrupted && may_owe_more(call->bucket, &grant, granted))
            return false;
        waiting_since_ns = now_ns;
        STORE(class->heartbeat_ns, now_ns);
        STORE(class->last_active_ns, now_ns);
        if (sleep_for_ns(call, grant.rate == 0
                                   ? pause_look_ns(now_ns - begin_ns)
                                   : time_to_grant_ns(debt + 1, grant.rate)))
            call->interrupted = true;
        uint64_t woken_ns = pace_now_ns();
        ADD(class->held_up_ns, woken_ns - now_ns);
        now_ns = woken_ns;
        if (cancellable)
            pthread_testcancel();
    }
    return false;
}

/* Return true in a child that was forked by a signal handler during the wait: it goes
 * on with a copy of its parent's call. */
static bool is_copy(const struct paced_call *call)
{
    return call->waiting_process != raw_getpid();
}

/* Sleep until the grant has reached `tag`; then charge the rest of the call and sleep
 * for it, slice by slice. */
static void sleep_in_turns(struct paced_call *call, uint64_t tag, bool cancellable)
{
    while (sleep_until(call, tag, cancellable) && call->rest_bytes > 0 &&
           !is_copy(call) && renew_grant(call)) {
        uint64_t bytes = slice_of(call, call->rest_bytes);
        tag = charge(call, bytes) + bytes;
        call->rest_bytes -= bytes;
    }
}

static void stop_waiting(void *argument)
{
    struct paced_call *call = argument;
    if (!is_copy(call))
        SUBTRACT(call->class->waiting_calls, 1);
    waiting_since_ns = 0;
    set_signal_mask(&call->signal_mask, NULL);
}

SLOW bool pace_wait_for(struct paced_call *call, uint64_t tag, bool cancellable)
{
    if (waiting_since_ns == 0 || pace_now_ns() - waiting_since_ns >= HANDLER_NS) {
        call->waiting_process = raw_getpid();
        block_signals(call);
        ADD(call->class->waiting_calls, 1);
        pthread_cleanup_push(stop_waiting, call);
        sleep_in_turns(call, tag, cancellable);
        pthread_cleanup_pop(1);
        if (is_copy(call)) {
            ADD(call->class->begun_calls, 1); /* the call ends in both processes */
            return false;
        }
    }
    if (call->rest_bytes > 0)
        charge_in_order(call, call->rest_bytes);
    return true;
}
