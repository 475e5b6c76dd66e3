/* SPDX-License-Identifier: MIT
 *
 * Drains of this process's own slots, at the granted rate.
 */
#include <errno.h>
#include <fcntl.h>

#include "stage_slots.h"

/* Threads of this process that drain now. They share the grant of the job. */
static _Atomic uint32_t threads;

void drain_begin(void)
{
    atomic_fetch_add(&threads, 1);
}

void drain_end(void)
{
    atomic_fetch_sub(&threads, 1);
}

void drain_begin_in_child(void)
{
    atomic_store(&threads, 0);
}

uint64_t drain_step_bytes(const struct journal *journal)
{
    /* No grant limits a job on single storage targets, where the larger calls get more
     * of the bandwidth: a merge must not displace the writes of other jobs. A record
     * that is larger is one call, as it was one call of the program. */
    const uint64_t MERGE_BYTES = 64 << 10;
    return journal_has_part(journal) ? MERGE_BYTES
                                     : pace_drain_step_bytes(LOAD(threads));
}

/* Return the bytes of the next step; 0 if all up to `target` is drained. */
uint64_t drain_next_bytes(struct slot_ref ref, uint64_t *target)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return 0;
    const struct journal_header *header = ref.slot->journal.header;
    if (*target == 0)
        *target = atomic_load(&header->appended);
    uint64_t next = 0;
    if (atomic_load(&header->drained) < *target)
        next = journal_next(&ref.slot->journal, drain_step_bytes(&ref.slot->journal));
    slot_unlock(&guard, ref);
    return next;
}

static int64_t step(struct slot_ref ref, uint64_t most)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return 0;
    struct journal *journal = &ref.slot->journal;
    int64_t moved = journal_lock(journal, LOCK_DRAIN);
    if (moved == 0) {
        moved = journal_step(journal, ref.slot->file, most);
        if (moved == -ENOSPC && journal_give_back(journal))
            moved = journal_step(journal, ref.slot->file, most);
        journal_unlock(journal, LOCK_DRAIN);
    }
    slot_unlock(&guard, ref);
    return moved;
}

/* Drain one step at the granted rate; -EAGAIN: another process drains. */
int64_t drain_paced_step(struct slot_ref ref, uint64_t next)
{
    struct paced_call call = {.class = NULL, .fd = -1};
    pace_begin_step(&call, CLASS_WRITE, next);
    bool merges = LOAD(ref.slot->partition) != 0;
    int64_t moved = step(ref, next);
    if (merges) {
        wrap_end_merge(&call, moved);
        return moved;
    }
    if (moved > 0)
        ADD(attached_page->staging.drained_bytes, (uint64_t)moved);
    return wrap_end(&call, moved);
}

/* True while this thread runs a function of the program. A drain that this function
 * starts itself does not call it again: that would never end. */
static _Thread_local bool in_callback;

void drain_call_program(struct slot_ref ref)
{
    struct signal_guard guard;
    if (in_callback || !slot_lock(&guard, ref))
        return;
    stage_callback *callback = ref.slot->callback;
    int fd = ref.slot->callback_fd;
    slot_unlock(&guard, ref);
    /* At the end of the program the callback may be unloaded. */
    if (callback == NULL || LOAD(stage_settings.finished))
        return;
    int kept_errno = errno;
    in_callback = true;
    callback(fd);
    in_callback = false;
    errno = kept_errno;
}

/* Free the ring; -EAGAIN: another process drains. */
static int try_free_ring(struct slot_ref ref)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return 0;
    struct journal *journal = &ref.slot->journal;
    int answer = journal_lock(journal, LOCK_DRAIN);
    if (answer == 0) {
        answer = journal_free_drained(journal, ref.slot->file);
        journal_unlock(journal, LOCK_DRAIN);
    }
    slot_unlock(&guard, ref);
    return answer;
}

int drain_free_ring(struct slot_ref ref)
{
    struct lock_wait wait = {0};
    int answer;
    while ((answer = try_free_ring(ref)) == -EAGAIN)
        lock_wait_nap(&wait);
    return answer;
}

/* Return the end of the drained data; UINT64_MAX if the use of the slot has ended.
 * `appended`: return the end of all data. */
static uint64_t position_in(struct slot_ref ref, bool appended)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return UINT64_MAX;
    const struct journal_header *header = ref.slot->journal.header;
    uint64_t position = atomic_load(appended ? &header->appended : &header->drained);
    slot_unlock(&guard, ref);
    return position;
}

/* Drain through the name of the journal: another thread has closed the file and
 * left the journal to the drainer, or the program has closed our descriptors
 * unseen. -EBADF: the name leads to no journal, or not to this one. */
static int drain_named(struct slot_ref ref)
{
    uint64_t target = position_in(ref, true);
    int answer = foreign_drain_file(ref.device, ref.inode, -1, AT_FDCWD, NULL);
    if (answer < 0)
        return answer;
    return target < UINT64_MAX && position_in(ref, false) < target ? -EBADF : 0;
}

static int drain_own(struct slot_ref ref, bool calls_program)
{
    struct lock_wait wait = {0};
    uint64_t target = 0;
    bool first = calls_program;
    for (;;) {
        uint64_t next = drain_next_bytes(ref, &target);
        if (next == 0 && slot_is_gone(ref))
            return drain_named(ref);
        if (next == 0)
            return drain_free_ring(ref);
        if (first)
            drain_call_program(ref);
        first = false;
        int64_t moved = drain_paced_step(ref, next);
        if (moved == -EAGAIN)
            lock_wait_nap(&wait);
        else if (moved < 0)
            return (int)moved;
    }
}

static int drain(struct slot_ref ref, bool calls_program)
{
    drain_begin();
    int answer = drain_own(ref, calls_program);
    drain_end();
    return answer == -EBADF ? drain_named(ref) : answer;
}

int drain_slot(struct slot_ref ref)
{
    return drain(ref, true);
}

/* Try to end the use of a slot; false if more was written meanwhile. */
static bool try_free(struct slot_ref ref, int error)
{
    struct signal_guard guard;
    bool done = true;
    slot_lock_table(&guard);
    slot_lock_word(&ref.slot->lock);
    if (LOAD(ref.slot->generation) == ref.generation) {
        done = error != 0 || journal_is_empty(&ref.slot->journal);
        if (done) {
            slot_end_journal(ref.slot, error);
            slot_free(ref.slot, error);
        }
    }
    slot_unlock_word(&ref.slot->lock);
    slot_unlock_table(&guard);
    return done;
}

/* Let no thread begin to append: it could hold up the end of the slot for ever. Return
 * true if no other thread ends the slot already. */
static bool begin_end(struct slot_ref ref, bool for_good)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return false;
    bool first = !ref.slot->is_ending;
    ref.slot->is_ending = true;
    ref.slot->is_final |= for_good;
    slot_unlock(&guard, ref);
    return first;
}

/* Drain, and write to the file directly from now on. A drain that fails is final:
 * the journal is put aside, and the next fsync or close reports the error. */
int drain_and_write_through(struct slot_ref ref, bool for_good)
{
    int error;
    /* Several threads may drain; the program is called once. */
    bool calls_program = begin_end(ref, for_good);
    do
        error = -drain(ref, calls_program);
    while (!try_free(ref, error));
    return error;
}

void drain_and_write_through_all(void)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct slot_ref ref = slot_ref_to(&slots[i]);
        if (ref.slot != NULL)
            drain_and_write_through(ref, true);
    }
}
