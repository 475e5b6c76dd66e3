/* SPDX-License-Identifier: MIT
 *
 * The gate: holds requests up until a scheduler and the limits let them go, and counts
 * them.
 *
 * All reads, writes and syncs of a mount pass one gate, and its metadata requests pass
 * another one: gate_enter(), the work, gate_leave(). A request that is held up waits in
 * a queue, not in a thread, so that thousands can wait; gate_park() hands it over, and
 * a thread of the gate's pool runs it later. Without a scheduler and limits the gate
 * only counts, without a lock.
 *
 * The scheduler orders requests, the limiter behind it delays them. To the scheduler
 * the limiter is the storage: requests that it has sent are outstanding until they
 * complete. So the total throughput is exactly the limit. Requests that move no data do
 * not pass the limiter.
 *
 * Order at equal times: an arrival or a completion first, then the scheduler is asked;
 * a wake-up is handled by the timer thread.
 *
 * All calls of the scheduler are made with the mutex of the gate held.
 */
#ifndef PENSTOCK_GATE_H
#define PENSTOCK_GATE_H

#include "limiter.h"
#include "meter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* qos/interface.py has the same numbers. An urgent request is KIND_URGENT to the
 * scheduler only, and KIND_METADATA elsewhere. */
enum kind {
    KIND_READ,
    KIND_WRITE,
    KIND_SYNC,
    KIND_METADATA,
    KINDS,
    KIND_URGENT = KINDS
};

enum { MAX_APPLICATIONS = 1024 };

/* The decisions about the order of requests, as function pointers. They never block,
 * allocate or call back. mount/data_path.py has the same struct. */
struct penstock_scheduler {
    void *state;
    /* A request of size_bytes (0: a sync, or metadata) arrives; `kind` is of enum kind.
     * Returns its slot; below 0 if the table is full: the request is then sent at once,
     * unscheduled. */
    int64_t (*arrive)(void *state, int64_t application, int64_t kind,
                      int64_t size_bytes, double now_s);
    /* Returns the slot of the next request to send now, or -1. */
    int64_t (*next)(void *state, double now_s);
    void (*complete)(void *state, int64_t slot, int64_t moved_bytes, double now_s);
    /* When next() must be called again although nothing happens; infinity: never. */
    double (*wake_s)(void *state);
};

/* A request at the gate; the caller owns it. */
struct passage {
    struct limited limited;
    struct passage *newer, *older; /* ring of waiting requests; or pool queue */
    void (*run)(struct passage *passage);
    enum kind kind;
    int application;
    int64_t slot; /* at the scheduler; below 0: none */
    double arrived_s;
    bool is_urgent;  /* a metadata request that must not wait */
    bool is_counted; /* It entered while the gate was active. */
    bool is_waiting, is_released, is_parked;
    bool is_refused; /* The gate was closed: answer with an error. */
};

/* Totals of one kind; mount/data_path.py has the same struct. */
struct tally {
    _Atomic int64_t requests;
    _Atomic int64_t moved_bytes;
    double held_up_s; /* under the mutex */
};

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t timer;
    atomic_bool is_active; /* There is a scheduler or a limit. */
    struct penstock_scheduler scheduler;
    bool has_scheduler, is_closed, is_ending;
    double sleeps_until_s;
    struct limiter limiter;
    struct passage **slots;
    int64_t slot_count;
    struct passage waiting; /* ring of waiting requests */
    int64_t waiting_count;
    int64_t waiting_by_application[MAX_APPLICATIONS];
    struct tally tallies[KINDS];
    struct meter *meters[MAX_APPLICATIONS]; /* NULL: not measured */
    pthread_t timer_thread;
    struct pool_queue *pool;
};

/* Return the time of the clock of the gate: CLOCK_MONOTONIC, in seconds. */
double gate_now(void);

/* `threads`: most threads for requests that do not run where they were read. */
int gate_init(struct gate *gate, int threads);
/* Start the timer, and a first thread for requests: if no further one can be started
 * later, requests wait for this one. Return 0 or an error number. */
int gate_start(struct gate *gate);

/* Register a request; set kind, application, limited.size_bytes and run before. Return
 * true if it may go now. Otherwise keep it, and call gate_park(). */
bool gate_enter(struct gate *gate, struct passage *passage);

/* Let a request wait without a thread. Return true if it may go already: then the
 * caller must run it. Otherwise the gate calls run() later in another thread. */
bool gate_park(struct gate *gate, struct passage *passage);

/* Count a completed request, and send what may go now. */
void gate_leave(struct gate *gate, struct passage *passage, int64_t moved_bytes);

/* Run a request in a thread of the pool. */
void gate_run_in_pool(struct gate *gate, struct passage *passage);

/* Send what may go now; the caller holds the mutex. */
void gate_dispatch(struct gate *gate);

/* Refuse all requests that wait and all that arrive later. */
void gate_close(struct gate *gate);

/* End the threads of the gate. */
void gate_end(struct gate *gate);

#endif
