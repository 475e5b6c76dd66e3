/* SPDX-License-Identifier: MIT
 *
 * The parts of the preload library, from the bottom up:
 *
 *   real.c      the functions behind the wrapped ones
 *   identity.c  which descriptors and names are controlled
 *   pace.c      charging, waiting and counting in the page
 *   journal.c   staged writes: the journal of a file
 *   stage*.c    staged writes: slots, drains, absorbing, journals of others
 *   attach.c    finding the page when the process starts
 *   wrap_*.c    the wrapped calls
 *   hints.c     what a program can say of itself; penstock.h is for programs
 *   bbio.c      what it can say of staging; bbio.h is for programs
 *
 * Rules for all of it: called at any moment, also in signal handlers, in a child of
 * vfork and before any constructor. So: no allocation, no lock, no output, errno as
 * the wrapped call left it, and whatever is in doubt passes through. Staging alone has
 * locks: held for one append or one step of a drain, with signals blocked.
 */
#ifndef PENSTOCK_SHIM_H
#define PENSTOCK_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "page.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define RARELY(condition) __builtin_expect(!!(condition), 0)
/* Kept out of the way of the calls that need not wait. */
#define SLOW __attribute__((noinline, cold))

#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define STORE(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)
#define ADD(word, value) atomic_fetch_add_explicit(&(word), value, memory_order_relaxed)
#define SUBTRACT(word, value) \
    atomic_fetch_sub_explicit(&(word), value, memory_order_relaxed)

/* --- attach.c ------------------------------------------------------------------- */

/* The page, or NULL: nothing is controlled. */
extern struct penstock_page *attached_page;

/* Device and inode of the page, by which the journals of a job are known; 0: none. */
extern uint64_t attached_page_id[2];

/* Where there is no page, have one that counts nothing and limits nothing. */
void attach_empty_page(void);

/* True from the moment the program forbids itself system calls: whatever the filter
 * allows, it need not be what a wrapper makes. */
extern atomic_bool seccomp_active;

/* --- identity.c ----------------------------------------------------------------- */

/* Odd: controlled. */
enum kind {
    KIND_UNKNOWN = 0,
    KIND_CONTROLLED = 1,
    KIND_OTHER = 2,
    KIND_STAGEABLE = 3, /* controlled, and staged or to be staged */
    KIND_INTERNAL = 4,  /* a descriptor of the library: no program's business */
};
enum { KNOWN_DESCRIPTORS = 1 << 20 };

extern _Atomic uint8_t descriptor_kinds[KNOWN_DESCRIPTORS];

/* Take a colon-separated list of absolute, resolved prefixes. */
void identity_set_prefixes(const char *prefixes);

/* Without prefixes, let every regular file be controlled, and ask for all again. */
void identity_control_all(void);

/* Remember which process the tables belong to. */
void identity_claim_table(void);

/* False before the start, and in a child of vfork: what it learns of its descriptors
 * must not be written into its parent's table. */
bool identity_owns_table(void);

/* Find out what a descriptor is, from the kernel. */
bool identity_look_up(int fd);

/* Write the link of /proc that leads to a descriptor. */
void identity_fd_link(int fd, char text[32]);

/* Read the path of a descriptor; false if it is not open or does not fit. */
bool identity_fd_path(int fd, char *path, size_t room);

/* The highest descriptor ever entered in the table. */
unsigned identity_highest_fd(void);
void identity_raise_highest_fd(unsigned fd);

/* True if `path`, taken at `at`, is by its text under a prefix. */
bool identity_path_is_controlled(int at, const char *path);

/* The working directory has changed. */
void identity_forget_cwd(void);

/* True if I/O on `fd` is to be charged: a regular file under a prefix. */
static inline bool identity_is_controlled(int fd)
{
    if (RARELY((unsigned)fd >= KNOWN_DESCRIPTORS))
        return false;
    uint8_t kind = LOAD(descriptor_kinds[fd]);
    return LIKELY(kind != KIND_UNKNOWN) ? kind % 2 == 1 : identity_look_up(fd);
}

/* `fd` may mean something else from now on. To forget is always safe: the next use
 * asks the kernel again. Hence a child of vfork, which shares the table with its
 * parent, may forget whatever it closes. */
static inline void identity_forget(int fd)
{
    if ((unsigned)fd < KNOWN_DESCRIPTORS && LOAD(descriptor_kinds[fd]) != KIND_INTERNAL)
        STORE(descriptor_kinds[fd], KIND_UNKNOWN);
}

static inline bool identity_is_internal(int fd)
{
    return (unsigned)fd < KNOWN_DESCRIPTORS &&
           RARELY(LOAD(descriptor_kinds[fd]) == KIND_INTERNAL);
}

void identity_forget_range(unsigned first, unsigned last);

/* --- pace.c --------------------------------------------------------------------- */

/* The grant in force, copied out of the page. */
struct grant {
    uint64_t from_ns;
    uint64_t granted_bytes;
    uint64_t rate;
    uint64_t credit_bytes;
    uint64_t slack_bytes;
    uint32_t grant_number;
};

/* One wrapped call on a controlled descriptor, from begin to end. */
struct paced_call {
    struct page_class *class;   /* NULL: nothing to do */
    struct page_bucket *bucket; /* NULL: counted, not paced */
    uint64_t granted;           /* G when the call began */
    uint64_t credit;            /* grant of the past that it may use */
    uint64_t slack;
    uint64_t start;    /* its start tag */
    uint64_t reserved; /* bytes charged before the call */
    bool paused;
    bool may_stage; /* it does not wait any more when writes are to be staged */
};

/* Begin a call that will move exactly `size` bytes unless it fails: charge them first,
 * so that calls of many processes follow one another and do not come all at once.
 * False: while it waited writes came to be staged, and `may_stage`; it has not begun. */
bool pace_begin_sized(struct paced_call *, enum io_class, size_t size, bool may_stage);

/* Begin a call of which the size is known afterwards. */
bool pace_begin(struct paced_call *, enum io_class, bool may_stage);

/* End a call that has moved `moved` bytes: count, charge, and wait until paid. */
void pace_end(struct paced_call *, size_t moved);

/* End a call that goes on in the background: count and charge, without waiting. */
void pace_end_async(struct paced_call *, size_t moved);

void pace_count_metadata(void);

/* CLOCK_MONOTONIC. */
uint64_t pace_now_ns(void);

/* Something was written into a journal: activity, but nothing for the file system. */
void pace_note_absorbed(void);

/* Whether the page, its lease being valid, says that writes are to be staged. */
bool pace_wants_staging(void);

/* Bytes that one step of a drain may write: few enough to stop soon if the grant goes. */
uint64_t pace_drain_step_bytes(void);

/* Whether somebody drains journals on this node. */
bool pace_drainer_is_alive(void);

/* The program begins an I/O phase in which it will move `volume` bytes, or ends one. */
void pace_announce_phase(uint64_t volume);
void pace_announce_end(void);

/* --- stage.c -------------------------------------------------------------------- */

/* Where a call writes that does not say it: at the offset of the descriptor. */
#define HERE INT64_MIN

typedef void stage_callback(int fd);

/* True if files may be staged. */
extern atomic_bool stage_enabled;

/* Start, if the environment says so; or now. 0 or an error. */
void stage_start(void);
int stage_switch_on(void);

/* What `fd`, a regular file under a prefix with this path, is to be. */
uint8_t stage_kind(int fd, const char *path);

/* Take a write into a journal. True: it is answered; false: it is to be made. */
bool stage_write(int fd, const void *data, size_t size, int64_t offset,
                 ssize_t *answer);
bool stage_gather(int fd, const struct iovec *parts, int count, int64_t offset,
                  ssize_t *answer);

/* Drain, and return what went wrong, also earlier, unseen; 0 or an error. */
int stage_flush(int fd);

/* Drain, and write through from now on. An error of a file or a name is one of another
 * process's journal, which has to be drained before the file may be changed. */
int stage_leave(int fd);
int stage_leave_file(uint64_t device, uint64_t inode, int fd, int at, const char *path);
int stage_leave_name(int at, const char *path, int flags);
void stage_leave_all(void);

/* No descriptor of this file is staged any more: it is mapped, or locked. */
void stage_bar(int fd);

/* The file of `fd` itself was written to, or changed: what is staged was drained first. */
void stage_changed(int fd);

/* Make what was written durable; true: done, false: the file is to be synced too. */
bool stage_sync(int fd, int *error);

/* The descriptors are about to be closed; 0 or an error that nobody has seen. */
int stage_close(int fd);
void stage_close_range(unsigned first, unsigned last);

/* `fd` was opened by this process, or duplicated. */
void stage_opened(int fd);
void stage_duplicated(int from, int to);

/* The end of what is staged and not in the file; false: nothing is. */
bool stage_end(int fd, uint64_t *end);
bool stage_end_of(uint64_t device, uint64_t inode, uint64_t *end);

/* A file is about to be executed: nobody may be writing to it. True: the call has failed
 * since somebody does, who drains it, and is to be tried once more. */
struct patience;
void stage_leave_program(int at, const char *path, int flags);
bool stage_may_try_again(int error, struct patience *);

/* Names, descriptors or rights are about to mean something else: drain everything, and
 * stage no more; true if that is new. If the call was in vain, go on. */
bool stage_stop(void);
void stage_go_on(void);

/* The program ends: drain everything. */
void stage_finish(void);

/* In a process that is to drain, and nothing else: do so, and end. */
void stage_drain_if_asked(void);

/* For bbio.c: let a descriptor be staged; call back before its drains. */
int stage_allow(int fd);
bool stage_notify(int fd, stage_callback *callback);

static inline bool identity_is_stageable(int fd)
{
    return RARELY(LOAD(descriptor_kinds[fd]) == KIND_STAGEABLE);
}

/* --- wrap_stdio.c, wrap_wide.c ---------------------------------------------------- */

/* Streams that write through a journal are made by us, and take bytes only. */
enum stream_use { STREAM_OF_LIBC, STREAM_UNUSED, STREAM_OF_BYTES, STREAM_WIDE };
extern _Atomic uint8_t stdio_own_streams[KNOWN_DESCRIPTORS];

/* The first call decides, for ever, whether a stream has bytes or wide characters. */
static inline void stdio_note_bytes(int fd)
{
    if (LOAD(stdio_own_streams[fd]) == STREAM_UNUSED)
        STORE(stdio_own_streams[fd], STREAM_OF_BYTES);
}

void stdio_end_own_stream(int fd);

/* --- wrap_stage.c --------------------------------------------------------------- */

/* Descriptors in such messages get to other processes. */
struct msghdr;
void wrap_leave_passed(const struct msghdr *message);

/* --- wrap_names.c --------------------------------------------------------------- */

/* Count a call on `path`, taken at `at`, that gave `answer`. */
void wrap_count_path(int answer, int at, const char *path);

/* --- wrap_open.c ---------------------------------------------------------------- */

/* Who opens a file that is staged finds what was written to it; and to truncate it is to
 * truncate that too. False, with errno: nobody may change the file, because what another
 * process has written before cannot be put into it now. */
bool wrap_may_open(int at, const char *path, int flags);

/* --- For all wrappers ----------------------------------------------------------- */

/* Begin a write; true if it is answered, from a journal. */
static inline bool wrap_begin_write(struct paced_call *call, int fd, const void *data,
                                    size_t size, int64_t offset, ssize_t *answer)
{
    call->class = NULL;
    if (LIKELY(!identity_is_controlled(fd)))
        return false;
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

static inline bool wrap_begin_gather(struct paced_call *call, int fd,
                                     const struct iovec *parts, int count,
                                     int64_t offset, ssize_t *answer)
{
    call->class = NULL;
    if (LIKELY(!identity_is_controlled(fd)))
        return false;
    bool stageable = identity_is_stageable(fd);
    if (stageable && stage_gather(fd, parts, count, offset, answer))
        return true;
    if (LIKELY(pace_begin(call, CLASS_WRITE, stageable)))
        return false;
    if (stage_gather(fd, parts, count, offset, answer))
        return true;
    pace_begin(call, CLASS_WRITE, false);
    return false;
}

/* Begin a call that looks at the file itself, or writes it in its own way. */
static inline void wrap_begin(struct paced_call *call, int fd, enum io_class class)
{
    call->class = NULL;
    if (LIKELY(!identity_is_controlled(fd)))
        return;
    if (identity_is_stageable(fd))
        stage_leave(fd);
    pace_begin(call, class, false);
}

static inline ssize_t wrap_end(struct paced_call *call, ssize_t moved)
{
    if (RARELY(call->class != NULL))
        pace_end(call, moved > 0 ? (size_t)moved : 0);
    return moved;
}

/* End a write to the file itself. */
static inline ssize_t wrap_end_write(struct paced_call *call, int fd, ssize_t moved)
{
    if (RARELY(LOAD(stage_enabled)))
        stage_changed(fd);
    return wrap_end(call, moved);
}

/* `moved` bytes went to or came from `fd` in a call that is over. */
static inline void wrap_charge_past(int fd, enum io_class class, size_t moved)
{
    struct paced_call call;
    wrap_begin(&call, fd, class);
    wrap_end(&call, (ssize_t)moved);
}

#endif
