/* SPDX-License-Identifier: MIT
 *
 * Draining the staged files of this process, at the granted rate.
 */
#include <errno.h>
#include <fcntl.h>

#include "stage_slots.h"

/* Bytes of the next step, 0 if all up to `target` is drained; target 0: set it. */
uint64_t ask_next(struct seat seat, uint64_t *target)
{
    struct hold hold;
    if (!hold_seat(&hold, seat))
        return 0;
    const struct journal_header *header = seat.slot->journal.header;
    if (*target == 0)
        *target = atomic_load(&header->appended);
    uint64_t next = 0;
    if (atomic_load(&header->drained) < *target)
        next = journal_next(&seat.slot->journal, pace_drain_step_bytes());
    release_seat(&hold, seat);
    return next;
}

static int64_t step(struct seat seat, uint64_t most)
{
    struct hold hold;
    if (!hold_seat(&hold, seat))
        return 0;
    struct journal *journal = &seat.slot->journal;
    int64_t moved = journal_lock(journal, LOCK_DRAIN);
    if (moved == 0) {
        moved = journal_step(journal, seat.slot->file, most);
        if (moved == -ENOSPC && journal_give_back(journal))
            moved = journal_step(journal, seat.slot->file, most);
        journal_unlock(journal, LOCK_DRAIN);
    }
    release_seat(&hold, seat);
    return moved;
}

/* One step at the granted rate; -EAGAIN: another process drains. */
int64_t paced_step(struct seat seat, uint64_t next)
{
    struct paced_call call = {.class = NULL};
    pace_begin_sized(&call, CLASS_WRITE, next, false);
    int64_t moved = step(seat, next);
    if (moved > 0)
        ADD(attached_page->staging.drained_bytes, (uint64_t)moved);
    wrap_end(&call, moved);
    return moved;
}

static void call_back(struct seat seat)
{
    struct hold hold;
    if (!hold_seat(&hold, seat))
        return;
    stage_callback *callback = seat.slot->callback;
    int fd = seat.slot->callback_fd;
    release_seat(&hold, seat);
    /* At the end who would be called may be gone. */
    if (callback != NULL && !LOAD(stage_settings.finished))
        callback(fd);
}

/* -EAGAIN: another process drains. */
static int try_settle(struct seat seat)
{
    struct hold hold;
    if (!hold_seat(&hold, seat))
        return 0;
    struct journal *journal = &seat.slot->journal;
    int answer = journal_lock(journal, LOCK_DRAIN);
    if (answer == 0) {
        answer = journal_settle(journal, seat.slot->file);
        journal_unlock(journal, LOCK_DRAIN);
    }
    release_seat(&hold, seat);
    return answer;
}

int settle_seat(struct seat seat)
{
    struct patience patience = {0};
    int answer;
    while ((answer = try_settle(seat)) == -EAGAIN)
        nap(&patience);
    return answer;
}

/* Another thread has closed the file, and its journal is left to the drainer; or the
 * program has closed our descriptors, by calls that nobody sees. */
static int drain_by_name(struct seat seat)
{
    int answer = foreign_settle(seat.device, seat.inode, -1, AT_FDCWD, NULL);
    return answer < 0 ? answer : 0;
}

static int drain_here(struct seat seat)
{
    struct patience patience = {0};
    uint64_t target = 0;
    bool first = true;
    for (;;) {
        uint64_t next = ask_next(seat, &target);
        if (next == 0 && is_lost(seat))
            return drain_by_name(seat);
        if (next == 0)
            return settle_seat(seat);
        if (first)
            call_back(seat);
        first = false;
        int64_t moved = paced_step(seat, next);
        if (moved == -EAGAIN)
            nap(&patience);
        else if (moved < 0)
            return (int)moved;
    }
}

int drain(struct seat seat)
{
    int answer = drain_here(seat);
    return answer == -EBADF ? drain_by_name(seat) : answer;
}

/* Try to end a slot; false if more was written meanwhile. */
static bool try_vacate(struct seat seat, bool for_good, int error)
{
    struct hold hold;
    bool done = true;
    hold_table(&hold);
    take(&seat.slot->lock);
    if (LOAD(seat.slot->round) == seat.round) {
        done = error != 0 || journal_is_empty(&seat.slot->journal);
        if (done) {
            end_journal(seat.slot, error);
            vacate(seat.slot, for_good, error);
        }
    }
    give(&seat.slot->lock);
    release_table(&hold);
    return done;
}

/* Drain, and let the file be written to directly. A drain that fails is final: the
 * journal is put aside, and the error waits for fsync or close. */
int leave(struct seat seat, bool for_good)
{
    int error;
    do
        error = -drain(seat);
    while (!try_vacate(seat, for_good, error));
    return error;
}

void leave_all(void)
{
    struct seat seat;
    while (any_seat(&seat))
        leave(seat, true);
}
