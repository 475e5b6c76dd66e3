/* SPDX-License-Identifier: MIT
 *
 * The parts of the preload library, from the bottom up:
 *
 *   real.c      the functions behind the wrapped ones
 *   identity.c  which descriptors and names are controlled
 *   pace.c      charging, waiting and counting in the page
 *   attach.c    finding the page when the process starts
 *   wrap_*.c    the wrapped calls
 *   hints.c     what a program can say of itself; penstock.h is for programs
 *
 * Rules for all of it: called at any moment, also in signal handlers, in a child of
 * vfork and before any constructor. So: no allocation, no lock, no output, errno as
 * the wrapped call left it, and whatever is in doubt passes through.
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

/* True from the moment the program forbids itself system calls: whatever the filter
 * allows, it need not be what a wrapper makes. */
extern atomic_bool sealed;

/* --- identity.c ----------------------------------------------------------------- */

enum kind { KIND_UNKNOWN = 0, KIND_CONTROLLED = 1, KIND_OTHER = 2 };
enum { KNOWN_DESCRIPTORS = 1 << 20 };

extern _Atomic uint8_t kinds[KNOWN_DESCRIPTORS];

/* Take a colon-separated list of absolute, resolved prefixes. */
void identity_start(const char *prefixes);

/* Remember which process the tables belong to. */
void identity_adopt(void);

/* Find out what a descriptor is, from the kernel. */
bool identify(int fd);

/* True if `path`, taken at `at`, is by its text under a prefix. */
bool name_is_controlled(int at, const char *path);

/* The working directory has changed. */
void forget_directory(void);

/* True if I/O on `fd` is to be charged: a regular file under a prefix. */
static inline bool is_controlled(int fd)
{
    if (RARELY((unsigned)fd >= KNOWN_DESCRIPTORS))
        return false;
    uint8_t kind = LOAD(kinds[fd]);
    return LIKELY(kind != KIND_UNKNOWN) ? kind == KIND_CONTROLLED : identify(fd);
}

/* `fd` may mean something else from now on. To forget is always safe: the next use
 * asks the kernel again. Hence a child of vfork, which shares the table with its
 * parent, may forget whatever it closes. */
static inline void forget(int fd)
{
    if ((unsigned)fd < KNOWN_DESCRIPTORS)
        STORE(kinds[fd], KIND_UNKNOWN);
}

void forget_range(unsigned first, unsigned last);

/* --- pace.c --------------------------------------------------------------------- */

/* The grant in force, copied out of the page. */
struct grant {
    uint64_t from_ns;
    uint64_t granted_bytes;
    uint64_t rate;
    uint64_t credit_bytes;
    uint64_t slack_bytes;
    uint32_t turn;
};

/* One wrapped call on a controlled descriptor, from begin to end. */
struct visit {
    struct page_class *class; /* NULL: nothing to do */
    struct page_bucket *bucket; /* NULL: counted, not paced */
    uint64_t granted;           /* G when the call began */
    uint64_t credit;            /* grant of the past that it may use */
    uint64_t slack;
    uint64_t start;    /* its start tag */
    uint64_t reserved; /* bytes charged before the call */
    bool paused;
};

/* Begin a call that will move exactly `size` bytes unless it fails: charge them first,
 * so that calls of many processes follow one another and do not come all at once. */
void visit_reserve(struct visit *, enum io_class, size_t size);

/* Begin a call of which the size is known afterwards. */
void visit_open(struct visit *, enum io_class);

/* End a call that has moved `moved` bytes: count, charge, and wait until paid. */
void visit_close(struct visit *, size_t moved);

/* End a call that goes on in the background: count and charge, without waiting. */
void visit_hand_over(struct visit *, size_t moved);

void count_metadata(void);

/* The program begins an I/O phase in which it will move `volume` bytes, or ends one. */
void announce_phase(uint64_t volume);
void announce_end(void);

/* --- wrap_names.c --------------------------------------------------------------- */

/* Count a call on `path`, taken at `at`, that gave `answer`. */
void count_name(int answer, int at, const char *path);

/* --- For all wrappers ----------------------------------------------------------- */

static inline void begin_write(struct visit *visit, int fd, size_t size)
{
    visit->class = NULL;
    if (RARELY(is_controlled(fd)))
        visit_reserve(visit, CLASS_WRITE, size);
}

static inline void begin(struct visit *visit, int fd, enum io_class class)
{
    visit->class = NULL;
    if (RARELY(is_controlled(fd)))
        visit_open(visit, class);
}

static inline ssize_t end(struct visit *visit, ssize_t moved)
{
    if (RARELY(visit->class != NULL))
        visit_close(visit, moved > 0 ? (size_t)moved : 0);
    return moved;
}

/* `moved` bytes went to or came from `fd` in a call that is over. */
static inline void charge_past(int fd, enum io_class class, size_t moved)
{
    struct visit visit;
    begin(&visit, fd, class);
    end(&visit, (ssize_t)moved);
}

#endif
