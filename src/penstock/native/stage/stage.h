/* SPDX-License-Identifier: MIT
 *
 * Staging: writes go to a journal first, and to the file later. What the wrappers need.
 *
 * A file is staged if this process image has opened it to write, and only to write at
 * places of its own choice; if it is a regular file under a prefix; if rules and page say
 * so; and if nobody else is known to use it. Whatever looks at the file in another way
 * (a read, a mapping, a lock, a second opener, a child) *leaves*: the journal is drained,
 * and from then on the descriptors go to the file. To leave is always safe.
 */
#ifndef PENSTOCK_STAGE_H
#define PENSTOCK_STAGE_H

#include "journal.h"
#include "shim.h"

/* --- stage_settings.c ----------------------------------------------------------- */

struct stage_settings {
    char folder[1024];
    char rules[1024];
    struct journal_terms terms;
    bool always;          /* whatever the page says */
    atomic_bool finished; /* the program ends: nothing is staged any more */
    atomic_bool stopped;  /* it has gone where journals cannot follow */
};

extern struct stage_settings stage_settings;

/* Read the environment; true if something may be staged. */
bool stage_read_settings(void);

/* Know who writes journals: this process, also after a fork. */
void stage_know_process(void);

/* Stage into `folder` (NULL: memory), `capacity` bytes for each file; 0 or -errno. */
int stage_use(const char *folder, uint64_t capacity);

/* True if the rules let a file be staged: the first that matches decides. */
bool rules_allow(const char *path);

/* Add a line to the log in the folder: what happened, to which file, and why. */
void stage_say(const char *what, const char *path, int error);

/* --- stage.c -------------------------------------------------------------------- */

/* Which file a descriptor refers to. */
bool stage_describe(int fd, struct staged_file *);

/* --- stage_find.c --------------------------------------------------------------- */

/* True if the machine was not restarted since the journal was made. */
bool find_is_of_this_boot(const struct journal_header *);

/* Open the file of a journal to be written. The caller says where it may be: behind `fd`
 * (-1: none) or under `path` at `at` (NULL: none); then the path in the journal is tried.
 * Returns a descriptor or -errno (-ENOENT: not found; -ESTALE: another file is there). */
int find_file(const struct journal *, int fd, int at, const char *path);

/* The same for a caller that knows nothing but the journal. If the writer lives its
 * descriptors are tried too, for a file that was renamed or removed. */
int find_file_of(struct journal *);

/* --- stage_foreign.c ------------------------------------------------------------ */

/* Waiting for another process that drains a journal. That process holds the lock for one
 * step, and the kernel takes the lock back when it dies. */
struct patience {
    unsigned naps;      /* of 1 ms, since anything was drained */
    unsigned most_naps; /* 0: no limit */
    uint64_t drained_bytes;
};

/* Sleep 1 ms; every 30 s that nothing was drained the log gets a line. */
void nap(struct patience *);

/* Drain the journal of another process, living or dead; its writer is to stage no more.
 * The file is reached by `fd`, or `path` at `at`, or by what the journal says. 0: there is
 * none any more; 1: there is one, empty or of no use; -errno: what is in it can not be put
 * into the file now, and comes before whatever is written from now on. */
int foreign_settle(uint64_t device, uint64_t inode, int fd, int at, const char *path);

/* What became of a journal; the greatest is what matters of several. */
enum visited { VISITED_NOTHING, VISITED_KEPT, VISITED_DRAINED };

/* Drain a part of a journal of the job with this page. */
enum visited foreign_visit(const char *name, const uint64_t page[2]);

/* Drain a journal whose writer has ended, of the job with this page (0: of any). */
enum visited foreign_adopt(const char *name, const uint64_t page[2]);

/* Drain a journal for a person who has named it, whether its writer lives or not; also one
 * that was put aside. It is removed if it is empty and its writer has ended; otherwise it
 * stays as it is. Another process that holds the lock is waited for until it has drained
 * nothing for `limit_ms`. Returns 0 (also if the journal is not there any more) or
 * -errno: -ENOENT: the file is not there; -ESTALE: its path leads to another file; -EUCLEAN: a record is damaged;
 * -ECANCELED: it was put aside; -EBUSY: its program wants to be called before drains, and
 * lives; -EAGAIN: another process holds the lock; or what opening or writing gave. */
int foreign_drain(const char *name, unsigned limit_ms);

/* The end of what another process has staged. */
bool foreign_end(uint64_t device, uint64_t inode, uint64_t *end);

#endif
