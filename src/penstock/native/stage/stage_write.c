/* SPDX-License-Identifier: MIT
 *
 * Absorbing writes into journals.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "stage_slots.h"

/* What was staged first gets to the file first: as long as somebody drains it beside the
 * program, the rest follows on the same way, and nobody waits. */
static bool is_being_drained(struct seat seat)
{
    struct hold hold;
    if (seat.slot == NULL || !pace_drainer_is_alive() || !hold_seat(&hold, seat))
        return false;
    bool pending = !journal_is_empty(&seat.slot->journal);
    release_seat(&hold, seat);
    return pending;
}

static bool is_wanted(struct seat seat)
{
    return !LOAD(stage_settings.finished) && !LOAD(stage_settings.stopped) &&
           (stage_settings.always || pace_wants_staging() || is_being_drained(seat));
}

/* A limit on file sizes would hit the journal, and comes too late from the file. */
static bool has_size_limit(void)
{
    struct rlimit limit = {.rlim_cur = 0};
    raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0);
    return limit.rlim_cur != RLIM_INFINITY;
}

/* Data that a call gives, in one piece or several. */
struct load {
    const struct iovec *parts;
    int count;
    uint64_t size;
};

/* One write: where it goes, and what has been taken of it. */
struct order {
    int fd;
    int64_t offset; /* of the first byte */
    bool here;
    bool claimed; /* the descriptor's offset is behind it already */
    bool shared;  /* another process has come to use the file */
    uint64_t done;
    int error;
};

/* Claim the place of a write in the file, as the kernel would. */
static bool claim(struct order *order, uint64_t size)
{
    if (!order->here)
        return true;
    order->offset = raw_call(SYS_lseek, order->fd, 0, SEEK_CUR, 0, 0, 0);
    order->claimed =
        order->offset >= 0 && raw_call(SYS_lseek, order->fd, order->offset + (long)size,
                                       SEEK_SET, 0, 0, 0) >= 0;
    return order->claimed;
}

static void claim_only(const struct order *order, uint64_t size)
{
    if (order->claimed)
        raw_call(SYS_lseek, order->fd, order->offset + (long)size, SEEK_SET, 0, 0, 0);
}

/* Append until all is there, the ring is full (true) or there is an error. */
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
    return atomic_load(&slot->journal.header->flags) & JOURNAL_THROUGH;
}

enum verdict { ABSORBED, FULL, THROUGH };

static enum verdict absorb(struct seat seat, const struct load *load,
                           struct order *order, bool first)
{
    struct hold hold;
    enum verdict verdict = THROUGH;
    if (!hold_seat(&hold, seat))
        return THROUGH;
    uint64_t before = order->done;
    if ((!first || !is_shared(seat.slot)) && (!first || claim(order, load->size)))
        verdict = append(&seat.slot->journal, load, order) ? FULL : ABSORBED;
    /* Whatever becomes of the call: this will be drained. */
    ADD(attached_page->staging.absorbed_bytes, order->done - before);
    /* After the commit: whoever set it before has not seen the record. */
    order->shared = is_shared(seat.slot);
    release_seat(&hold, seat);
    return verdict;
}

/* Make room by one step; 0 or an error. */
static int make_room(struct seat seat, struct patience *patience)
{
    uint64_t target = 0, next = ask_next(seat, &target);
    int64_t moved = next > 0 ? paced_step(seat, next) : 0;
    if (moved == -EAGAIN) {
        nap(patience);
        return 0;
    }
    return moved < 0 ? (int)-moved : -settle_seat(seat);
}

/* Absorb all of it, draining as far as there is no room. */
static enum verdict absorb_all(struct seat seat, const struct load *load,
                               struct order *order)
{
    struct patience patience = {0};
    enum verdict verdict = absorb(seat, load, order, true);
    while (verdict == FULL && order->error == 0) {
        order->error = make_room(seat, &patience);
        if (order->error == 0)
            verdict = absorb(seat, load, order, false);
    }
    return verdict;
}

/* Errors of the journal itself are not the program's: the write goes to the file. */
static bool is_the_journals(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG ||
           error == EBADF || error == EROFS || error == ENOMEM;
}

/* What was taken before an error counts, as the kernel has it. */
static bool concluded(struct seat seat, const struct load *load, struct order *order,
                      ssize_t *answer)
{
    if (order->done < load->size)
        claim_only(order, order->done);
    if (order->done > 0)
        pace_note_absorbed();
    *answer = order->done > 0 ? (ssize_t)order->done : -1;
    if (order->done == 0)
        errno = order->error;
    if (order->shared)
        leave(seat, true);
    return true;
}

/* What a write finds before it goes to the file itself: nothing that must come first. */
static bool pass_through(struct seat seat, ssize_t *answer)
{
    int error = seat.slot != NULL ? -drain(seat) : 0;
    *answer = -1;
    if (error != 0)
        errno = error;
    return error != 0;
}

static bool is_absorbable(const struct load *load, const struct order *order)
{
    const int64_t most = INT64_MAX - (INT64_C(1) << 40);
    return load->size > 0 && load->size <= stage_settings.terms.capacity &&
           (order->here || (order->offset >= 0 && order->offset < most)) &&
           !has_size_limit();
}

/* True: the call is answered. False: it is to be made. */
static bool write_staged(int fd, const struct load *load, int64_t offset,
                         ssize_t *answer)
{
    struct order order = {.fd = fd, .offset = offset, .here = offset == HERE};
    if (!is_ready())
        return false;
    struct seat seat = seat_of(fd);
    if (!is_wanted(seat) || !is_absorbable(load, &order))
        return pass_through(seat, answer);
    if (seat.slot == NULL)
        seat = admit(fd);
    if (seat.slot == NULL) {
        stage_leave(fd);
        return false;
    }
    enum verdict verdict = absorb_all(seat, load, &order);
    if (verdict == ABSORBED && is_the_journals(order.error)) {
        refuse_descriptor(fd, order.error);
        verdict = THROUGH;
    }
    if (verdict != THROUGH)
        return concluded(seat, load, &order, answer);
    /* What was taken of it is drained, and is written once more. */
    leave(seat, true);
    claim_only(&order, 0);
    return false;
}

bool stage_write(int fd, const void *data, size_t size, int64_t offset, ssize_t *answer)
{
    const size_t most = 0x7ffff000; /* as the kernel takes at once */
    struct iovec part = {(void *)(uintptr_t)data, size < most ? size : most};
    struct load load = {&part, 1, part.iov_len};
    return write_staged(fd, &load, offset, answer);
}

/* The vectors are read by the kernel: a bad pointer is its affair. */
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
    if (!is_ready())
        return false;
    if (count > 0 && count <= MOST && read_parts(parts, count, copy)) {
        for (int i = 0; i < count; i++) {
            if (copy[i].iov_len > RECORD_MAX * 256 || load.size > RECORD_MAX * 256) {
                load.size = 0;
                break;
            }
            load.size += copy[i].iov_len;
        }
    }
    return write_staged(fd, &load, offset, answer);
}
