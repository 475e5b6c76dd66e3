/* SPDX-License-Identifier: MIT
 *
 * The page: what a job's processes on one node share with the agent.
 *
 * One file of PAGE_SIZE bytes, mapped MAP_SHARED by the agent and by every process of
 * the job. There is no lock in it: every word is written by one side or changed by one
 * atomic operation, so that a process killed at any instant leaves a usable page.
 * All times are CLOCK_MONOTONIC in nanoseconds. penstock/live/node/page_layout.py has the same
 * layout; a test compares the two field by field.
 *
 * A bucket grants bytes by a curve, the integral of the granted rate:
 *
 *     G(t) = granted_bytes + rate (t - from_ns),
 *
 * and counts the bytes charged to it, S. A call of n bytes takes the tags
 *
 *     start = max(S, G(now) - credit),  finish = start + n,  S := finish,
 *
 * may begin when G(t) >= start and returns when G(t) >= finish. Bytes, not times, are
 * carried over: a change of rate serves the debt of the past at the new rate.
 */
#ifndef PENSTOCK_PAGE_H
#define PENSTOCK_PAGE_H

#include <stdint.h>

#define PAGE_MAGIC UINT64_C(0x6b636f74736e6570) /* "penstock" */
#define PAGE_VERSION 3u
#define PAGE_SIZE 4096u

/* Rates are in bytes per nanosecond, times 2^RATE_SHIFT. */
#define RATE_SHIFT 40
#define RATE_UNLIMITED UINT64_MAX

/* A lease that ends later than this is not believed: no program waits longer for an
 * agent that has died. */
#define LEASE_MAX_NS UINT64_C(60000000000)

enum page_mode { MODE_OFF = 0, MODE_DRY_RUN = 1, MODE_CONTROL = 2 };

/* Drains by a drainer are a class of their own: they say nothing of what the program
 * does. They draw on the bucket of the writes. */
enum io_class { CLASS_WRITE, CLASS_READ, CLASS_META, CLASS_DRAIN, CLASSES };

enum { PACED_CLASSES = 2, BUCKETS = 2, NO_BUCKET = 255, FOLDER_BYTES = 1024 };

/* The agent fills the curve that is not in use, then adds one to the bucket's turn.
 * `check` is the exclusive or of the other words and PAGE_MAGIC: whatever the order in
 * which another processor sees the stores, a torn curve is not taken for a good one. */
struct page_curve {
    _Atomic uint64_t from_ns;
    _Atomic uint64_t granted_bytes;
    _Atomic uint64_t rate;         /* 0: paused */
    _Atomic uint64_t credit_bytes; /* grant of this phase that a gap may keep */
    _Atomic uint64_t slack_bytes;  /* debt that is carried rather than slept */
    _Atomic uint64_t check;
    uint64_t unused[2];
};

struct page_bucket {
    _Atomic uint32_t turn; /* curve[turn & 1] holds; waiters sleep on this futex */
    uint32_t unused_word;
    _Atomic uint64_t charged_bytes; /* S */
    uint64_t unused[6];
    struct page_curve curve[2];
};

/* One cache line for each class: a call touches this and its bucket. */
struct page_class {
    _Atomic uint64_t entered;   /* calls begun, */
    _Atomic uint64_t calls;     /* ended: the difference is in flight, or was killed */
    _Atomic uint64_t bytes;     /* that the kernel took or gave */
    _Atomic uint64_t waited_ns; /* slept; in a dry run: that would have been slept */
    _Atomic uint64_t waiting;   /* callers asleep now, */
    _Atomic uint64_t beat_ns;   /* renewed while one sleeps: older is a dead sleeper;
                                 * by a drainer as long as it lives */
    _Atomic uint64_t last_ns;   /* latest sign of activity */
    _Atomic uint64_t first_ns;  /* first call of this class after a gap */
};

/* Staging: see journal.h. Zero in a page of an agent that does not know it. */
enum staging_mode { STAGING_NONE = 0, STAGING_WRITES = 1 };
enum folder_state { FOLDER_UNKNOWN, FOLDER_FILLED, FOLDER_KNOWN, FOLDERS_SEVERAL };

struct page_staging {
    _Atomic uint32_t mode; /* of a leased page: write through, or stage */
    _Atomic uint32_t folder_state;
    _Atomic uint64_t absorbed_bytes; /* written into journals; */
    _Atomic uint64_t drained_bytes;  /* out of them into files: charged as writes */
    _Atomic uint64_t refused;        /* files that could not be staged */
    uint64_t unused[4];
};

struct penstock_page {
    _Atomic uint64_t magic; /* written last by who creates the page */
    uint32_t version;
    uint32_t size;
    _Atomic uint32_t mode;
    _Atomic uint32_t posts;      /* I/O phases begun; the agent sleeps on this futex */
    _Atomic uint64_t lease_ns;   /* grants hold until then */
    _Atomic uint64_t floor_rate; /* and this rate afterwards */
    _Atomic uint64_t idle_ns;    /* a gap longer than this ends a phase */
    _Atomic uint32_t bucket_of[PACED_CLASSES];
    _Atomic uint64_t phase_ns; /* first call of the present phase, of any class */

    _Atomic uint64_t attached; /* processes that have mapped the page, ever */
    _Atomic uint64_t
        bypassed; /* set-ups seen of I/O that cannot be: io_uring, libaio */
    /* What the program says of its I/O phases; see penstock.h. Sums over processes. */
    _Atomic uint64_t announced_bytes;
    _Atomic uint64_t phases_begun;
    _Atomic uint64_t phases_ended; /* the difference goes on, or was killed */
    _Atomic uint64_t announced_ns; /* latest of these */
    uint64_t unused_line[2];

    struct page_class classes[CLASSES];
    struct page_bucket buckets[BUCKETS];
    struct page_staging staging;
    char folder[FOLDER_BYTES]; /* of the journals, written by the first who stages */
};

_Static_assert(sizeof(struct page_curve) == 64, "a curve is one cache line");
_Static_assert(sizeof(struct page_class) == 64, "a class is one cache line");
_Static_assert(sizeof(struct page_staging) == 64, "staging is one cache line");
_Static_assert(sizeof(struct page_bucket) == 192, "a bucket is three cache lines");
_Static_assert(sizeof(struct penstock_page) <= PAGE_SIZE, "all of it in one page");

#endif
