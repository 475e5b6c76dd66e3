/* SPDX-License-Identifier: MIT
 *
 * The table of the staged files of this process.
 */
#include "stage_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

enum { BARRED = 1024 };

struct slot slots[SLOTS];
_Atomic uint8_t slot_of[KNOWN_DESCRIPTORS];
_Atomic uint8_t opened_here[KNOWN_DESCRIPTORS];
_Atomic uint8_t late_error[KNOWN_DESCRIPTORS];

static atomic_int table_lock;
static _Atomic uint32_t *awake; /* wiped in a child of fork, however it was made */
static struct {
    uint64_t device, inode;
} barred[BARRED];
static atomic_uint barred_count;

/* --- Locks ---------------------------------------------------------------------- */

static void block_signals(struct hold *hold)
{
    const uint64_t all = ~UINT64_C(0);
    raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&hold->signals, 8, 0, 0);
}

void restore_signals(const struct hold *hold)
{
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&hold->signals, 0, 8, 0, 0);
}

void take(atomic_int *lock)
{
    int free = 0;
    if (LIKELY(atomic_compare_exchange_strong(lock, &free, 1)))
        return;
    while (atomic_exchange(lock, 2) != 0)
        raw_call(SYS_futex, (long)lock, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

void give(atomic_int *lock)
{
    if (RARELY(atomic_exchange(lock, 0) == 2))
        raw_call(SYS_futex, (long)lock, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void hold_table(struct hold *hold)
{
    block_signals(hold);
    take(&table_lock);
}

void release_table(const struct hold *hold)
{
    give(&table_lock);
    restore_signals(hold);
}

/* Hold the slot, if it is still what it was. */
bool hold_seat(struct hold *hold, struct seat seat)
{
    block_signals(hold);
    take(&seat.slot->lock);
    if (LIKELY(LOAD(seat.slot->round) == seat.round))
        return true;
    give(&seat.slot->lock);
    restore_signals(hold);
    return false;
}

void release_seat(const struct hold *hold, struct seat seat)
{
    give(&seat.slot->lock);
    restore_signals(hold);
}

bool is_lost(struct seat seat)
{
    return LOAD(seat.slot->round) != seat.round;
}

/* --- Descriptors ---------------------------------------------------------------- */

struct seat seat_of_slot(struct slot *slot)
{
    struct seat seat = {slot, atomic_load_explicit(&slot->round, memory_order_acquire),
                        LOAD(slot->device), LOAD(slot->inode)};
    if (seat.round % 2 == 0)
        seat.slot = NULL;
    return seat;
}

struct seat seat_of(int fd)
{
    uint8_t index = LOAD(slot_of[fd]);
    return index > 0 ? seat_of_slot(&slots[index - 1]) : (struct seat){.slot = NULL};
}

struct seat seat_of_file(uint64_t device, uint64_t inode)
{
    for (int i = 0; i < SLOTS; i++) {
        struct seat seat = seat_of_slot(&slots[i]);
        if (seat.slot != NULL && LOAD(slots[i].device) == device &&
            LOAD(slots[i].inode) == inode)
            return seat;
    }
    return (struct seat){.slot = NULL};
}

bool any_seat(struct seat *found)
{
    for (int i = 0; i < SLOTS; i++) {
        *found = seat_of_slot(&slots[i]);
        if (found->slot != NULL)
            return true;
    }
    return false;
}

/* The program's descriptors of a slot mean the file itself; `for_good`: they always
 * will. Called with the table held. */
static void detach(const struct slot *slot, bool for_good, int error)
{
    uint8_t index = (uint8_t)(slot - slots + 1);
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++) {
        if (LOAD(slot_of[fd]) != index)
            continue;
        STORE(slot_of[fd], 0);
        if (for_good)
            STORE(opened_here[fd], 0);
        if (error != 0)
            STORE(late_error[fd], (uint8_t)error);
        identity_forget((int)fd);
    }
}

static int keep_for_ourselves(int fd)
{
    if (fd >= 0 && fd < KNOWN_DESCRIPTORS)
        STORE(descriptor_kinds[fd], KIND_INTERNAL);
    return fd;
}

static void let_go(int fd)
{
    if (fd < 0)
        return;
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    if (fd < KNOWN_DESCRIPTORS)
        STORE(descriptor_kinds[fd], KIND_UNKNOWN);
}

/* --- The life of a slot --------------------------------------------------------- */

static void reset(struct slot *slot)
{
    STORE(slot->lock, 0);
    STORE(slot->round, 0);
    slot->file = -1;
    slot->journal = (struct journal){.fd = -1};
    slot->callback = NULL;
}

/* After a fork that nobody announced: nothing here is ours. */
void wake_in_child(void)
{
    for (int i = 0; i < SLOTS; i++) {
        if (LOAD(slots[i].round) % 2 == 1) {
            int journal = slots[i].journal.fd;
            journal_close(&slots[i].journal);
            if (journal >= 0)
                STORE(descriptor_kinds[journal], KIND_UNKNOWN);
            let_go(slots[i].file);
        }
        reset(&slots[i]);
    }
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++) {
        STORE(slot_of[fd], 0);
        STORE(opened_here[fd], 0);
        STORE(late_error[fd], 0);
        STORE(descriptor_kinds[fd], KIND_UNKNOWN);
    }
    atomic_store(&table_lock, 0);
    identity_claim_table();
    STORE(*awake, 1);
}

bool is_ready(void)
{
    if (!LOAD(stage_enabled) || LOAD(seccomp_active))
        return false;
    if (RARELY(LOAD(*awake) == 0))
        wake_in_child();
    return true;
}

bool is_barred(uint64_t device, uint64_t inode)
{
    unsigned count = atomic_load(&barred_count);
    if (count > BARRED)
        return true;
    for (unsigned i = 0; i < count; i++)
        if (barred[i].inode == inode && barred[i].device == device)
            return true;
    return false;
}

void bar(uint64_t device, uint64_t inode)
{
    struct hold hold;
    hold_table(&hold);
    if (!is_barred(device, inode)) {
        unsigned count = LOAD(barred_count);
        if (count < BARRED) {
            barred[count].device = device;
            barred[count].inode = inode;
        }
        atomic_store(&barred_count, count + 1);
    }
    release_table(&hold);
}

/* Say that a file cannot be staged, and count it. */
static void refuse(const char *path, int error)
{
    ADD(attached_page->staging.refused_files, 1);
    stage_say("not staged", path, error);
}

void refuse_descriptor(int fd, int error)
{
    char path[JOURNAL_PATH];
    refuse(identity_fd_path(fd, path, sizeof path) ? path : "", error);
}

/* Wait for whoever drains, for so many milliseconds; it holds the lock for a step. */
enum { A_MOMENT = 200, LONG = 2000 };

static bool lock_drain(struct journal *journal, unsigned patience_ms)
{
    struct patience patience = {0};
    int answer;
    while ((answer = journal_lock(journal, LOCK_DRAIN)) == -EAGAIN &&
           patience.naps < patience_ms)
        nap(&patience);
    return answer == 0;
}

/* Remove an empty journal, or put aside one that cannot be drained. If another process
 * does not let its lock go the file stays: a drainer will deal with one that is empty,
 * and goes no further with the other. */
void end_journal(struct slot *slot, int error)
{
    char name[JOURNAL_NAME];
    journal_name(name, stage_settings.folder, LOAD(slot->device), LOAD(slot->inode));
    if (error != 0)
        stage_say("could not be drained; its journal is put aside",
                  slot->journal.header->path, error);
    if (error != 0 && !lock_drain(&slot->journal, LONG))
        atomic_fetch_or(&slot->journal.header->flags, JOURNAL_ASIDE);
    else if (error != 0)
        journal_put_aside(&slot->journal, name);
    else if (lock_drain(&slot->journal, A_MOMENT))
        journal_retire(&slot->journal, name);
}

/* Called with table and slot held. */
void vacate(struct slot *slot, bool for_good, int error)
{
    int journal = slot->journal.fd;
    detach(slot, for_good, error);
    journal_close(&slot->journal);
    if (journal >= 0)
        STORE(descriptor_kinds[journal], KIND_UNKNOWN);
    let_go(slot->file);
    slot->file = -1;
    slot->callback = NULL;
    ADD(slot->round, 1);
}

static struct slot *free_slot(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (LOAD(slots[i].round) % 2 == 0)
            return &slots[i];
    return NULL;
}

bool look_at(int fd, struct statx *status)
{
    const unsigned mask = STATX_TYPE | STATX_INO | STATX_NLINK | STATX_BTIME;
    return raw_call(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask,
                    (long)status, 0) == 0;
}

uint64_t device_of(const struct statx *status)
{
    return makedev(status->stx_dev_major, status->stx_dev_minor);
}

bool stage_describe(int fd, struct staged_file *file)
{
    struct statx status;
    if (!look_at(fd, &status) || !identity_fd_path(fd, file->path, JOURNAL_PATH))
        return false;
    file->device = device_of(&status);
    file->inode = status.stx_ino;
    file->birth_ns = 0;
    if (status.stx_mask & STATX_BTIME)
        file->birth_ns =
            (uint64_t)status.stx_btime.tv_sec * 1000000000u + status.stx_btime.tv_nsec;
    return true;
}

/* Descriptors without a slot are asked for again: one may be of the file that is staged
 * now. */
static void ask_again(void)
{
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++)
        if (LOAD(descriptor_kinds[fd]) % 2 == 1 && LOAD(slot_of[fd]) == 0)
            STORE(descriptor_kinds[fd], KIND_UNKNOWN);
}

static void occupy(struct slot *slot, int fd, const struct staged_file *file,
                   const struct journal *journal, int own)
{
    STORE(slot->device, file->device);
    STORE(slot->inode, file->inode);
    slot->journal = *journal;
    slot->file = own;
    slot->callback = NULL;
    atomic_fetch_add(&slot->changes, 1);
    keep_for_ourselves(journal->fd);
    keep_for_ourselves(own);
    atomic_fetch_add(&slot->round, 1);
    STORE(slot_of[fd], (uint8_t)(slot - slots + 1));
    ask_again();
}

/* Whether the file was opened once more, by anybody on this node who would look for what
 * is written: the kernel gives a lease to write to none but the only one. It is given
 * back at once; should it be wanted in between, the signal is one that nobody minds. */
static bool is_open_elsewhere(int fd)
{
    long signal = raw_call(SYS_fcntl, fd, F_GETSIG, 0, 0, 0, 0);
    long owner = raw_call(SYS_fcntl, fd, F_GETOWN, 0, 0, 0, 0);
    long lease = raw_call(SYS_fcntl, fd, F_GETLEASE, 0, 0, 0, 0);
    if (lease == F_RDLCK || lease == F_WRLCK)
        return true; /* the program has a lease: it wants to know who comes */
    raw_call(SYS_fcntl, fd, F_SETSIG, SIGURG, 0, 0, 0);
    long answer = raw_call(SYS_fcntl, fd, F_SETLEASE, F_WRLCK, 0, 0, 0);
    if (answer == 0)
        raw_call(SYS_fcntl, fd, F_SETLEASE, F_UNLCK, 0, 0, 0);
    raw_call(SYS_fcntl, fd, F_SETSIG, signal, 0, 0, 0);
    raw_call(SYS_fcntl, fd, F_SETOWN, owner, 0, 0, 0);
    /* Of a file of somebody else the kernel does not tell. */
    return answer == -EAGAIN || answer == -EACCES;
}

/* Whether to ask: the leases of network file systems are about something else. */
static bool has_leases(int fd)
{
    const unsigned NFS = 0x6969, CIFS = 0xff534d42, SMB2 = 0xfe534d42;
    struct statfs status;
    if (raw_call(SYS_fstatfs, fd, (long)&status, 0, 0, 0, 0) != 0)
        return true;
    unsigned type = (unsigned)status.f_type;
    return type != NFS && type != CIFS && type != SMB2;
}

/* A journal for a file that nobody else has open. Others who open it from now on find
 * the journal: that is why it is made first. */
static int make_journal(struct journal *journal, int fd, const struct staged_file *file)
{
    char name[JOURNAL_NAME];
    int answer = journal_create(journal, &stage_settings.terms, file);
    if (answer != 0 || !has_leases(fd) || !is_open_elsewhere(fd))
        return answer;
    journal_name(name, stage_settings.folder, file->device, file->inode);
    if (lock_drain(journal, A_MOMENT))
        journal_retire(journal, name);
    journal_close(journal);
    return -EBUSY;
}

/* Make a journal for the file and a slot for the journal; called with the table held.
 * 0, or -errno (-EEXIST: another process has a journal for it). */
static int settle_in(int fd, const struct staged_file *file)
{
    struct journal journal;
    struct slot *slot = free_slot();
    if (slot == NULL)
        return -EMFILE;
    int own = high_descriptor(fd);
    int answer = own < 0 ? own : make_journal(&journal, fd, file);
    if (answer != 0 && own >= 0)
        raw_call(SYS_close, own, 0, 0, 0, 0, 0);
    if (answer != 0)
        return answer;
    take(&slot->lock);
    occupy(slot, fd, file, &journal, own);
    give(&slot->lock);
    return 0;
}

/* Stage the file of `fd`, if another thread has not done so. */
static int enter(int fd, const struct staged_file *file, struct seat *seat)
{
    struct hold hold;
    int answer = 0;
    hold_table(&hold);
    stage_know_process();
    *seat = seat_of_file(file->device, file->inode);
    if (seat->slot == NULL)
        answer = settle_in(fd, file);
    if (answer == 0)
        *seat = seat_of_file(file->device, file->inode);
    if (seat->slot != NULL)
        STORE(slot_of[fd], (uint8_t)(seat->slot - slots + 1));
    release_table(&hold);
    return answer;
}

/* Stage the file of `fd` from now on. What another process has staged is drained first;
 * then there may be room for a journal of ours. */
struct seat admit(int fd)
{
    struct staged_file file;
    struct seat seat = {.slot = NULL};
    if (!stage_describe(fd, &file) || is_barred(file.device, file.inode))
        return seat;
    int answer = enter(fd, &file, &seat);
    if (answer == -EEXIST) {
        foreign_settle(file.device, file.inode, fd, AT_FDCWD, file.path);
        answer = enter(fd, &file, &seat);
    }
    if (answer != 0 && answer != -EEXIST && answer != -EBUSY)
        refuse(file.path, -answer);
    return seat;
}

int slots_start(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    long page = raw_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (page < 0 && page > -4096)
        return (int)-page;
    long answer = raw_call(SYS_madvise, page, 4096, MADV_WIPEONFORK, 0, 0, 0);
    if (answer != 0)
        return (int)-answer;
    awake = (_Atomic uint32_t *)page;
    STORE(*awake, 1);
    for (int i = 0; i < SLOTS; i++)
        reset(&slots[i]);
    return 0;
}
