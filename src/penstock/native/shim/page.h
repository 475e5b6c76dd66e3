/* SPDX-License-Identifier: MIT
 *
 * The page: the memory that the processes of a job share with the agent of their node.
 *
 * A page is a file of PAGE_SIZE bytes. Every process of the job maps it MAP_SHARED; the
 * agent reads and writes it with pread and pwrite (live/node/pages/page.py), because
 * the owner of the file could truncate it, which kills processes that touch the
 * mapping. live/node/pages/page_layout.py declares the same layout; a test compares
 * the two field by field.
 *
 * Units: times are CLOCK_MONOTONIC in nanoseconds, amounts are bytes, rates are bytes
 * per nanosecond times 2^RATE_SHIFT.
 *
 * Pacing
 * ------
 * A bucket grants bytes along a curve, the integral of the granted rate:
 *
 *     G(t) = granted_bytes + rate * (t - from_ns),
 *
 * and counts the bytes charged to it, S. A call of n bytes takes two tags,
 *
 *     start = max(S, G(now) - credit),   finish = start + n,   S := finish,
 *
 * begins when G(t) >= start and returns when G(t) >= finish. Debt is carried in bytes,
 * not in time: after a change of rate, old debt is served at the new rate.
 *
 * Turns: a call of more than one slice (20 ms at the granted rate, at least 4096 bytes)
 * is made in one piece, but takes tags for one slice after the other: for the first
 * slice before it is made, if its size is known then, and for each further slice when
 * the one before is granted. So each of the c calls in flight is at most one slice
 * ahead of G, and a small call waits for at most c slices.
 *
 * Signals: if a signal handler runs while a call waits, the wait ends and the rest of
 * the call is charged at once. S may then be far ahead of G. No call waits behind all
 * of that debt: its start tag is at most 2 c - 1 slices ahead of G. It charges one
 * slice while up to 2 c slices are granted, so that about half of the grant or more
 * pays off the debt. While S is more than these slices, 2 s of the grant and 1 MiB
 * ahead of G, a signal does not end a wait.
 *
 * Who writes which word
 * ---------------------
 *   agent only      magic, version, size, mode, lease_ns, floor_rate, gap_ns,
 *                   bucket_of, free_cached_reads, free_absorbed_writes, bell_user,
 *                   bell_slot, page_bucket.grant_number, all of page_curve,
 *                   page_staging.mode, .partition, .part_slots, part_folder,
 *                   part_roots
 *   processes only  all other words
 *
 * There is no lock. A process changes a word by one atomic operation, so a process that
 * is killed at any instant leaves a usable page. Counters of calls, bytes and time only
 * grow.
 *
 * Memory ordering
 * ---------------
 *   - Counters are relaxed: each is right by itself. A reader that needs two counters
 *     in a fixed relation reads the later one first.
 *   - A grant: the agent fills the curve that is not in use, then increments
 *     grant_number. A process loads grant_number (acquire), then the curve. `check` is
 *     the exclusive or of the other words of the curve and PAGE_MAGIC; a process that
 *     reads a torn curve sees a wrong check and takes it as "no limit" for this call.
 *   - An operation: phase_begin_ns is stored before last_active_ns is exchanged, and
 *     last_active_ns is loaded with acquire: a process that sees the operation active
 *     also sees when it began.
 *   - An announced operation: announced_bytes is added before phases_begun (release).
 *   - A partition: part_slots, part_folder and part_roots are written while
 *     `partition` is 0 and stay as they are until it is 0 again.
 *   - A new page: magic is written last.
 *
 * Versions
 * --------
 * The library uses a page only if magic, version and size are its own. Otherwise it
 * unmaps the page, counts nothing and delays nothing. The agent deletes a page of
 * another version and creates a new one. A word may be added in place of an unused one
 * without a new version if 0 means the former behaviour; any other change of layout or
 * meaning increments PAGE_VERSION.
 */
#ifndef PENSTOCK_PAGE_H
#define PENSTOCK_PAGE_H

#include <stdint.h>

#define PAGE_MAGIC UINT64_C(0x6b636f74736e6570) /* "penstock", little endian */
#define PAGE_VERSION 5u
#define PAGE_SIZE 4096u

#define RATE_SHIFT 40
#define RATE_UNLIMITED UINT64_MAX

/* The library ignores grants whose lease ends later than this from now, so that no
 * program waits longer for an agent that has died. */
#define LEASE_MAX_NS UINT64_C(60000000000)

/* OFF: calls pass, nothing is counted. DRY_RUN: calls are counted, and so is the time
 * for which control would hold them up. CONTROL: calls are counted and held up. */
enum page_mode { MODE_OFF = 0, MODE_DRY_RUN = 1, MODE_CONTROL = 2 };

/* CLASS_DRAIN counts the writes of a drainer, a process beside the program that empties
 * journals. They draw on the bucket of the writes; they are no activity of the job. */
enum io_class { CLASS_WRITE, CLASS_READ, CLASS_DRAIN, CLASSES };

enum { PACED_CLASSES = 2, BUCKETS = 2, NO_BUCKET = 255, FOLDER_BYTES = 1024 };
enum { PART_FOLDER_BYTES = 512, PART_ROOTS_BYTES = 1024 };

/* The grant of a bucket as a function of time: G(t) above. */
struct page_curve {
    _Atomic uint64_t from_ns;
    _Atomic uint64_t granted_bytes; /* G(from_ns) */
    _Atomic uint64_t rate;          /* 0 pauses; RATE_UNLIMITED: no limit */
    _Atomic uint64_t credit_bytes;  /* unused grant of this operation */
    _Atomic uint64_t slack_bytes;   /* smaller debts are carried on, not slept */
    _Atomic uint64_t check;
    uint64_t unused[2];
};

struct page_bucket {
    /* Grants published so far: curve[grant_number & 1] is in force. */
    _Atomic uint32_t grant_number;
    uint32_t unused_word;
    _Atomic uint64_t charged_bytes; /* S above */
    uint64_t unused[6];
    struct page_curve curve[2];
};

/* The counters of one class: a call that need not wait touches only the first cache
 * line and its bucket. begun_calls - ended_calls are in flight, or were killed. */
struct page_class {
    _Atomic uint64_t begun_calls;
    _Atomic uint64_t ended_calls;
    _Atomic uint64_t moved_bytes; /* bytes that the kernel took or gave */
    /* The same without the storage: neither charged nor in moved_bytes (see
     * free_cached_reads). */
    _Atomic uint64_t memory_bytes;
    /* Time inside calls that reached the storage, summed over callers; without the time
     * that they were held up. Of writes: also inside fsync and close. */
    _Atomic uint64_t busy_ns;
    /* Latest end or wait of a call, or first begin after a gap. */
    _Atomic uint64_t last_active_ns;
    uint64_t unused[2];

    _Atomic uint64_t held_up_ns; /* sum over callers */
    _Atomic uint64_t waiting_calls;
    /* Renewed by a waiting call at least every 20 ms, and by a drainer while it lives:
     * an old heartbeat means that the waiting call, or the drainer, was killed. */
    _Atomic uint64_t heartbeat_ns;
    _Atomic uint64_t resumed_ns; /* first call after a gap */
    /* Sum over callers of the time for which a dry run would have held them up. */
    _Atomic uint64_t would_hold_up_ns;
    /* Gaps inside announced phases in which no call of the job began or ended, and
     * their length. */
    _Atomic uint64_t pauses;
    _Atomic uint64_t paused_ns;
    uint64_t unused_line[1];
};

/* Staging (journal.h). STAGING_NONE: writes go to their files. */
enum staging_mode { STAGING_NONE = 0, STAGING_WRITES = 1 };

/* State of `folder`: UNKNOWN, being FILLED by one process, KNOWN, or SEVERAL if the
 * processes of the job stage into different folders. */
enum folder_state { FOLDER_UNKNOWN, FOLDER_FILLED, FOLDER_KNOWN, FOLDERS_SEVERAL };

struct page_staging {
    _Atomic uint32_t mode; /* holds as long as the lease */
    _Atomic uint32_t folder_state;
    _Atomic uint64_t absorbed_bytes; /* written into journals */
    _Atomic uint64_t drained_bytes;  /* written from journals into files */
    _Atomic uint64_t refused_files;  /* files that could not be staged */
    /* Number of the storage targets that new files of the job go to; the same number
     * means the same targets. 0: not known; UINT32_MAX is not used. It holds as long as
     * the lease. */
    _Atomic uint32_t partition;
    /* Parts lie in part_folder/0, part_folder/1, ... below this number; 0: in
     * part_folder itself. */
    _Atomic uint32_t part_slots;
    /* Written into parts, which is in moved_bytes of the writes; and copied from parts
     * into files, which is not: the job has not got ahead. */
    _Atomic uint64_t redirected_bytes;
    _Atomic uint64_t merged_bytes;
    _Atomic uint32_t redirect_age_ms; /* younger files are not redirected */
    uint32_t unused;
};

struct penstock_page {
    _Atomic uint64_t magic;
    uint32_t version;
    uint32_t size;
    _Atomic uint32_t mode; /* enum page_mode */
    _Atomic uint32_t operations_begun;
    _Atomic uint64_t lease_ns;   /* grants hold until this time, */
    _Atomic uint64_t floor_rate; /* then each bucket gets this rate */
    _Atomic uint64_t gap_ns;     /* a longer time without calls ends an operation */
    _Atomic uint32_t bucket_of[PACED_CLASSES]; /* index in `buckets`, or NO_BUCKET */
    _Atomic uint64_t phase_begin_ns; /* first call of the operation, of any class */

    uint64_t unused;
    /* Set-ups of io_uring and libaio: their I/O is not controlled. */
    _Atomic uint64_t bypass_setups;
    /* Phases that the program announces (penstock.h), summed over its processes.
     * phases_begun - phases_ended are under way, or their process was killed. */
    _Atomic uint64_t announced_bytes;
    _Atomic uint64_t phases_begun;
    _Atomic uint64_t phases_ended;
    _Atomic uint64_t announced_at_ns; /* time of the latest announcement */
    /* 1: reads that memory serves, or writes that memory takes, are not charged. */
    _Atomic uint32_t free_cached_reads;
    _Atomic uint32_t free_absorbed_writes;
    /* The bell that wakes the agent, <bell_user>.bell beside the page, and the slot of
     * this page in it (bell.h); slot 0: there is no bell. The lease of a process that
     * has mapped the bell is in the bell, not in lease_ns. */
    _Atomic uint32_t bell_user;
    _Atomic uint32_t bell_slot;

    struct page_class classes[CLASSES];
    struct page_bucket buckets[BUCKETS];
    struct page_staging staging;
    char folder[FOLDER_BYTES]; /* of the journals; written by the first that stages */
    /* Where the parts of redirected files go (journal.h), and the folders, separated by
     * colons, whose files may be redirected. */
    char part_folder[PART_FOLDER_BYTES];
    char part_roots[PART_ROOTS_BYTES];
};

_Static_assert(sizeof(struct page_curve) == 64, "a curve is one cache line");
_Static_assert(sizeof(struct page_class) == 128, "a class is two cache lines");
_Static_assert(sizeof(struct page_staging) == 64, "staging is one cache line");
_Static_assert(sizeof(struct page_bucket) == 192, "a bucket is three cache lines");
_Static_assert(sizeof(struct penstock_page) <= PAGE_SIZE, "all of it in one page");

#endif
