/* SPDX-License-Identifier: MIT
 *
 * Staging: writes go to a journal first, and to the file later. For this folder only.
 *
 * A file is staged if it is a regular file under a controlled prefix, if this process
 * image has opened it for writing at explicit offsets, if the rules and the page allow
 * it, and if no other process is known to use it. Any other use of the file (a read, a
 * mapping, a lock, a second opener, a child) makes the process write through:
 * the journal is drained, and from then on the descriptors write to the file. Writing
 * through is always safe.
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
    bool always;          /* stage whatever the page says */
    atomic_bool finished; /* the program ends: stage nothing more */
    atomic_bool stopped;  /* the process has changed its namespace: stage nothing */
};

/* Capacity of a part. It takes only as much storage as there are data in it. */
#define PART_BYTES (UINT64_C(64) << 30)

extern struct stage_settings stage_settings;

/* Read the environment; true if something may be staged. */
bool stage_read_settings(void);

/* Note which process writes journals; call it again after a fork. */
void stage_note_process(void);

/* Stage into `folder` (NULL: memory), `capacity` bytes for each file; 0 or -errno. */
int stage_use(const char *folder, uint64_t capacity);

/* Return true if the rules let a file be staged: the first that matches decides. */
bool stage_rules_allow(const char *path);

/* Add a line to the log in the staging folder: what happened, to which file, errno. */
void stage_log(const char *what, const char *path, int error);

/* --- stage_slots.c -------------------------------------------------------------- */

/* Find out which file a descriptor refers to. */
bool stage_describe(int fd, struct staged_file *);

/* --- stage_find.c --------------------------------------------------------------- */

/* True if the machine was not restarted since the journal was made. */
bool find_is_of_this_boot(const struct journal_header *);

/* Open the file of a journal to be written. The caller says where it may be: behind
 * `fd` (-1: none) or under `path` at `at` (NULL: none); then the path in the journal
 * is tried. Returns a descriptor or -errno (-ENOENT: not found; -ESTALE: another file
 * is there). */
int find_file(const struct journal *, int fd, int at, const char *path);

/* The same for a caller that knows nothing but the journal. If the writer lives its
 * descriptors are tried too, for a file that was renamed or removed. */
int find_file_of(struct journal *);

/* --- stage_merge.c -------------------------------------------------------------- */

/* Note when the file of a part was last changed, if its writer has died. Call it before
 * the part is opened. The file is found as by find_file. Returns 0, or -EIO if the time
 * cannot be found out: then the part must not be merged now. */
int merge_note(struct journal *, int fd, int at, const char *path);

/* Before a step whose writer has died: 0, -EREMCHG if the file was changed since that
 * was noted, or -EIO if that cannot be found out. The caller holds LOCK_DRAIN. */
int merge_check(struct journal *, int file);

/* Note it again, after a step that failed or when the part cannot be opened any more.
 * The caller of the first holds LOCK_DRAIN. */
void merge_interrupted(struct journal *, int file);
void merge_stopped(struct journal *, int fd, int at, const char *path);

/* --- stage_foreign.c ------------------------------------------------------------ */

/* Waiting for another process that drains a journal. That process holds the lock for
 * one step, and the kernel takes the lock back when it dies. */
struct lock_wait {
    unsigned naps;      /* of 1 ms, since anything was drained */
    unsigned most_naps; /* 0: no limit */
    uint64_t drained_bytes;
};

/* Sleep 1 ms; every 30 s that nothing was drained the log gets a line. */
void lock_wait_nap(struct lock_wait *);

/* Drain the journal that another process, living or dead, has of a file that is about
 * to be used here; the writer stages the file no longer. The file is found by `fd`, by
 * `path` at `at`, or by the path in the journal. Returns 0 if there is no journal any
 * more, 1 if there is one that is empty or unusable, or -errno if its data cannot be
 * written now: then the file must not be written, because those data come first. */
int foreign_drain_file(uint64_t device, uint64_t inode, int fd, int at,
                       const char *path);

/* Result of a drain; for several journals the greatest counts. */
enum drain_result { DRAIN_NOTHING, DRAIN_KEPT, DRAIN_DONE };

/* Drain some steps of a journal of the job with this page. */
enum drain_result foreign_drain_step(const char *name, const uint64_t page[2]);

/* Drain a journal whose writer has ended, of the job with this page (0: of any). */
enum drain_result foreign_drain_ended(const char *name, const uint64_t page[2]);

/* Merge the part of a file of the job with this page, and let its writer, if it lives,
 * write to the file from now on. */
enum drain_result foreign_merge_part(const char *name, const uint64_t page[2]);

/* Drain a journal that a user has named, whether its writer lives or not; also one
 * that was put aside. It is removed if it is empty and its writer has ended; otherwise
 * it stays as it is. Another process that holds the lock is waited for until it has
 * drained nothing for `limit_ms`. Returns 0 (also if the journal is not there any more)
 * or -errno, that of open or write or one of these:
 *   -ENOENT     the file is not there
 *   -ESTALE     the path of the file leads to another file
 *   -EUCLEAN    a record is damaged
 *   -EREMCHG    the file was written since its part could not be read
 *   -ECANCELED  the journal was put aside
 *   -EBUSY      the program lives and wants to be called before drains
 *   -EAGAIN     another process holds the lock
 */
int foreign_drain_on_request(const char *name, unsigned limit_ms);

/* Return the end of the data that another process has staged; false: there are none. */
bool foreign_end_of(uint64_t device, uint64_t inode, uint64_t *end);

#endif
