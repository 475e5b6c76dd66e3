/* SPDX-License-Identifier: MIT
 *
 * The table of slots: locks, references by descriptor and by file, admission and end of
 * a staged file. stage_slots.h explains slots.
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

enum { FORBIDDEN_FILES = 1024 };

struct slot slots[SLOT_COUNT];
_Atomic uint8_t slot_index_of_fd[KNOWN_DESCRIPTORS];
_Atomic uint32_t slot_opened_here[KNOWN_DESCRIPTORS];
_Atomic uint32_t slot_opened_ms[KNOWN_DESCRIPTORS];
_Atomic uint8_t slot_late_error[KNOWN_DESCRIPTORS];
_Atomic bool slot_is_behind[KNOWN_DESCRIPTORS];
_Atomic(stage_callback *) slot_callback_of_fd[KNOWN_DESCRIPTORS];

static atomic_int table_lock;
static atomic_uint table_closed; /* by so many threads */
static _Atomic uint32_t *awake;  /* the kernel sets it to 0 in a child of any fork */
static struct {
    uint64_t device, inode;
} forbidden[FORBIDDEN_FILES];
static atomic_uint forbidden_count;

/* --- Locks ---------------------------------------------------------------------- */

static void block_signals(struct signal_guard *guard)
{
    const uint64_t all = ~UINT64_C(0);
    raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&guard->signals, 8, 0, 0);
}

void slot_restore_signals(const struct signal_guard *guard)
{
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&guard->signals, 0, 8, 0, 0);
}

void slot_lock_word(atomic_int *lock)
{
    int free = 0;
    if (LIKELY(atomic_compare_exchange_strong(lock, &free, 1)))
        return;
    while (atomic_exchange(lock, 2) != 0)
        raw_call(SYS_futex, (long)lock, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

void slot_unlock_word(atomic_int *lock)
{
    if (RARELY(atomic_exchange(lock, 0) == 2))
        raw_call(SYS_futex, (long)lock, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void slot_lock_table(struct signal_guard *guard)
{
    block_signals(guard);
    slot_lock_word(&table_lock);
}

void slot_unlock_table(const struct signal_guard *guard)
{
    slot_unlock_word(&table_lock);
    slot_restore_signals(guard);
}

/* Lock the slot; false if its use has ended. */
bool slot_lock(struct signal_guard *guard, struct slot_ref ref)
{
    block_signals(guard);
    slot_lock_word(&ref.slot->lock);
    if (LIKELY(LOAD(ref.slot->generation) == ref.generation))
        return true;
    slot_unlock_word(&ref.slot->lock);
    slot_restore_signals(guard);
    return false;
}

void slot_unlock(const struct signal_guard *guard, struct slot_ref ref)
{
    slot_unlock_word(&ref.slot->lock);
    slot_restore_signals(guard);
}

bool slot_is_gone(struct slot_ref ref)
{
    return LOAD(ref.slot->generation) != ref.generation;
}

/* --- Descriptors ---------------------------------------------------------------- */

struct slot_ref slot_ref_to(struct slot *slot)
{
    struct slot_ref ref = {
        slot, atomic_load_explicit(&slot->generation, memory_order_acquire),
        LOAD(slot->device), LOAD(slot->inode)};
    if (ref.generation % 2 == 0)
        ref.slot = NULL;
    return ref;
}

struct slot_ref slot_ref_of_fd(int fd)
{
    uint8_t index = LOAD(slot_index_of_fd[fd]);
    return index > 0 ? slot_ref_to(&slots[index - 1]) : (struct slot_ref){.slot = NULL};
}

struct slot_ref slot_ref_of_file(uint64_t device, uint64_t inode)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct slot_ref ref = slot_ref_to(&slots[i]);
        if (ref.slot != NULL && ref.device == device && ref.inode == inode)
            return ref;
    }
    return (struct slot_ref){.slot = NULL};
}

bool slot_any_ref(struct slot_ref *ref)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        *ref = slot_ref_to(&slots[i]);
        if (ref->slot != NULL)
            return true;
    }
    return false;
}

/* Let the program's descriptors of a slot write to the file; if its end is final they
 * are never staged again. The caller has locked the table. */
static void detach(const struct slot *slot, int error)
{
    uint8_t index = (uint8_t)(slot - slots + 1);
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++) {
        if (LOAD(slot_index_of_fd[fd]) != index)
            continue;
        STORE(slot_index_of_fd[fd], 0);
        if (slot->is_final)
            STORE(slot_opened_here[fd], 0);
        if (error != 0)
            STORE(slot_late_error[fd], (uint8_t)error);
        identity_forget((int)fd);
    }
}

static int mark_own_fd(int fd)
{
    if (fd >= 0 && fd < KNOWN_DESCRIPTORS)
        STORE(descriptor_kinds[fd], KIND_INTERNAL);
    return fd;
}

static void unmark_own_fd(int fd)
{
    if (fd >= 0 && fd < KNOWN_DESCRIPTORS)
        STORE(descriptor_kinds[fd], KIND_UNKNOWN);
}

static void close_own_fd(int fd)
{
    if (fd >= 0)
        raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    unmark_own_fd(fd);
}

static void close_own_journal(struct journal *journal)
{
    int fd = journal->fd, part = journal->part;
    journal_close(journal);
    unmark_own_fd(fd);
    unmark_own_fd(part);
}

/* --- The life of a slot --------------------------------------------------------- */

static void reset(struct slot *slot)
{
    STORE(slot->lock, 0);
    STORE(slot->generation, 0);
    slot->file = -1;
    slot->journal = (struct journal){.fd = -1, .part = -1};
    slot->callback = NULL;
    slot->is_ending = slot->is_final = false;
}

/* After a fork that the library did not see: drop everything of the parent. */
void slot_reset_in_child(void)
{
    drain_begin_in_child();
    for (int i = 0; i < SLOT_COUNT; i++) {
        if (LOAD(slots[i].generation) % 2 == 1) {
            close_own_journal(&slots[i].journal);
            close_own_fd(slots[i].file);
        }
        reset(&slots[i]);
    }
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++) {
        STORE(slot_index_of_fd[fd], 0);
        STORE(slot_opened_here[fd], 0);
        STORE(slot_late_error[fd], 0);
        STORE(descriptor_kinds[fd], KIND_UNKNOWN);
    }
    atomic_store(&table_lock, 0);
    atomic_store(&table_closed, 0);
    identity_claim_table();
    STORE(*awake, 1);
}

bool stage_is_ready(void)
{
    if (!LOAD(stage_enabled) || LOAD(seccomp_active))
        return false;
    if (RARELY(LOAD(*awake) == 0))
        slot_reset_in_child();
    return true;
}

bool slot_is_forbidden(uint64_t device, uint64_t inode)
{
    unsigned count = atomic_load(&forbidden_count);
    if (count > FORBIDDEN_FILES)
        return true;
    for (unsigned i = 0; i < count; i++)
        if (forbidden[i].inode == inode && forbidden[i].device == device)
            return true;
    return false;
}

void slot_forbid(uint64_t device, uint64_t inode)
{
    struct signal_guard guard;
    slot_lock_table(&guard);
    if (!slot_is_forbidden(device, inode)) {
        unsigned count = LOAD(forbidden_count);
        if (count < FORBIDDEN_FILES) {
            forbidden[count].device = device;
            forbidden[count].inode = inode;
        }
        atomic_store(&forbidden_count, count + 1);
    }
    slot_unlock_table(&guard);
}

/* Log and count that a file cannot be staged. */
static void refuse(const char *path, int error)
{
    ADD(attached_page->staging.refused_files, 1);
    stage_log("not staged", path, error);
}

void slot_refuse(int fd, int error)
{
    char path[JOURNAL_PATH_BYTES];
    refuse(identity_fd_path(fd, path, sizeof path) ? path : "", error);
}

/* Longest waits for a process that drains (ms); it holds the lock for one step. */
enum { SHORT_WAIT_MS = 200, LONG_WAIT_MS = 2000 };

static bool lock_drain(struct journal *journal, unsigned patience_ms)
{
    struct lock_wait wait = {0};
    int answer;
    while ((answer = journal_lock(journal, LOCK_DRAIN)) == -EAGAIN &&
           wait.naps < patience_ms)
        lock_wait_nap(&wait);
    return answer == 0;
}

/* Remove an empty journal, or put aside one that cannot be drained. If another
 * process keeps the lock the file stays: a drainer removes an empty journal later,
 * and stops draining one that was put aside. */
void slot_end_journal(struct slot *slot, int error)
{
    char name[JOURNAL_NAME_BYTES];
    journal_name(name, stage_settings.folder, LOAD(slot->device), LOAD(slot->inode));
    if (error != 0)
        stage_log("could not be drained; its journal is put aside",
                  slot->journal.header->path, error);
    if (error != 0 && !lock_drain(&slot->journal, LONG_WAIT_MS))
        atomic_fetch_or(&slot->journal.header->flags, JOURNAL_PUT_ASIDE);
    else if (error != 0)
        journal_put_aside(&slot->journal, name);
    else if (lock_drain(&slot->journal, SHORT_WAIT_MS))
        journal_retire(&slot->journal, name);
}

/* The caller has locked table and slot. */
void slot_free(struct slot *slot, int error)
{
    detach(slot, error);
    close_own_journal(&slot->journal);
    close_own_fd(slot->file);
    slot->file = -1;
    slot->callback = NULL;
    ADD(slot->generation, 1);
}

/* A thread that is taking a slot has the table locked. */
void slot_close_table(void)
{
    struct signal_guard guard;
    atomic_fetch_add(&table_closed, 1);
    slot_lock_table(&guard);
    slot_unlock_table(&guard);
}

void slot_open_table(void)
{
    atomic_fetch_sub(&table_closed, 1);
}

static struct slot *find_free_slot(void)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        if (LOAD(slots[i].generation) % 2 == 0)
            return &slots[i];
    return NULL;
}

bool stage_stat_fd(int fd, struct statx *status)
{
    const unsigned mask = STATX_TYPE | STATX_INO | STATX_NLINK | STATX_BTIME;
    return raw_call(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask,
                    (long)status, 0) == 0;
}

uint64_t stage_device_of(const struct statx *status)
{
    return makedev(status->stx_dev_major, status->stx_dev_minor);
}

bool stage_describe(int fd, struct staged_file *file)
{
    struct statx status;
    if (!stage_stat_fd(fd, &status) ||
        !identity_fd_path(fd, file->path, JOURNAL_PATH_BYTES))
        return false;
    file->device = stage_device_of(&status);
    file->inode = status.stx_ino;
    file->birth_ns = 0;
    if (status.stx_mask & STATX_BTIME)
        file->birth_ns =
            (uint64_t)status.stx_btime.tv_sec * 1000000000u + status.stx_btime.tv_nsec;
    return true;
}

/* Classify descriptors without a slot again at their next use: one may belong to
 * the file that is staged now. */
static void recheck_descriptors(void)
{
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++)
        if (LOAD(descriptor_kinds[fd]) % 2 == 1 && LOAD(slot_index_of_fd[fd]) == 0)
            STORE(descriptor_kinds[fd], KIND_UNKNOWN);
}

static void assign_slot(struct slot *slot, int fd, const struct staged_file *file,
                        const struct journal *journal, int own)
{
    STORE(slot->device, file->device);
    STORE(slot->inode, file->inode);
    STORE(slot->partition, journal->header->partition);
    slot->journal = *journal;
    slot->file = own;
    slot->is_ending = slot->is_final = false;
    slot->callback = atomic_load(&slot_callback_of_fd[fd]);
    slot->callback_fd = fd;
    if (slot->callback != NULL)
        atomic_fetch_or(&slot->journal.header->flags, JOURNAL_CALLS_BACK);
    atomic_fetch_add(&slot->changes, 1);
    mark_own_fd(journal->fd);
    mark_own_fd(journal->part);
    mark_own_fd(own);
    atomic_fetch_add(&slot->generation, 1);
    STORE(slot_index_of_fd[fd], (uint8_t)(slot - slots + 1));
    recheck_descriptors();
}

/* Return true if the file is open more than once on this node. The kernel grants a
 * write lease only to a single opener; the lease is returned at once. If it is
 * broken in between, the kernel sends a signal that programs ignore. */
static bool is_open_elsewhere(int fd)
{
    long signal = raw_call(SYS_fcntl, fd, F_GETSIG, 0, 0, 0, 0);
    long owner = raw_call(SYS_fcntl, fd, F_GETOWN, 0, 0, 0, 0);
    long lease = raw_call(SYS_fcntl, fd, F_GETLEASE, 0, 0, 0, 0);
    if (lease == F_RDLCK || lease == F_WRLCK)
        return true; /* the program itself watches for other openers */
    raw_call(SYS_fcntl, fd, F_SETSIG, SIGURG, 0, 0, 0);
    long answer = raw_call(SYS_fcntl, fd, F_SETLEASE, F_WRLCK, 0, 0, 0);
    if (answer == 0)
        raw_call(SYS_fcntl, fd, F_SETLEASE, F_UNLCK, 0, 0, 0);
    raw_call(SYS_fcntl, fd, F_SETSIG, signal, 0, 0, 0);
    raw_call(SYS_fcntl, fd, F_SETOWN, owner, 0, 0, 0);
    /* EACCES: the file belongs to another user, and the kernel does not tell. */
    return answer == -EAGAIN || answer == -EACCES;
}

/* Return false on network file systems, whose leases mean something else. */
static bool has_leases(int fd)
{
    const unsigned NFS = 0x6969, CIFS = 0xff534d42, SMB2 = 0xfe534d42;
    struct statfs status;
    if (raw_call(SYS_fstatfs, fd, (long)&status, 0, 0, 0, 0) != 0)
        return true;
    unsigned type = (unsigned)status.f_type;
    return type != NFS && type != CIFS && type != SMB2;
}

/* Make a journal for a file that no other process has open. The journal comes first: a
 * process that opens the file from now on finds it. */
static int make_journal(struct journal *journal, int fd, const struct staged_file *file,
                        const struct part_place *part)
{
    char name[JOURNAL_NAME_BYTES];
    struct journal_terms terms = stage_settings.terms;
    if (part != NULL) {
        terms.capacity = PART_BYTES;
        terms.partition = part->partition;
        terms.part_folder = part->folder;
    }
    int answer = journal_create(journal, &terms, file);
    if (answer != 0 || !has_leases(fd) || !is_open_elsewhere(fd))
        return answer;
    journal_name(name, stage_settings.folder, file->device, file->inode);
    if (lock_drain(journal, SHORT_WAIT_MS))
        journal_retire(journal, name);
    journal_close(journal);
    return -EBUSY;
}

/* Make a journal for the file and fill a slot with it. The caller has locked the
 * table. Returns 0 or -errno (-EEXIST: another process has a journal of the file). */
static int fill_slot(int fd, const struct staged_file *file,
                     const struct part_place *part)
{
    struct journal journal;
    struct slot *slot = find_free_slot();
    if (slot == NULL)
        return -EMFILE;
    int own = journal_high_fd(fd);
    int answer = own < 0 ? own : make_journal(&journal, fd, file, part);
    if (answer != 0 && own >= 0)
        raw_call(SYS_close, own, 0, 0, 0, 0, 0);
    if (answer != 0)
        return answer;
    slot_lock_word(&slot->lock);
    assign_slot(slot, fd, file, &journal, own);
    slot_unlock_word(&slot->lock);
    return 0;
}

/* Stage the file of `fd`, unless another thread has done so. */
static int stage_descriptor(int fd, const struct staged_file *file,
                            const struct part_place *part, struct slot_ref *ref)
{
    struct signal_guard guard;
    int answer = 0;
    slot_lock_table(&guard);
    stage_note_process();
    *ref = slot_ref_of_file(file->device, file->inode);
    bool closed = atomic_load(&table_closed) > 0 || LOAD(stage_settings.stopped);
    if (ref->slot == NULL)
        answer = closed ? -EBUSY : fill_slot(fd, file, part);
    if (answer == 0)
        *ref = slot_ref_of_file(file->device, file->inode);
    if (ref->slot != NULL)
        STORE(slot_index_of_fd[fd], (uint8_t)(ref->slot - slots + 1));
    slot_unlock_table(&guard);
    return answer;
}

/* Stage the file of `fd` from now on. Data that another process has staged are
 * drained first; then a new journal can be made. If they cannot be drained now, the
 * descriptor is behind. */
struct slot_ref slot_admit(int fd, const struct part_place *part)
{
    struct staged_file file;
    struct slot_ref ref = {.slot = NULL};
    if (!stage_describe(fd, &file) || slot_is_forbidden(file.device, file.inode))
        return ref;
    int answer = stage_descriptor(fd, &file, part, &ref);
    if (answer == -EEXIST) {
        if (foreign_drain_file(file.device, file.inode, fd, AT_FDCWD, file.path) < 0) {
            STORE(slot_is_behind[fd], true);
            return ref;
        }
        answer = stage_descriptor(fd, &file, part, &ref);
    }
    if (answer != 0 && answer != -EEXIST && answer != -EBUSY)
        refuse(file.path, -answer);
    return ref;
}

int slot_start(void)
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
    for (int i = 0; i < SLOT_COUNT; i++)
        reset(&slots[i]);
    return 0;
}
