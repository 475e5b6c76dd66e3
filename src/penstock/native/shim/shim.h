/* SPDX-License-Identifier: MIT
 *
 * The internal interface of the preload library. Its parts, from the bottom up:
 *
 *   real.c      the libc functions behind the wrapped calls, and raw system calls
 *   identity.c  which descriptors are controlled
 *   pace*.c     charging, waiting and counting in the page (page.h)
 *   journal.c   staging: the journal of one file
 *   stage*.c    staging: slots, absorbing writes, draining, journals of other
 *               processes, redirection of open files to other storage targets
 *   attach.c    start-up: environment, mapping the page
 *   wrap_*.c    the wrapped calls
 *   hints.c     operations announced by programs (penstock.h)
 *   bbio.c      staging controlled by programs (bbio.h)
 *
 * A function carries the prefix of its file; wrap_ functions serve all wrap_*.c.
 *
 * Wrappers are called at any moment: in signal handlers, in a child of vfork, before
 * any constructor has run. Therefore
 *
 *   - no allocation, no lock and no output. Only staging takes locks, each for one
 *     append or one step of a drain, with signals blocked;
 *   - errno is what the wrapped call left in it;
 *   - in case of doubt the call passes through uncontrolled.
 */
#ifndef PENSTOCK_SHIM_H
#define PENSTOCK_SHIM_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bell.h"
#include "page.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define RARELY(condition) __builtin_expect(!!(condition), 0)
/* Placed away from the code of calls that need not wait. */
#define SLOW __attribute__((noinline, cold))
/* Not inlined: its variables would burden the calls that do not need it. */
#define APART __attribute__((noinline))
/* Part of every paced call: inlined, so that the call costs no more if another function
 * comes to use it. */
#define INLINED static inline __attribute__((always_inline))

/* Relaxed operations on atomic words; page.h says where a stronger order is needed. */
#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define STORE(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)
#define ADD(word, value) atomic_fetch_add_explicit(&(word), value, memory_order_relaxed)
#define SUBTRACT(word, value) \
    atomic_fetch_sub_explicit(&(word), value, memory_order_relaxed)

/* --- attach.c ------------------------------------------------------------------- */

/* The page of the job; NULL: nothing is controlled. Set once, at start-up. */
extern struct penstock_page *attached_page;

/* Device and inode of the page, which identify the journals of the job; 0: no page. */
extern uint64_t attached_page_id[2];

/* The bell of the user, or NULL; the slot of the page in it; and the lease in force,
 * which is that of the bell, or else that of the page. Set once, at start-up. */
extern struct penstock_bell *attached_bell;
extern uint32_t attached_bell_slot;
extern _Atomic uint64_t *attached_lease_ns;

/* Without a page, attach a private one that counts nothing and limits nothing. */
void attach_empty_page(void);

/* True from the moment the program installs a seccomp filter: the filter may forbid the
 * system calls of the wrappers, so nothing is counted or delayed any more. */
extern atomic_bool seccomp_active;

/* --- identity.c ----------------------------------------------------------------- */

/* What is known of a descriptor. Odd kinds are controlled. */
enum descriptor_kind {
    KIND_UNKNOWN = 0,
    KIND_CONTROLLED = 1,
    KIND_OTHER = 2,
    KIND_STAGEABLE = 3, /* controlled; its writes are or may be staged */
    KIND_INTERNAL = 4,  /* opened by this library, hidden from the program */
    KIND_DIRECTORY = 6, /* a directory that identity_names.c remembers */
    KIND_INSIDE = 8,    /* under a prefix; whether it is a regular file is not known */
};
/* The tables of all descriptors together are smaller than a huge page (2 MiB): the
 * kernel would clear a whole one at the first access. */
enum { KNOWN_DESCRIPTORS = 1 << 16 };

extern _Atomic uint8_t descriptor_kinds[KNOWN_DESCRIPTORS];

/* 1: the descriptor is controlled and was written since its last sync. */
extern _Atomic uint8_t descriptor_dirty[KNOWN_DESCRIPTORS];

/* Set the controlled prefixes: absolute, resolved paths separated by colons. */
void identity_set_prefixes(const char *prefixes);

/* If no prefix is set, control every regular file; forget all descriptors. */
void identity_control_all(void);

/* Record this process as the owner of the descriptor table. */
void identity_claim_table(void);

/* False before start-up and in a child of vfork, which must not write into the table of
 * its parent. */
bool identity_owns_table(void);

/* Ask the kernel what a descriptor refers to, record it, and return whether it is
 * controlled. */
bool identity_look_up(int fd);

/* Write "/proc/self/fd/<fd>". */
void identity_fd_link(int fd, char text[32]);

/* Read the path of a descriptor; false if it is not open or the path does not fit. */
bool identity_fd_path(int fd, char *path, size_t room);

/* The highest descriptor that the table has an entry for. */
unsigned identity_highest_fd(void);
void identity_raise_highest_fd(unsigned fd);

/* Return true if a resolved path lies under a prefix, or above one. */
bool identity_is_under_prefix(const char *path);
bool identity_is_above_prefix(const char *path);

/* --- identity_names.c: files whose directory is known --------------------------- */

/* Note that open() with these arguments has returned `fd`. */
void identity_note_opened(int fd, int at, const char *path, int flags);

/* Note what fstat() has told the program of `fd`. */
void identity_note_status(int fd, const struct stat *status);

/* Directories may have changed their meaning (chdir ...). */
void identity_forget_directories(void);

/* --- identity.c ----------------------------------------------------------------- */

/* Return true if I/O on `fd` is charged: a regular file under a prefix. */
static inline bool identity_is_controlled(int fd)
{
    if (RARELY((unsigned)fd >= KNOWN_DESCRIPTORS))
        return false;
    uint8_t kind = LOAD(descriptor_kinds[fd]);
    return LIKELY(kind % 8 != 0) ? kind % 2 == 1 : identity_look_up(fd);
}

/* Return true if `fd` was not looked up yet. */
static inline bool identity_is_unknown(int fd)
{
    return (unsigned)fd < KNOWN_DESCRIPTORS &&
           LOAD(descriptor_kinds[fd]) % 8 == 0; /* KIND_UNKNOWN or KIND_INSIDE */
}

/* Of a controlled descriptor: return whether its writes are or may be staged. */
static inline bool identity_is_stageable(int fd)
{
    return RARELY(LOAD(descriptor_kinds[fd]) == KIND_STAGEABLE);
}

/* Return true if `fd` was opened by this library. */
static inline bool identity_is_internal(int fd)
{
    return (unsigned)fd < KNOWN_DESCRIPTORS &&
           RARELY(LOAD(descriptor_kinds[fd]) == KIND_INTERNAL);
}

static inline void identity_mark_dirty(int fd)
{
    if ((unsigned)fd < KNOWN_DESCRIPTORS)
        STORE(descriptor_dirty[fd], 1);
}

static inline bool identity_is_dirty(int fd)
{
    return (unsigned)fd < KNOWN_DESCRIPTORS && RARELY(LOAD(descriptor_dirty[fd]) != 0);
}

/* Forget what `fd` refers to; the next use asks the kernel again. Forgetting is always
 * safe, so a child of vfork, which shares the table of its parent, may forget whatever
 * it closes. */
static inline void identity_forget(int fd)
{
    if ((unsigned)fd >= KNOWN_DESCRIPTORS)
        return;
    uint8_t kind = LOAD(descriptor_kinds[fd]);
    if (RARELY(kind == KIND_INTERNAL))
        return;
    if (RARELY(kind == KIND_DIRECTORY))
        identity_forget_directories();
    STORE(descriptor_kinds[fd], KIND_UNKNOWN);
    if (identity_is_dirty(fd))
        STORE(descriptor_dirty[fd], 0);
}

void identity_forget_range(unsigned first, unsigned last);

/* --- cache.c -------------------------------------------------------------------- */

/* Where a call is expected to find its bytes. */
enum cache_expectation { EXPECT_MEMORY, EXPECT_EITHER, EXPECT_STORAGE };

/* Bytes of calls that are judged together: fast calls are judged with later ones. */
struct cache_split {
    size_t storage_bytes;
    size_t memory_bytes;
};

/* Note that `fd` is a controlled file, and whether a block device holds it. */
void cache_note_file(int fd, bool block_device);

/* Call before a call of `size` bytes (0: not known) on a controlled descriptor. */
enum cache_expectation cache_expect(int fd, enum io_class, size_t size,
                                    uint64_t now_ns);

/* Call before a read of a descriptor that was not looked up. */
void cache_begin_unknown(void);

/* Call after it: return true if the descriptor has to be looked up, because the read
 * was slow, or because the thread has read many bytes from it. */
bool cache_must_look_up(int fd, size_t moved_bytes, uint64_t duration_ns);

/* `fd` was opened: what was read from an earlier descriptor of this number is over. */
void cache_note_opened(int fd);

/* The descriptor is controlled: judge what was read before with the present read. */
void cache_add_unknown(int fd);

/* Call after a call: return which bytes came from, or went to, the storage. */
struct cache_split cache_split(int fd, enum io_class, size_t moved_bytes,
                               uint64_t begin_ns, uint64_t end_ns);

/* This library itself has let the thread sleep. */
void cache_note_wait(void);

/* The thread is the copy of another one (fork). */
void cache_forget_thread(void);

/* --- pace.c --------------------------------------------------------------------- */

/* A copy of the grant in force (page.h: struct page_curve). */
struct grant {
    uint64_t from_ns;
    uint64_t granted_bytes;
    uint64_t rate;
    uint64_t credit_bytes;
    uint64_t slack_bytes;
    uint32_t grant_number;
};

/* One wrapped call on a controlled descriptor, from its begin to its end. */
struct paced_call {
    struct page_class *class;   /* NULL: not controlled, nothing to do */
    struct page_bucket *bucket; /* NULL: counted, but not paced */
    int fd;                     /* -1: of this library */
    uint64_t begin_ns;          /* when the call itself began, after a wait */
    uint64_t granted_bytes;     /* G(t) when the call or its latest slice began */
    uint64_t least_tag;         /* G(t) when the call began, less its credit */
    uint64_t slack_bytes;
    uint64_t rate; /* 0: paused */
    uint64_t start_tag;
    uint64_t reserved_bytes; /* charged before the call */
    uint64_t rest_bytes;     /* moved, but not charged yet */
    long waiting_process;    /* process id; set when the call waits, */
    uint64_t signal_mask;    /* and the program's signal mask */
    bool may_stage;          /* stop waiting when the page asks to stage writes */
    bool interrupted;        /* a signal has come during a wait */
    bool judged;    /* only what reaches the storage is charged, when the call ends */
    bool begun;     /* counted in begun_calls */
    bool uncertain; /* judged, and nothing is known of the file: do not wait first */
    bool unknown;   /* judged, and the descriptor was not looked up */
};

/* Begin a call that moves exactly `size` bytes unless it fails. A slice is charged
 * first, so that the calls of many processes follow one another. Returns false only if
 * `may_stage` and the page came to ask for staging during the wait; the call has then
 * not begun. */
bool pace_begin_sized(struct paced_call *, enum io_class, size_t size, bool may_stage);

/* Begin a step of a drain. All bytes of a small one are charged first, so that threads
 * whose grant is close to nothing do not begin one step each. A large record is charged
 * in slices, as a call of the program is: programs and drainers take turns. */
void pace_begin_step(struct paced_call *, enum io_class, size_t size);

/* Begin a call that is charged afterwards; same result. `size` is the most that it
 * moves, or 0 if that is not known. */
bool pace_begin(struct paced_call *, enum io_class, size_t size, bool may_stage);

/* Begin a read of at most `size` bytes (0: a few) from a descriptor that was not looked
 * up. It is looked up when the read ends, and only if memory may not have served it.
 * False: it has to be looked up now. */
bool pace_begin_unknown(struct paced_call *, int fd, size_t size);

/* End a call: count and charge the bytes, and wait until the grant covers them. */
void pace_end(struct paced_call *, size_t moved_bytes);

/* The same for data that are copied from a part, and do not count as moved. */
void pace_end_merge(struct paced_call *, size_t moved_bytes);

/* Begin and end a call that goes on in the background (POSIX aio): wait until the calls
 * before it are granted, but not for its own bytes. */
void pace_begin_async(struct paced_call *, enum io_class, size_t size);
void pace_end_async(struct paced_call *, size_t moved_bytes);

/* Return true if calls of this class have a limit. */
bool pace_has_limit(enum io_class);

/* Begin and end a call that writes back or closes a file: it is in flight and its time
 * counts as writing, but it is never held up. */
void pace_begin_sync(struct paced_call *);
void pace_end_sync(struct paced_call *);

/* Return the time of CLOCK_MONOTONIC. */
uint64_t pace_now_ns(void);

/* Note that a write was absorbed by a journal: activity, but no bytes for the file. */
void pace_note_absorbed(void);

/* Return true if the page asks to stage writes, and its lease is valid. */
bool pace_wants_staging(void);

/* Return the number of the partition in the page; 0: none, or the lease is over. */
uint32_t pace_partition(void);

/* Return how many bytes one step of a drain may write if so many threads drain: few
 * enough that all of them stop soon after the grant of the job is withdrawn. */
uint64_t pace_drain_step_bytes(uint32_t threads);

/* Return true if a drainer process works for this page. */
bool pace_drainer_is_alive(void);

/* The program announces an operation of `volume_bytes`, or its end. */
void pace_announce_phase(uint64_t volume_bytes);
void pace_announce_end(void);

/* --- stage.c -------------------------------------------------------------------- */

/* The offset of a write that names none: the offset of the descriptor. */
#define HERE INT64_MIN

typedef void stage_callback(int fd);

/* True if files may be staged. */
extern atomic_bool stage_enabled;

/* Start staging if the environment asks for it; or start it now: 0 or an error. */
void stage_start(void);
int stage_switch_on(void);

/* Return the kind (enum descriptor_kind) of `fd`, a controlled file with this path. */
uint8_t stage_kind(int fd, const char *path);

/* Append a write to the journal of the file. True: done, `answer` is the result of the
 * call. False: the caller has to write to the file. */
bool stage_write(int fd, const void *data, size_t size, int64_t offset,
                 ssize_t *answer);
bool stage_gather(int fd, const struct iovec *parts, int count, int64_t offset,
                  ssize_t *answer);

/* Drain the journal. Returns 0, an error, or the error of an earlier drain that was not
 * reported yet. */
int stage_flush(int fd);

/* Drain the journal; the file is written through (not staged) from now on.
 * stage_write_through drains a journal of another process that could not be drained
 * when the descriptor was looked up; stage_write_through_file and
 * stage_write_through_name drain any. All three return an error if such a journal
 * cannot be drained now. The file must not be changed then. */
int stage_write_through(int fd);
int stage_write_through_file(uint64_t device, uint64_t inode, int fd, int at,
                             const char *path);
int stage_write_through_name(int at, const char *path, int flags);
void stage_write_through_all(void);

/* Forbid staging of this file for good: it is mapped or locked. */
void stage_forbid(int fd);

/* Note that the file of `fd` itself was changed, after its journal was drained. */
void stage_changed(int fd);

/* Make staged writes durable. False: the caller has to sync the file as well. */
bool stage_sync(int fd, int *error);

/* Call before descriptors are closed. Returns 0 or an error not reported yet. */
int stage_close(int fd);
void stage_close_range(unsigned first, unsigned last);

/* Call after this process has opened or duplicated a descriptor. */
void stage_opened(int fd);
void stage_duplicated(int from, int to);

/* Get the end offset of the staged data; false if nothing is staged. */
bool stage_end(int fd, uint64_t *end);
bool stage_file_end(uint64_t device, uint64_t inode, uint64_t *end);

/* Drain a file that is about to be executed: no process may have it open for writing.
 * If the call fails with `error` because a process still drains the file,
 * stage_may_try_again waits a little and returns true. */
struct lock_wait;
void stage_drain_program(int at, const char *path, int flags);
bool stage_may_try_again(int error, struct lock_wait *);

/* Call before names, descriptors or rights change their meaning (chroot, unshare ...):
 * drain everything and stop staging; true if staging was on. If the call then fails,
 * stage_resume resumes staging. */
bool stage_stop(void);
void stage_resume(void);

/* Drain everything at the end of the program. */
void stage_finish(void);

/* If the environment makes this process a drainer: join the cgroups of the job and
 * become its user, or exit. Nothing of the user may be looked at before. */
void stage_confine_drainer(void);

/* If the environment makes this process a drainer: drain, then exit. */
void stage_drain_if_asked(void);

/* For bbio.c: allow a descriptor to be staged; set the callback before its drains
 * (NULL: none). Both return 0 or an error; stage_notify returns EINVAL before staging
 * has started. */
int stage_allow(int fd);
int stage_notify(int fd, stage_callback *callback);

/* --- wrap_stdio.c, wrap_wide.c -------------------------------------------------- */

/* Streams of staged files are made by this library (fopencookie) and take bytes only;
 * for each descriptor, whether it has such a stream and how that is used. */
enum stream_use { STREAM_OF_LIBC, STREAM_UNUSED, STREAM_OF_BYTES, STREAM_WIDE };
extern _Atomic uint8_t stdio_own_streams[KNOWN_DESCRIPTORS];

/* Record a byte operation: the first operation on a stream fixes its orientation. */
static inline void stdio_note_bytes(int fd)
{
    if (LOAD(stdio_own_streams[fd]) == STREAM_UNUSED)
        STORE(stdio_own_streams[fd], STREAM_OF_BYTES);
}

void stdio_end_own_stream(int fd);

/* --- wrap_stage.c --------------------------------------------------------------- */

/* Write through from now on to files that a message passes to another process. */
struct msghdr;
void wrap_write_through_passed(const struct msghdr *message);

/* --- wrap_open.c ---------------------------------------------------------------- */

/* Drain what is staged of a file that is about to be opened or truncated. False, with
 * errno: another process has staged writes to this file that cannot be drained now, and
 * the file must not be changed before them. */
bool wrap_may_open(int at, const char *path, int flags);

/* --- For all wrappers ----------------------------------------------------------- */

/* Begin a write. True: a journal has taken it, and `answer` is the result. */
static inline bool wrap_begin_write(struct paced_call *call, int fd, const void *data,
                                    size_t size, int64_t offset, ssize_t *answer)
{
    call->class = NULL;
    if (LIKELY(!identity_is_controlled(fd)))
        return false;
    call->fd = fd;
    bool stageable = identity_is_stageable(fd);
    if (stageable && stage_write(fd, data, size, offset, answer))
        return true;
    if (LIKELY(pace_begin_sized(call, CLASS_WRITE, size, stageable)))
        return false;
    if (stage_write(fd, data, size, offset, answer))
        return true;
    pace_begin_sized(call, CLASS_WRITE, size, false);
    return false;
}

/* The same for a gathering write. */
static inline bool wrap_begin_gather(struct paced_call *call, int fd,
                                     const struct iovec *parts, int count,
                                     int64_t offset, ssize_t *answer)
{
    call->class = NULL;
    if (LIKELY(!identity_is_controlled(fd)))
        return false;
    call->fd = fd;
    bool stageable = identity_is_stageable(fd);
    if (stageable && stage_gather(fd, parts, count, offset, answer))
        return true;
    if (LIKELY(pace_begin(call, CLASS_WRITE, 0, stageable)))
        return false;
    if (stage_gather(fd, parts, count, offset, answer))
        return true;
    pace_begin(call, CLASS_WRITE, 0, false);
    return false;
}

/* Drain staged writes before a call that needs the file itself to be up to date; the
 * file is staged no more. False, with errno: the call would write, and older data of
 * another process must come before it. */
static inline bool wrap_write_through(int fd, enum io_class class)
{
    if (LIKELY(!identity_is_stageable(fd)))
        return true;
    int error = stage_write_through(fd);
    if (LIKELY(error == 0) || class != CLASS_WRITE)
        return true;
    errno = error;
    return false;
}

/* Begin a call that needs the file itself to be up to date. `size` as for pace_begin.
 * False, with errno: a call that writes must fail. */
static inline bool wrap_begin_call(struct paced_call *call, int fd, enum io_class class,
                                   size_t size)
{
    call->class = NULL;
    if (LIKELY(!identity_is_controlled(fd)))
        return true;
    call->fd = fd;
    if (RARELY(!wrap_write_through(fd, class)))
        return false;
    pace_begin(call, class, size, false);
    return true;
}

static inline bool wrap_begin(struct paced_call *call, int fd, enum io_class class)
{
    return wrap_begin_call(call, fd, class, 0);
}

static inline void wrap_begin_read(struct paced_call *call, int fd, size_t size)
{
    if (identity_is_unknown(fd) && pace_begin_unknown(call, fd, size))
        return;
    wrap_begin_call(call, fd, CLASS_READ, size);
}

/* End a call that returned `moved`; negative values are errors and move nothing. */
static inline ssize_t wrap_end(struct paced_call *call, ssize_t moved)
{
    if (RARELY(call->class != NULL))
        pace_end(call, moved > 0 ? (size_t)moved : 0);
    return moved;
}

/* End a step that copies data of a part into its file: it is charged, but the data were
 * counted as moved when they went to the part. */
static inline void wrap_end_merge(struct paced_call *call, int64_t moved)
{
    if (call->class != NULL)
        pace_end_merge(call, moved > 0 ? (size_t)moved : 0);
}

/* End a write to the file itself. */
static inline ssize_t wrap_end_write(struct paced_call *call, int fd, ssize_t moved)
{
    if (RARELY(LOAD(stage_enabled)))
        stage_changed(fd);
    return wrap_end(call, moved);
}

/* Begin a call that writes back or closes `fd`: if the file was written, the data may
 * move only now. */
static inline void wrap_begin_sync(struct paced_call *call, int fd)
{
    call->class = NULL;
    if (identity_is_dirty(fd))
        pace_begin_sync(call);
}

static inline int wrap_end_sync(struct paced_call *call, int answer)
{
    if (RARELY(call->class != NULL))
        pace_end_sync(call);
    return answer;
}

/* End a call that has written back all of `fd`. */
static inline int wrap_end_full_sync(struct paced_call *call, int fd, int answer)
{
    if (RARELY(call->class != NULL) && answer == 0)
        STORE(descriptor_dirty[fd], 0);
    return wrap_end_sync(call, answer);
}

/* Charge `moved_bytes` of a call on `fd` that is over and took `duration_ns`. */
static inline void wrap_charge_past(int fd, enum io_class class, size_t moved_bytes,
                                    uint64_t duration_ns)
{
    struct paced_call call;
    if (class == CLASS_READ)
        wrap_begin_read(&call, fd, moved_bytes);
    else if (!wrap_begin(&call, fd, class))
        return;
    call.begin_ns -= duration_ns;
    wrap_end(&call, (ssize_t)moved_bytes);
}

#endif
