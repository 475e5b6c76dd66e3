/* SPDX-License-Identifier: MIT
 *
 * Writes into journals: decide whether a call is staged, append its data, and drain
 * when the ring is full.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "stage_slots.h"

/* Return true if a drainer is draining the file. New data must not overtake staged
 * data: staging them too saves the program from waiting for the drain. */
static bool is_being_drained(struct slot_ref ref)
{
    struct signal_guard guard;
    if (ref.slot == NULL || LOAD(ref.slot->partition) != 0 ||
        !pace_drainer_is_alive() || !slot_lock(&guard, ref))
        return false;
    bool pending = !journal_is_empty(&ref.slot->journal);
    slot_unlock(&guard, ref);
    return pending;
}

/* Return true if the data do not go to the file now, but to a journal or, if
 * `partition` is set, to a part. */
static bool is_wanted(int fd, struct slot_ref ref, uint32_t *partition)
{
    *partition = 0;
    if (LOAD(stage_settings.finished) || LOAD(stage_settings.stopped))
        return false;
    if (stage_settings.always || pace_wants_staging() || is_being_drained(ref))
        return true;
    *partition = part_wanted(fd);
    return *partition != 0;
}

/* Return true if file sizes are limited: the limit would apply to the journal, and
 * would reach the program too late. */
static bool has_size_limit(void)
{
    struct rlimit limit = {.rlim_cur = 0};
    raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0);
    return limit.rlim_cur != RLIM_INFINITY;
}

/* The data of one call, in one part or several. */
struct load {
    const struct iovec *parts;
    int count;
    uint64_t size;
};

/* One write: its place in the file, and how much of it was taken. */
struct order {
    int fd;
    int64_t offset; /* of the first byte */
    bool here;
    bool claimed; /* the offset of the descriptor was moved already */
    bool shared;  /* another process has come to use the file */
    bool is_late; /* another thread ends the use of the slot */
    uint64_t done;
    int error;
};

/* Reserve the place of a write at the offset of the descriptor, as the kernel does. */
static bool claim_offset(struct order *order, uint64_t size)
{
    if (!order->here)
        return true;
    order->offset = raw_call(SYS_lseek, order->fd, 0, SEEK_CUR, 0, 0, 0);
    order->claimed =
        order->offset >= 0 && raw_call(SYS_lseek, order->fd, order->offset + (long)size,
                                       SEEK_SET, 0, 0, 0) >= 0;
    return order->claimed;
}

static void set_offset(const struct order *order, uint64_t size)
{
    if (order->claimed)
        raw_call(SYS_lseek, order->fd, order->offset + (long)size, SEEK_SET, 0, 0, 0);
}

/* Append until all data are taken, the ring is full (true) or an error occurs. */
static bool append(struct journal *journal, const struct load *load,
                   struct order *order)
{
    uint64_t before = 0;
    for (int i = 0; i < load->count; before += load->parts[i++].iov_len) {
        const struct iovec *part = &load->parts[i];
        while (order->done < before + part->iov_len) {
            uint64_t skip = order->done - before;
            int64_t taken = journal_append(journal, (const char *)part->iov_base + skip,
                                           part->iov_len - skip,
                                           (uint64_t)order->offset + order->done);
            if (taken <= 0) {
                order->error = (int)-taken;
                return taken == 0;
            }
            order->done += (uint64_t)taken;
        }
    }
    return false;
}

static bool is_shared(const struct slot *slot)
{
    return atomic_load(&slot->journal.header->flags) & JOURNAL_WRITE_THROUGH;
}

enum verdict { ABSORBED, FULL, THROUGH };

static enum verdict append_once(struct slot_ref ref, const struct load *load,
                                struct order *order, bool first)
{
    struct signal_guard guard;
    enum verdict verdict = THROUGH;
    if (!slot_lock(&guard, ref))
        return THROUGH;
    uint64_t before = order->done;
    order->is_late = first && ref.slot->is_ending;
    bool may_begin = !first || !(order->is_late || is_shared(ref.slot));
    if (may_begin && (!first || claim_offset(order, load->size)))
        verdict = append(&ref.slot->journal, load, order) ? FULL : ABSORBED;
    /* Count the data now: they will be drained whatever the call returns. */
    if (journal_has_part(&ref.slot->journal))
        ADD(attached_page->staging.redirected_bytes, order->done - before);
    else
        ADD(attached_page->staging.absorbed_bytes, order->done - before);
    /* Look after the commit: a process that set the flag before it has not seen the
     * record. */
    order->shared = is_shared(ref.slot);
    slot_unlock(&guard, ref);
    return verdict;
}

/* Drain one step to make room; 0 or an error. `first`: no step was made before. */
static int drain_for_room(struct slot_ref ref, struct lock_wait *wait, bool first)
{
    uint64_t target = 0, next = drain_next_bytes(ref, &target);
    if (first && next > 0)
        drain_call_program(ref);
    int64_t moved = next > 0 ? drain_paced_step(ref, next) : 0;
    if (moved == -EAGAIN) {
        lock_wait_nap(wait);
        return 0;
    }
    return moved < 0 ? (int)-moved : -drain_free_ring(ref);
}

/* Append all data, and drain whenever the ring is full. */
static enum verdict append_all(struct slot_ref ref, const struct load *load,
                               struct order *order)
{
    struct lock_wait wait = {0};
    enum verdict verdict = append_once(ref, load, order, true);
    for (bool first = true; verdict == FULL && order->error == 0; first = false) {
        order->error = drain_for_room(ref, &wait, first);
        if (order->error == 0)
            verdict = append_once(ref, load, order, false);
    }
    return verdict;
}

/* Return true for errors of the journal itself, which the program does not see: the
 * write goes to the file. */
static bool is_journal_error(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG ||
           error == EBADF || error == EROFS || error == ENOMEM;
}

/* Return what was taken before an error, as the kernel does. */
static bool finish_write(struct slot_ref ref, const struct load *load,
                         struct order *order, ssize_t *answer)
{
    if (order->done < load->size)
        set_offset(order, order->done);
    if (order->done > 0 && LOAD(ref.slot->partition) == 0)
        pace_note_absorbed();
    *answer = order->done > 0 ? (ssize_t)order->done : -1;
    if (order->done == 0)
        errno = order->error;
    if (order->shared)
        drain_and_write_through(ref, true);
    return true;
}

/* Drain before a write that goes to the file itself, so that the order of writes
 * stays. */
static bool pass_through(struct slot_ref ref, ssize_t *answer)
{
    int error = ref.slot != NULL ? -drain_slot(ref) : 0;
    *answer = -1;
    if (error != 0)
        errno = error;
    return error != 0;
}

static bool is_absorbable(const struct load *load, const struct order *order,
                          uint32_t partition)
{
    const int64_t most = INT64_MAX - (INT64_C(1) << 40);
    uint64_t capacity = partition != 0 ? PART_BYTES : stage_settings.terms.capacity;
    return load->size > 0 && load->size <= capacity &&
           (order->here || (order->offset >= 0 && order->offset < most)) &&
           !has_size_limit();
}

/* Merge a part that is not on the targets where the next data go. True: that failed,
 * and `answer` is the result of the call. */
static bool end_other_part(struct slot_ref *ref, uint32_t partition, ssize_t *answer)
{
    if (ref->slot == NULL || LOAD(ref->slot->partition) == partition)
        return false;
    if (pass_through(*ref, answer))
        return true;
    drain_and_write_through(*ref, false);
    ref->slot = NULL;
    return false;
}

/* Stage a file, or redirect it. If that is not possible it is never tried again, unless
 * the partition changed meanwhile. */
static struct slot_ref admit(int fd, uint32_t partition)
{
    struct part_place place;
    struct slot_ref ref = {.slot = NULL};
    if (partition == 0)
        ref = slot_admit(fd, NULL);
    else if (part_find_place(fd, partition, &place))
        ref = slot_admit(fd, &place);
    if (ref.slot == NULL && partition == 0)
        stage_write_through(fd);
    else if (ref.slot == NULL && part_is_current(partition))
        part_forbid(fd);
    return ref;
}

/* Append to a part: that is a write to the storage, and paced as such. */
static enum verdict append_paced(struct slot_ref ref, const struct load *load,
                                 struct order *order)
{
    struct paced_call call = {.class = NULL, .fd = -1};
    pace_begin_sized(&call, CLASS_WRITE, load->size, false);
    enum verdict verdict = append_all(ref, load, order);
    wrap_end(&call, (ssize_t)order->done);
    return verdict;
}

/* Fail a write if older data of another process must come before it, and cannot be
 * drained now; false: it may be made. */
static bool fail_if_behind(int fd, ssize_t *answer)
{
    int error = stage_catch_up(fd);
    *answer = -1;
    if (RARELY(error != 0))
        errno = error;
    return error != 0;
}

/* Returns true if the call is answered, false if the caller must make it. */
static bool write_staged(int fd, const struct load *load, int64_t offset,
                         ssize_t *answer)
{
    struct order order = {.fd = fd, .offset = offset, .here = offset == HERE};
    uint32_t partition;
    if (!stage_is_ready())
        return false;
    if (fail_if_behind(fd, answer))
        return true;
    struct slot_ref ref = slot_ref_of_fd(fd);
    /* The descriptor was behind until now: its next use asks whether it may be staged.
     * It may be one that is never staged, with O_APPEND for example. */
    if (RARELY(ref.slot == NULL && !identity_is_stageable(fd)))
        return false;
    bool wanted = is_wanted(fd, ref, &partition);
    if (end_other_part(&ref, partition, answer))
        return true;
    if (!wanted || !is_absorbable(load, &order, partition))
        return pass_through(ref, answer);
    if (ref.slot == NULL)
        ref = admit(fd, partition);
    if (ref.slot == NULL)
        return fail_if_behind(fd, answer);
    enum verdict verdict = partition != 0 ? append_paced(ref, load, &order)
                                          : append_all(ref, load, &order);
    if (verdict == ABSORBED && is_journal_error(order.error)) {
        slot_refuse(fd, order.error);
        verdict = THROUGH;
    }
    if (verdict != THROUGH)
        return finish_write(ref, load, &order, answer);
    /* The part that was taken is drained; then the whole call is made. */
    drain_and_write_through(ref, !order.is_late || order.shared);
    set_offset(&order, 0);
    return false;
}

bool stage_write(int fd, const void *data, size_t size, int64_t offset, ssize_t *answer)
{
    const size_t most = 0x7ffff000; /* most that the kernel writes in one call */
    struct iovec part = {(void *)(uintptr_t)data, size < most ? size : most};
    struct load load = {&part, 1, part.iov_len};
    return write_staged(fd, &load, offset, answer);
}

/* Copy the vectors by a system call: a bad pointer must not crash here. */
static bool read_parts(const struct iovec *parts, int count, struct iovec copy[])
{
    size_t size = (size_t)count * sizeof *parts;
    struct iovec to = {copy, size}, from = {(void *)(uintptr_t)parts, size};
    long process = raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    return raw_call(SYS_process_vm_readv, process, (long)&to, 1, (long)&from, 1, 0) ==
           (long)size;
}

bool stage_gather(int fd, const struct iovec *parts, int count, int64_t offset,
                  ssize_t *answer)
{
    enum { MOST = 64 };
    struct iovec copy[MOST];
    struct load load = {copy, count, 0};
    if (!stage_is_ready())
        return false;
    if (count > 0 && count <= MOST && read_parts(parts, count, copy)) {
        for (int i = 0; i < count; i++) {
            if (copy[i].iov_len > RECORD_MAX_BYTES * 256 ||
                load.size > RECORD_MAX_BYTES * 256) {
                load.size = 0;
                break;
            }
            load.size += copy[i].iov_len;
        }
    }
    return write_staged(fd, &load, offset, answer);
}
