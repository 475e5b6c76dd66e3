/* SPDX-License-Identifier: MIT
 *
 * The staged files of this process: slots, and who holds them. For stage*.c only.
 *
 * A slot is a staged file: its journal, and a descriptor of our own for it. Descriptors
 * of the program lead to it by number; whatever leads to the same inode finds it.
 * A lock is held for one append or for one step of a drain, with signals blocked (their
 * handlers may write), and never while a grant is waited for. The order: table, slot.
 */
#ifndef PENSTOCK_STAGE_SLOTS_H
#define PENSTOCK_STAGE_SLOTS_H

#include <sys/stat.h>

#include "stage.h"

enum { SLOTS = 120 };

struct slot {
    atomic_int lock;
    _Atomic uint64_t round; /* odd: in use; a new number for every use */
    _Atomic uint64_t device;
    _Atomic uint64_t inode;
    int file; /* our own descriptor, of the program's open description */
    /* What the file itself, without its journal, must be synced for: that it is there,
     * and what was written past the journal. Both numbers only grow, over all uses. */
    _Atomic uint64_t changes, synced_changes;
    struct journal journal;
    stage_callback *callback;
    int callback_fd;
};

/* A slot as it was when somebody looked for it. */
struct seat {
    struct slot *slot; /* NULL: none */
    uint64_t round;
    uint64_t device, inode;
};

/* A lock that is held: the signals that were blocked before. */
struct hold {
    uint64_t signals;
};

/* --- stage_slots.c -------------------------------------------------------------- */

extern struct slot slots[SLOTS];

/* Of the program's descriptors: slot + 1; whether this process image opened it; the
 * error of a drain that nobody waited for. */
extern _Atomic uint8_t slot_of[KNOWN_DESCRIPTORS];
extern _Atomic uint8_t opened_here[KNOWN_DESCRIPTORS];
extern _Atomic uint8_t late_error[KNOWN_DESCRIPTORS];

/* Prepare the table; 0 or an error. */
int slots_start(void);

/* True if files are staged now; in a child of a fork that nobody announced, the table
 * is cleared first. */
bool is_ready(void);
void wake_in_child(void);

void restore_signals(const struct hold *);
void take(atomic_int *lock);
void give(atomic_int *lock);
void hold_table(struct hold *);
void release_table(const struct hold *);

/* Hold the slot, if it is still what it was. */
bool hold_seat(struct hold *, struct seat);
void release_seat(const struct hold *, struct seat);

/* The slot has been ended since: its journal may still have something in it. */
bool is_lost(struct seat);

struct seat seat_of_slot(struct slot *);
struct seat seat_of(int fd);
struct seat seat_of_file(uint64_t device, uint64_t inode);
bool any_seat(struct seat *found);

/* Which file a descriptor refers to, as the local kernel knows it. */
bool look_at(int fd, struct statx *status);
uint64_t device_of(const struct statx *status);

/* Files that are mapped or locked: no call tells when they are used. */
bool is_barred(uint64_t device, uint64_t inode);
void bar(uint64_t device, uint64_t inode);

/* Say that a file cannot be staged, and count it. */
void refuse_descriptor(int fd, int error);

/* Stage the file of `fd` from now on. */
struct seat admit(int fd);

/* End a slot, with table and slot held: first the journal, then the rest. */
void end_journal(struct slot *, int error);
void vacate(struct slot *, bool for_good, int error);

/* --- stage_drain.c -------------------------------------------------------------- */

/* Bytes of the next step, 0 if all up to `target` is drained; target 0: set it. */
uint64_t ask_next(struct seat, uint64_t *target);

/* One step at the granted rate; -EAGAIN: another process drains. */
int64_t paced_step(struct seat, uint64_t next);

/* Let the ring be used again; 0 or -errno. */
int settle_seat(struct seat);

/* Drain what had been written when this was called; 0 or -errno. */
int drain(struct seat);

/* Drain, and let the file be written to directly; 0 or an error. */
int leave(struct seat, bool for_good);
void leave_all(void);

#endif
