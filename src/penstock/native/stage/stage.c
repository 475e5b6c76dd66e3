/* SPDX-License-Identifier: MIT
 *
 * The functions of staging that the wrappers call; shim.h declares them.
 *
 * Each function finds the slot of a file. Then it drains the journal (and keeps
 * staging, or writes through from now on) or syncs it. Files that other processes have
 * staged are drained by stage_foreign.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "stage_slots.h"
#include "stream.h"

atomic_bool stage_enabled;

/* --- What the wrappers call ----------------------------------------------------- */

/* Return true if a journal may be drained later: it is on storage, and a drainer
 * runs. */
static bool has_background_drain(void)
{
    return stage_settings.terms.durable && pace_drainer_is_alive();
}

/* Return true if the program wants to be called before the file is drained. */
static bool has_callback(struct slot_ref ref)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return false;
    bool has = ref.slot->callback != NULL;
    slot_unlock(&guard, ref);
    return has;
}

int stage_flush(int fd)
{
    struct slot_ref ref =
        stage_is_ready() ? slot_ref_of_fd(fd) : (struct slot_ref){.slot = NULL};
    int error = ref.slot != NULL ? -drain_slot(ref) : stage_catch_up(fd);
    int late = atomic_exchange(&slot_late_error[fd], 0);
    return error != 0 ? error : late;
}

/* Count a change of the file itself after it was made: a sync before that has not
 * seen it. */
void stage_changed(int fd)
{
    if ((unsigned)fd >= KNOWN_DESCRIPTORS || !stage_is_ready())
        return;
    struct slot_ref ref = slot_ref_of_fd(fd);
    if (ref.slot != NULL)
        atomic_fetch_add(&ref.slot->changes, 1);
}

static bool sync_folder(const char *folder)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    long fd = raw_call(SYS_openat, AT_FDCWD, (long)folder, flags, 0, 0, 0);
    bool synced = fd >= 0 && raw_call(SYS_fsync, fd, 0, 0, 0, 0, 0) == 0;
    if (fd >= 0)
        raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return synced;
}

static bool sync_part_name(struct slot_ref ref)
{
    char folder[PART_PATH_BYTES] = "";
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return true;
    if (journal_has_part(&ref.slot->journal)) {
        memcpy(folder, ref.slot->journal.header->part, sizeof folder - 1);
        char *name = strrchr(folder, '/');
        folder[name != NULL ? name - folder : 0] = '\0';
    }
    slot_unlock(&guard, ref);
    return folder[0] == '\0' || sync_folder(folder);
}

/* Sync the folder entries of a new journal and of its part, without which they would be
 * lost, unless that was done after `changes`. False: that failed, and syncing the
 * journal is not enough. */
static bool sync_name(struct slot_ref ref, uint64_t changes)
{
    if (atomic_load(&ref.slot->synced_changes) == changes)
        return true;
    return sync_folder(stage_settings.folder) && sync_part_name(ref);
}

/* Sync the file itself through `fd`, if syncing its journal is not enough; 0 or an
 * error. The slot is not locked: no other thread has to wait. */
static int sync_file(struct slot *slot, uint64_t changes, int fd)
{
    if (atomic_load(&slot->synced_changes) == changes)
        return 0;
    long answer = raw_call(SYS_fsync, fd, 0, 0, 0, 0, 0);
    if (answer == 0)
        atomic_store(&slot->synced_changes, changes);
    return (int)-answer;
}

static int sync_journal(struct slot_ref ref)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return 0;
    int answer = journal_sync(&ref.slot->journal);
    slot_unlock(&guard, ref);
    return -answer;
}

bool stage_sync(int fd, int *error)
{
    struct slot_ref ref =
        stage_is_ready() ? slot_ref_of_fd(fd) : (struct slot_ref){.slot = NULL};
    /* Read once, before all syncs: another file may get the slot meanwhile, and its
     * journal is not synced then. */
    uint64_t changes = ref.slot != NULL ? atomic_load(&ref.slot->changes) : 0;
    if (ref.slot == NULL || slot_is_gone(ref) || !stage_settings.terms.durable ||
        !sync_name(ref, changes)) {
        *error = stage_flush(fd);
        return *error != 0;
    }
    *error = sync_file(ref.slot, changes, fd);
    if (*error == 0)
        *error = sync_journal(ref);
    if (*error == 0)
        *error = atomic_exchange(&slot_late_error[fd], 0);
    return *error != 0 || !slot_is_gone(ref);
}

int stage_write_through(int fd)
{
    if (!stage_is_ready())
        return 0;
    struct slot_ref ref = slot_ref_of_fd(fd);
    if (ref.slot != NULL)
        return drain_and_write_through(ref, true);
    int error = stage_catch_up(fd);
    if (error != 0)
        return error; /* the descriptor stays behind */
    STORE(slot_opened_here[fd], 0);
    identity_forget(fd);
    return 0;
}

/* Return true if only one descriptor of the program leads to the slot. */
static bool has_one_user(struct slot_ref ref)
{
    uint8_t index = (uint8_t)(ref.slot - slots + 1);
    int users = 0;
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++)
        users += LOAD(slot_index_of_fd[fd]) == index;
    return users <= 1;
}

static int file_of(struct slot_ref ref)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return -1;
    int file = ref.slot->file;
    slot_unlock(&guard, ref);
    return file;
}

/* Leave the journal to the drainer, with journal and file on storage. Not if
 * another descriptor could write to the file meanwhile, nor if the journal is
 * empty: no process would remove it. Parts are not left: they are merged at close. */
static bool leave_to_drainer(struct slot_ref ref)
{
    struct signal_guard guard;
    if (LOAD(ref.slot->partition) != 0)
        return false;
    uint64_t changes = atomic_load(&ref.slot->changes);
    int file = file_of(ref);
    if (file >= 0 &&
        (!sync_name(ref, changes) || sync_file(ref.slot, changes, file) != 0))
        return false;
    slot_lock_table(&guard);
    slot_lock_word(&ref.slot->lock);
    bool here = !slot_is_gone(ref);
    bool synced = here && has_one_user(ref) && !journal_is_empty(&ref.slot->journal) &&
                  journal_sync(&ref.slot->journal) == 0;
    if (synced)
        slot_free(ref.slot, 0);
    slot_unlock_word(&ref.slot->lock);
    slot_unlock_table(&guard);
    return synced || !here;
}

/* Look before writing: the table is large, and its pages are not used otherwise. */
static void forget_callback(unsigned fd)
{
    if (atomic_load(&slot_callback_of_fd[fd]) != NULL)
        atomic_store(&slot_callback_of_fd[fd], NULL);
}

int stage_close(int fd)
{
    if (!stage_is_ready() || !identity_owns_table())
        return 0;
    struct slot_ref ref = slot_ref_of_fd(fd);
    int error = 0;
    /* A drainer cannot call the program. */
    bool may_leave = ref.slot != NULL && has_background_drain() && !has_callback(ref);
    if (ref.slot != NULL && !(may_leave && leave_to_drainer(ref)))
        error = drain_and_write_through(ref, false);
    STORE(slot_opened_here[fd], 0);
    STORE(slot_index_of_fd[fd], 0);
    STORE(slot_is_behind[fd], false);
    forget_callback((unsigned)fd);
    int late = atomic_exchange(&slot_late_error[fd], 0);
    return error != 0 ? error : late;
}

static bool uses_range(struct slot_ref ref, unsigned first, unsigned last)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return false;
    const int used[] = {ref.slot->file, ref.slot->journal.fd, ref.slot->journal.part};
    slot_unlock(&guard, ref);
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        if (used[i] >= 0 && (unsigned)used[i] >= first && (unsigned)used[i] <= last)
            return true;
    return false;
}

void stage_close_range(unsigned first, unsigned last)
{
    if (!stage_is_ready() || !identity_owns_table())
        return;
    for (unsigned fd = first; fd <= last && fd <= identity_highest_fd(); fd++) {
        if (LOAD(slot_index_of_fd[fd]) != 0)
            stage_close((int)fd);
        STORE(slot_opened_here[fd], 0);
        STORE(slot_is_behind[fd], false);
        forget_callback(fd);
    }
    /* The call would close descriptors of the library too: leave their files first. */
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct slot_ref ref = slot_ref_to(&slots[i]);
        if (ref.slot != NULL && uses_range(ref, first, last))
            drain_and_write_through(ref, true);
    }
}

static bool note_opened(int fd)
{
    if ((unsigned)fd >= KNOWN_DESCRIPTORS || !stage_is_ready() ||
        !identity_owns_table())
        return false;
    identity_raise_highest_fd((unsigned)fd);
    part_note_opened(fd);
    return true;
}

void stage_opened(int fd)
{
    if (note_opened(fd))
        forget_callback((unsigned)fd); /* of a file closed unseen */
}

void stage_duplicated(int from, int to)
{
    if ((unsigned)from >= KNOWN_DESCRIPTORS || (unsigned)to >= KNOWN_DESCRIPTORS ||
        from == to || !stage_is_ready() || !identity_owns_table())
        return;
    identity_raise_highest_fd((unsigned)to);
    part_note_copied(from, to);
    STORE(slot_late_error[to], 0);
    forget_callback((unsigned)to);
}

/* Return true if the descriptor was opened for writing at explicit offsets, without
 * O_APPEND, O_DSYNC or O_DIRECT. */
static bool has_plain_flags(int fd)
{
    long flags = raw_call(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    int mode = (int)(flags & O_ACCMODE);
    return flags >= 0 && (mode == O_WRONLY || mode == O_RDWR) &&
           (flags & (O_APPEND | O_DSYNC | O_DIRECT | O_PATH)) == 0;
}

static bool is_writable(int fd)
{
    long flags = raw_call(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static bool is_in_folder(const char *path)
{
    size_t length = strlen(stage_settings.folder);
    return strncmp(path, stage_settings.folder, length) == 0 && path[length] == '/';
}

uint8_t stage_kind(int fd, const char *path)
{
    struct statx status;
    if (!stage_is_ready() || !stage_stat_fd(fd, &status))
        return KIND_CONTROLLED;
    uint64_t device = stage_device_of(&status);
    struct slot_ref ref = slot_ref_of_file(device, status.stx_ino);
    bool plain = LOAD(slot_opened_here[fd]) && has_plain_flags(fd);
    STORE(slot_is_behind[fd], false); /* perhaps of a file closed unseen */
    if (ref.slot != NULL && plain) {
        STORE(slot_index_of_fd[fd], (uint8_t)(ref.slot - slots + 1));
        stage_changed(fd); /* perhaps before there was a journal */
        return KIND_STAGEABLE;
    }
    /* The descriptor will read or append: leave the file. It may have written to the
     * journal before: an error of the drain is noted for it, too. */
    if (ref.slot != NULL)
        drain_and_write_through(ref, true);
    STORE(slot_index_of_fd[fd], 0);
    int shared = foreign_drain_file(device, status.stx_ino, fd, AT_FDCWD, path);
    bool is_behind = shared < 0 && is_writable(fd);
    STORE(slot_is_behind[fd], is_behind);
    bool stageable = shared == 0 && plain && status.stx_nlink > 0 &&
                     !is_in_folder(path) && stage_rules_allow(path) &&
                     !slot_is_forbidden(device, status.stx_ino);
    return stageable || is_behind ? KIND_STAGEABLE : KIND_CONTROLLED;
}

int stage_catch_up(int fd)
{
    struct statx status;
    if (LIKELY(!atomic_load(&slot_is_behind[fd])) || !stage_is_ready())
        return 0;
    int answer = 0;
    if (stage_stat_fd(fd, &status))
        answer = foreign_drain_file(stage_device_of(&status), status.stx_ino, fd,
                                    AT_FDCWD, NULL);
    if (answer < 0)
        return -answer;
    /* The next use of the descriptor asks whether it may be staged. Forget it first:
     * another thread that finds it no longer behind must find that, too. */
    identity_forget(fd);
    atomic_store(&slot_is_behind[fd], false);
    return 0;
}

/* Get the end offset of the data in a slot. If the slot has another use by now, the
 * file may be staged by another process. */
static bool end_in_slot(struct slot_ref ref, uint64_t *end)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return foreign_end_of(ref.device, ref.inode, end);
    bool pending = !journal_is_empty(&ref.slot->journal);
    *end = LOAD(ref.slot->journal.header->end);
    slot_unlock(&guard, ref);
    return pending;
}

bool stage_file_end(uint64_t device, uint64_t inode, uint64_t *end)
{
    if (!stage_is_ready())
        return false;
    struct slot_ref ref = slot_ref_of_file(device, inode);
    return ref.slot != NULL ? end_in_slot(ref, end)
                            : foreign_end_of(device, inode, end);
}

bool stage_end(int fd, uint64_t *end)
{
    if (!stage_is_ready())
        return false;
    struct slot_ref ref = slot_ref_of_fd(fd);
    return ref.slot != NULL && end_in_slot(ref, end);
}

int stage_write_through_file(uint64_t device, uint64_t inode, int fd, int at,
                             const char *path)
{
    if (!stage_is_ready())
        return 0;
    struct slot_ref ref = slot_ref_of_file(device, inode);
    int answer = 0;
    if (ref.slot != NULL)
        drain_and_write_through(ref, true); /* The writers get an error later. */
    else
        answer = foreign_drain_file(device, inode, fd, at, path);
    return answer < 0 ? -answer : 0;
}

/* Find the regular file behind a name; false if there is none. */
static bool stat_name(int at, const char *path, int flags, struct statx *status)
{
    return stage_is_ready() && path != NULL &&
           raw_call(SYS_statx, at, (long)path, flags | AT_STATX_DONT_SYNC,
                    STATX_TYPE | STATX_INO, (long)status, 0) == 0 &&
           (status->stx_mode & S_IFMT) == S_IFREG;
}

int stage_write_through_name(int at, const char *path, int flags)
{
    struct statx status;
    if (!stat_name(at, path, flags, &status))
        return 0;
    return stage_write_through_file(stage_device_of(&status), status.stx_ino, -1, at,
                                    path);
}

void stage_forbid(int fd)
{
    struct statx status;
    if (!stage_is_ready() || !stage_stat_fd(fd, &status))
        return;
    uint64_t device = stage_device_of(&status);
    slot_forbid(device, status.stx_ino);
    stage_write_through_file(device, status.stx_ino, fd, AT_FDCWD, NULL);
}

void stage_write_through_all(void)
{
    if (!stage_is_ready())
        return;
    if (identity_owns_table()) {
        drain_and_write_through_all();
        return;
    }
    /* In a child of vfork the library's descriptors may be closed already: drain by
     * name. */
    for (int i = 0; i < SLOT_COUNT; i++)
        if (LOAD(slots[i].generation) % 2 == 1)
            foreign_drain_file(LOAD(slots[i].device), LOAD(slots[i].inode), -1,
                               AT_FDCWD, NULL);
}

/* Drain a program that is about to be executed. Journals of other processes, and
 * journals left to the drainer, are found by the file. */
void stage_drain_program(int at, const char *path, int flags)
{
    struct statx status;
    stage_write_through_all();
    if (!stat_name(at, path, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH), &status))
        return;
    foreign_drain_file(stage_device_of(&status), status.stx_ino,
                       flags & AT_EMPTY_PATH ? at : -1, at, path);
}

bool stage_may_try_again(int error, struct lock_wait *wait)
{
    const unsigned MOST = 2000;
    if (error != ETXTBSY || !stage_is_ready() || !has_background_drain() ||
        wait->naps >= MOST)
        return false;
    lock_wait_nap(wait);
    return true;
}

/* Drain twice: other threads may stage files until `stopped` is set. A child
 * of vfork must not set it for its parent. */
bool stage_stop(void)
{
    stage_write_through_all();
    if (!stage_is_ready() || !identity_owns_table() ||
        atomic_exchange(&stage_settings.stopped, true))
        return false;
    slot_close_table(); /* a thread that has not seen `stopped` is done after this */
    slot_open_table();
    stage_write_through_all();
    return true;
}

void stage_resume(void)
{
    STORE(stage_settings.stopped, false);
}

void stage_finish(void)
{
    if (!stage_is_ready() || !identity_owns_table())
        return;
    STORE(stage_settings.finished, true);
    /* A thread that has not seen `finished` is done after this. It stays closed. */
    slot_close_table();
    struct slot_ref ref;
    while (slot_any_ref(&ref))
        if (!(has_background_drain() && leave_to_drainer(ref)))
            drain_and_write_through(ref, true);
}

/* --- Forks ---------------------------------------------------------------------- */

static struct signal_guard fork_guard;
static bool fork_has_table; /* read and written with the table locked */

/* The child will share every descriptor: leave all files that are open now. The
 * table stays locked, so that no file becomes staged until the fork is over. */
static void before_fork(void)
{
    struct signal_guard guard;
    struct slot_ref ref;
    if (!stage_is_ready())
        return;
    slot_close_table();
    for (;;) {
        drain_and_write_through_all();
        slot_lock_table(&guard);
        if (!slot_any_ref(&ref))
            break;
        slot_unlock_table(&guard);
    }
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++) {
        STORE(slot_opened_here[fd], 0);
        if (LOAD(descriptor_kinds[fd]) == KIND_STAGEABLE)
            STORE(descriptor_kinds[fd], KIND_UNKNOWN);
    }
    fork_guard = guard;
    fork_has_table = true;
}

static void after_fork(void)
{
    struct signal_guard guard = fork_guard;
    if (!fork_has_table)
        return;
    fork_has_table = false;
    slot_unlock_table(&guard);
    slot_open_table();
}

static void after_fork_in_child(void)
{
    struct signal_guard guard = fork_guard;
    fork_has_table = false;
    if (!LOAD(stage_enabled) || LOAD(seccomp_active))
        return;
    slot_reset_in_child();
    slot_restore_signals(&guard);
}

/* --- The start ------------------------------------------------------------------ */

/* Staging can be switched off and on again; the fork handlers are installed once. */
static atomic_bool watches_forks;

int stage_switch_on(void)
{
    int error = slot_start();
    if (error != 0)
        return error;
    attach_empty_page();
    if (!atomic_exchange(&watches_forks, true))
        pthread_atfork(before_fork, after_fork, after_fork_in_child);
    atomic_store(&stream_quick, false);
    atomic_store(&stage_enabled, true);
    return 0;
}

void stage_start(void)
{
    if (stage_read_settings())
        stage_switch_on();
}

/* --- For bbio.c ----------------------------------------------------------------- */

static bool is_open(int fd)
{
    return (unsigned)fd < KNOWN_DESCRIPTORS &&
           raw_call(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) >= 0;
}

int stage_allow(int fd)
{
    if (!is_open(fd))
        return EBADF;
    if (stage_is_ready() && note_opened(fd))
        identity_forget(fd);
    return 0;
}

/* Set the callback of a slot, unless its use has ended. */
static void set_callback(struct slot_ref ref, int fd, stage_callback *callback)
{
    struct signal_guard guard;
    if (!slot_lock(&guard, ref))
        return;
    _Atomic uint32_t *flags = &ref.slot->journal.header->flags;
    ref.slot->callback = callback;
    ref.slot->callback_fd = fd;
    if (callback != NULL)
        atomic_fetch_or(flags, JOURNAL_CALLS_BACK);
    else
        atomic_fetch_and(flags, ~(uint32_t)JOURNAL_CALLS_BACK);
    slot_unlock(&guard, ref);
}

int stage_notify(int fd, stage_callback *callback)
{
    if (!stage_is_ready())
        return EINVAL;
    if (!is_open(fd))
        return EBADF;
    /* A file that is not staged now may be staged later: slot_admit looks here. */
    identity_raise_highest_fd((unsigned)fd);
    atomic_store(&slot_callback_of_fd[fd], callback);
    if (!identity_is_controlled(fd) || LOAD(descriptor_kinds[fd]) != KIND_STAGEABLE ||
        LOAD(slot_is_behind[fd]))
        return 0;
    /* Stage it now: another descriptor of the file may be written first. */
    struct slot_ref ref = slot_ref_of_fd(fd);
    if (ref.slot == NULL && callback != NULL)
        ref = slot_admit(fd, NULL);
    if (ref.slot != NULL)
        set_callback(ref, fd, callback);
    return 0;
}
