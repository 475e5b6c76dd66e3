/* SPDX-License-Identifier: MIT
 *
 * Slots: the staged files of this process. For the files stage*.c only.
 *
 * A slot holds one staged file: its journal, and a descriptor of the file that belongs
 * to the library. Several descriptors of the program may lead to one slot; slots are
 * found by descriptor or by device and inode. A slot is locked for one append or one
 * step of a drain, never while a process waits for a grant; signals are blocked
 * meanwhile, because their handlers may write. Lock order: table, then slot.
 */
#ifndef PENSTOCK_STAGE_SLOTS_H
#define PENSTOCK_STAGE_SLOTS_H

#include <sys/stat.h>

#include "stage.h"

enum { SLOT_COUNT = 120 };

struct slot {
    atomic_int lock;
    _Atomic uint64_t generation; /* odd: in use; grows with every use and every end */
    _Atomic uint64_t device;
    _Atomic uint64_t inode;
    _Atomic uint32_t partition; /* of the part that its data go to; 0: there is none */
    int file; /* the library's own duplicate of the program's descriptor */
    /* Changes of the file that its journal does not have: its creation, and writes past
     * the journal. A sync must include them. Both counts only grow, over all uses. */
    _Atomic uint64_t changes, synced_changes;
    struct journal journal;
    /* True while threads end the use of the slot: nothing more is appended. Final: one
     * of them ends it for good, whichever of them frees it. */
    bool is_ending, is_final;
    stage_callback *callback;
    int callback_fd;
};

/* A reference to a slot in one of its uses. */
struct slot_ref {
    struct slot *slot; /* NULL: none */
    uint64_t generation;
    uint64_t device, inode;
};

/* Where a new part goes. */
struct part_place {
    uint32_t partition;
    char folder[PART_FOLDER_BYTES + 16];
};

/* The signal mask to restore when a lock is released. */
struct signal_guard {
    uint64_t signals;
};

/* --- stage_slots.c -------------------------------------------------------------- */

extern struct slot slots[SLOT_COUNT];

/* By descriptor of the program: index of its slot + 1 (0: none); whether this process
 * image opened it, and which partition was in force then (stage_part.c; 0: not opened
 * here); the error of a drain that no call has reported yet. */
extern _Atomic uint8_t slot_index_of_fd[KNOWN_DESCRIPTORS];
extern _Atomic uint32_t slot_opened_here[KNOWN_DESCRIPTORS];
extern _Atomic uint8_t slot_late_error[KNOWN_DESCRIPTORS];

/* By descriptor: when it was opened (ms, modulo 2^32), if slot_opened_here has a
 * partition. */
extern _Atomic uint32_t slot_opened_ms[KNOWN_DESCRIPTORS];

/* By descriptor: true if another process has left data in a journal of the file that
 * cannot be drained now. They come first: calls that write by the descriptor fail until
 * they are drained. Stores to a mapping, and what libc has in the buffer of a stream
 * that it has made itself, are not held back. */
extern _Atomic bool slot_is_behind[KNOWN_DESCRIPTORS];

/* By descriptor: the program's function to call before a drain. It stays when the use
 * of a slot ends: the file may be staged again. */
extern _Atomic(stage_callback *) slot_callback_of_fd[KNOWN_DESCRIPTORS];

/* Prepare the table; 0 or an error. */
int slot_start(void);

/* Return true if files can be staged now. In a child of a fork that the library did not
 * see, the table is cleared first. */
bool stage_is_ready(void);
void slot_reset_in_child(void);

void slot_restore_signals(const struct signal_guard *);
void slot_lock_word(atomic_int *lock);
void slot_unlock_word(atomic_int *lock);
void slot_lock_table(struct signal_guard *);
void slot_unlock_table(const struct signal_guard *);

/* Lock the slot; false if its use has ended. */
bool slot_lock(struct signal_guard *, struct slot_ref);
void slot_unlock(const struct signal_guard *, struct slot_ref);

/* Return true if the use of the slot has ended; its journal may still have data. */
bool slot_is_gone(struct slot_ref);

struct slot_ref slot_ref_to(struct slot *);
struct slot_ref slot_ref_of_fd(int fd);
struct slot_ref slot_ref_of_file(uint64_t device, uint64_t inode);
bool slot_any_ref(struct slot_ref *ref);

/* Ask the local kernel which file a descriptor refers to. */
bool stage_stat_fd(int fd, struct statx *status);
uint64_t stage_device_of(const struct statx *status);

/* Files that are mapped or locked are never staged: no call shows their use. */
bool slot_is_forbidden(uint64_t device, uint64_t inode);
void slot_forbid(uint64_t device, uint64_t inode);

/* Log and count that a file cannot be staged. */
void slot_refuse(int fd, int error);

/* Let no slot be taken until slot_open_table: files that are not staged by then are
 * written through. Threads may do so at the same time. */
void slot_close_table(void);
void slot_open_table(void);

/* Stage the file of `fd` from now on; with `part`, into a part of its own. */
struct slot_ref slot_admit(int fd, const struct part_place *part);

/* End the use of a slot: first its journal, then the slot. The caller has locked table
 * and slot. */
void slot_end_journal(struct slot *, int error);
void slot_free(struct slot *, int error);

/* --- stage.c --------------------------------------------------------------------- */

/* Try to drain what slot_is_behind is about; 0, or the error if that fails. */
int stage_catch_up(int fd);

/* --- stage_part.c ---------------------------------------------------------------- */

/* Note that `fd` is opened now, or is a copy of `from`. */
void part_note_opened(int fd);
void part_note_copied(int from, int fd);

/* Return the number of the partition to whose targets new data of `fd` have to go; 0:
 * the data go to the file. */
uint32_t part_wanted(int fd);

/* Return true if the partition has this number still: the other words of the page that
 * were read before belong to it. */
bool part_is_current(uint32_t partition);

/* Find the place of a part of the file of `fd`. False: the file is not in a folder of
 * the job, or the partition has changed. */
bool part_find_place(int fd, uint32_t partition, struct part_place *);

/* Never redirect `fd`. */
void part_forbid(int fd);

/* --- stage_drain.c -------------------------------------------------------------- */

/* Return the bytes of the next step; 0 if all up to `target` is drained. A target of 0
 * is set to the present end of the journal. */
uint64_t drain_next_bytes(struct slot_ref, uint64_t *target);

/* A thread begins or ends to drain; after a fork, the child has no such thread. */
void drain_begin(void);
void drain_end(void);
void drain_begin_in_child(void);

/* Return the most bytes of one step. */
uint64_t drain_step_bytes(const struct journal *);

/* Drain one step at the granted rate; -EAGAIN: another process drains. */
int64_t drain_paced_step(struct slot_ref, uint64_t next);

/* Free the drained part of the ring; 0 or -errno. */
int drain_free_ring(struct slot_ref);

/* Call the program's function, if there is one, before a drain. */
void drain_call_program(struct slot_ref);

/* Drain all data that had been written when this was called; 0 or -errno. */
int drain_slot(struct slot_ref);

/* Drain, and write to the file directly from now on; 0 or an error. Other threads that
 * write to the file meanwhile do so directly, and after the drain. */
int drain_and_write_through(struct slot_ref, bool for_good);

/* The same for all files that are staged now; not for those that other threads begin to
 * stage meanwhile. */
void drain_and_write_through_all(void);

#endif
