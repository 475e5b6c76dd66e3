/* SPDX-License-Identifier: MIT
 *
 * Staging as the wrappers see it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "stage_slots.h"

atomic_bool stage_enabled;

/* --- What the wrappers call ----------------------------------------------------- */

/* The kernel may forget such bytes with the machine: they are in no file yet. */
static bool can_wait(void)
{
    return stage_settings.terms.durable && pace_drainer_is_alive();
}

int stage_flush(int fd)
{
    struct seat seat = is_ready() ? seat_of(fd) : (struct seat){.slot = NULL};
    int error = seat.slot != NULL ? -drain(seat) : 0;
    int late = atomic_exchange(&late_error[fd], 0);
    return error != 0 ? error : late;
}

/* Changes of the file itself are counted when they are made, not before: a sync that
 * comes in between has not seen them. */
void stage_changed(int fd)
{
    if ((unsigned)fd >= KNOWN_DESCRIPTORS || !is_ready())
        return;
    struct seat seat = seat_of(fd);
    if (seat.slot != NULL)
        atomic_fetch_add(&seat.slot->changes, 1);
}

/* Sync the name of a new journal: without it the journal is lost. False: it cannot be,
 * and the journal is not enough. */
static bool sync_name(const struct slot *slot)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    if (atomic_load(&slot->synced_changes) == atomic_load(&slot->changes))
        return true;
    long fd =
        raw_call(SYS_openat, AT_FDCWD, (long)stage_settings.folder, flags, 0, 0, 0);
    bool synced = fd >= 0 && raw_call(SYS_fsync, fd, 0, 0, 0, 0, 0) == 0;
    if (fd >= 0)
        raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return synced;
}

/* Sync the file itself, by a descriptor of it, if a journal that is synced is not enough;
 * 0 or an error. The slot is not held: nobody else needs to wait. */
static int sync_file(struct slot *slot, int fd)
{
    uint64_t changes = atomic_load(&slot->changes);
    if (atomic_load(&slot->synced_changes) == changes)
        return 0;
    long answer = raw_call(SYS_fsync, fd, 0, 0, 0, 0, 0);
    if (answer == 0)
        atomic_store(&slot->synced_changes, changes);
    return (int)-answer;
}

static int sync_journal(struct seat seat)
{
    struct hold hold;
    if (!hold_seat(&hold, seat))
        return 0;
    long answer = raw_call(SYS_fdatasync, seat.slot->journal.fd, 0, 0, 0, 0, 0);
    release_seat(&hold, seat);
    return (int)-answer;
}

bool stage_sync(int fd, int *error)
{
    struct seat seat = is_ready() ? seat_of(fd) : (struct seat){.slot = NULL};
    if (seat.slot == NULL || !stage_settings.terms.durable || !sync_name(seat.slot)) {
        *error = stage_flush(fd);
        return *error != 0;
    }
    *error = sync_file(seat.slot, fd);
    if (*error == 0)
        *error = sync_journal(seat);
    if (*error == 0)
        *error = atomic_exchange(&late_error[fd], 0);
    return *error != 0 || !is_lost(seat);
}

int stage_leave(int fd)
{
    if (!is_ready())
        return 0;
    struct seat seat = seat_of(fd);
    if (seat.slot != NULL)
        return leave(seat, true);
    STORE(opened_here[fd], 0);
    identity_forget(fd);
    return 0;
}

/* Whether a single descriptor leads to the slot. */
static bool has_one_user(struct seat seat)
{
    uint8_t index = (uint8_t)(seat.slot - slots + 1);
    int users = 0;
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++)
        users += LOAD(slot_of[fd]) == index;
    return users <= 1;
}

static int file_of(struct seat seat)
{
    struct hold hold;
    if (!hold_seat(&hold, seat))
        return -1;
    int file = seat.slot->file;
    release_seat(&hold, seat);
    return file;
}

/* Let the journal be drained by whoever drains: it is on storage, and so is the file that
 * it is for. Who could write to the file meanwhile, by another descriptor, drains it
 * instead; one that is empty nobody would look at any more. */
static bool hand_over(struct seat seat)
{
    struct hold hold;
    int file = file_of(seat);
    if (file >= 0 && (!sync_name(seat.slot) || sync_file(seat.slot, file) != 0))
        return false;
    hold_table(&hold);
    take(&seat.slot->lock);
    bool here = !is_lost(seat);
    bool synced = here && has_one_user(seat) &&
                  !journal_is_empty(&seat.slot->journal) &&
                  raw_call(SYS_fdatasync, seat.slot->journal.fd, 0, 0, 0, 0, 0) == 0;
    if (synced)
        vacate(seat.slot, false, 0);
    give(&seat.slot->lock);
    release_table(&hold);
    return synced || !here;
}

int stage_close(int fd)
{
    if (!is_ready() || !identity_owns_table())
        return 0;
    struct seat seat = seat_of(fd);
    int error = 0;
    if (seat.slot != NULL && !(can_wait() && hand_over(seat)))
        error = leave(seat, false);
    STORE(opened_here[fd], 0);
    STORE(slot_of[fd], 0);
    int late = atomic_exchange(&late_error[fd], 0);
    return error != 0 ? error : late;
}

static bool uses_range(struct seat seat, unsigned first, unsigned last)
{
    struct hold hold;
    if (!hold_seat(&hold, seat))
        return false;
    unsigned file = (unsigned)seat.slot->file,
             journal = (unsigned)seat.slot->journal.fd;
    release_seat(&hold, seat);
    return (file >= first && file <= last) || (journal >= first && journal <= last);
}

void stage_close_range(unsigned first, unsigned last)
{
    if (!is_ready() || !identity_owns_table())
        return;
    for (unsigned fd = first; fd <= last && fd <= identity_highest_fd(); fd++) {
        if (LOAD(slot_of[fd]) != 0)
            stage_close((int)fd);
        STORE(opened_here[fd], 0);
    }
    /* Our own descriptors in the range go too: leave their files first. */
    for (int i = 0; i < SLOTS; i++) {
        struct seat seat = seat_of_slot(&slots[i]);
        if (seat.slot != NULL && uses_range(seat, first, last))
            leave(seat, true);
    }
}

void stage_opened(int fd)
{
    if ((unsigned)fd >= KNOWN_DESCRIPTORS || !is_ready() || !identity_owns_table())
        return;
    identity_raise_highest_fd((unsigned)fd);
    STORE(opened_here[fd], 1);
}

void stage_duplicated(int from, int to)
{
    if ((unsigned)from >= KNOWN_DESCRIPTORS || (unsigned)to >= KNOWN_DESCRIPTORS ||
        from == to || !is_ready() || !identity_owns_table())
        return;
    identity_raise_highest_fd((unsigned)to);
    STORE(opened_here[to], LOAD(opened_here[from]));
    STORE(late_error[to], 0);
}

/* Opened to write at places of its own choice, without further promises. */
static bool has_plain_flags(int fd)
{
    long flags = raw_call(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    int mode = (int)(flags & O_ACCMODE);
    return flags >= 0 && (mode == O_WRONLY || mode == O_RDWR) &&
           (flags & (O_APPEND | O_DSYNC | O_DIRECT | O_PATH)) == 0;
}

static bool is_in_folder(const char *path)
{
    size_t length = strlen(stage_settings.folder);
    return strncmp(path, stage_settings.folder, length) == 0 && path[length] == '/';
}

uint8_t stage_kind(int fd, const char *path)
{
    struct statx status;
    if (!is_ready() || !look_at(fd, &status))
        return KIND_CONTROLLED;
    uint64_t device = device_of(&status);
    struct seat seat = seat_of_file(device, status.stx_ino);
    bool plain = LOAD(opened_here[fd]) && has_plain_flags(fd);
    if (seat.slot != NULL && plain) {
        STORE(slot_of[fd], (uint8_t)(seat.slot - slots + 1));
        stage_changed(fd); /* perhaps, before there was a journal */
        return KIND_STAGEABLE;
    }
    /* It is about to be used in a way of its own: to read, or to append. */
    STORE(slot_of[fd], 0);
    if (seat.slot != NULL)
        leave(seat, true);
    bool shared = foreign_settle(device, status.stx_ino, fd, AT_FDCWD, path) != 0;
    bool stageable = !shared && plain && status.stx_nlink > 0 && !is_in_folder(path) &&
                     rules_allow(path) && !is_barred(device, status.stx_ino);
    return stageable ? KIND_STAGEABLE : KIND_CONTROLLED;
}

bool stage_end_of(uint64_t device, uint64_t inode, uint64_t *end)
{
    if (!is_ready())
        return false;
    struct seat seat = seat_of_file(device, inode);
    struct hold hold;
    if (seat.slot == NULL || !hold_seat(&hold, seat))
        return foreign_end(device, inode, end);
    bool pending = !journal_is_empty(&seat.slot->journal);
    *end = LOAD(seat.slot->journal.header->end);
    release_seat(&hold, seat);
    return pending;
}

bool stage_end(int fd, uint64_t *end)
{
    struct seat seat = is_ready() ? seat_of(fd) : (struct seat){.slot = NULL};
    struct hold hold;
    if (seat.slot == NULL)
        return false;
    if (!hold_seat(&hold, seat))
        return foreign_end(seat.device, seat.inode, end);
    bool pending = !journal_is_empty(&seat.slot->journal);
    *end = LOAD(seat.slot->journal.header->end);
    release_seat(&hold, seat);
    return pending;
}

int stage_leave_file(uint64_t device, uint64_t inode, int fd, int at, const char *path)
{
    if (!is_ready())
        return 0;
    struct seat seat = seat_of_file(device, inode);
    int answer = 0;
    if (seat.slot != NULL)
        leave(seat, true); /* What goes wrong is for those who wrote to hear. */
    else
        answer = foreign_settle(device, inode, fd, at, path);
    return answer < 0 ? -answer : 0;
}

/* The regular file behind a name; false if there is none. */
static bool look_at_name(int at, const char *path, int flags, struct statx *status)
{
    return is_ready() && path != NULL &&
           raw_call(SYS_statx, at, (long)path, flags | AT_STATX_DONT_SYNC,
                    STATX_TYPE | STATX_INO, (long)status, 0) == 0 &&
           (status->stx_mode & S_IFMT) == S_IFREG;
}

int stage_leave_name(int at, const char *path, int flags)
{
    struct statx status;
    if (!look_at_name(at, path, flags, &status))
        return 0;
    return stage_leave_file(device_of(&status), status.stx_ino, -1, at, path);
}

void stage_bar(int fd)
{
    struct statx status;
    if (!is_ready() || !look_at(fd, &status))
        return;
    uint64_t device = device_of(&status);
    bar(device, status.stx_ino);
    stage_leave_file(device, status.stx_ino, fd, AT_FDCWD, NULL);
}

void stage_leave_all(void)
{
    if (!is_ready())
        return;
    if (identity_owns_table()) {
        leave_all();
        return;
    }
    /* In a child of vfork our descriptors may be closed already: by name. */
    for (int i = 0; i < SLOTS; i++)
        if (LOAD(slots[i].round) % 2 == 1)
            foreign_settle(LOAD(slots[i].device), LOAD(slots[i].inode), -1, AT_FDCWD,
                           NULL);
}

/* Our own files were left; what another process has staged, or this one has handed over,
 * is in a journal. */
void stage_leave_program(int at, const char *path, int flags)
{
    struct statx status;
    stage_leave_all();
    if (!look_at_name(at, path, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH), &status))
        return;
    foreign_settle(device_of(&status), status.stx_ino, flags & AT_EMPTY_PATH ? at : -1,
                   at, path);
}

bool stage_may_try_again(int error, struct patience *patience)
{
    const unsigned MOST = 2000;
    if (error != ETXTBSY || !is_ready() || !can_wait() || patience->naps >= MOST)
        return false;
    nap(patience);
    return true;
}

/* Twice: until the word is out files are staged. A child of vfork speaks for itself. */
bool stage_stop(void)
{
    stage_leave_all();
    if (!is_ready() || !identity_owns_table() ||
        atomic_exchange(&stage_settings.stopped, true))
        return false;
    stage_leave_all();
    return true;
}

void stage_go_on(void)
{
    STORE(stage_settings.stopped, false);
}

void stage_finish(void)
{
    if (!is_ready() || !identity_owns_table())
        return;
    STORE(stage_settings.finished, true);
    struct seat seat;
    while (any_seat(&seat))
        if (!(can_wait() && hand_over(seat)))
            leave(seat, true);
}

/* --- Forks ---------------------------------------------------------------------- */

static struct hold fork_hold;

/* Every descriptor will be shared with a child: files that are open now are written
 * through. No file can become staged until the fork is over. */
static void before_fork(void)
{
    struct hold hold;
    struct seat seat;
    if (!is_ready())
        return;
    for (;;) {
        leave_all();
        hold_table(&hold);
        if (!any_seat(&seat))
            break;
        release_table(&hold);
    }
    for (unsigned fd = 0; fd <= identity_highest_fd(); fd++) {
        STORE(opened_here[fd], 0);
        if (LOAD(descriptor_kinds[fd]) == KIND_STAGEABLE)
            STORE(descriptor_kinds[fd], KIND_UNKNOWN);
    }
    fork_hold = hold;
}

static void after_fork(void)
{
    struct hold hold = fork_hold;
    if (is_ready())
        release_table(&hold);
}

static void after_fork_in_child(void)
{
    struct hold hold = fork_hold;
    if (!LOAD(stage_enabled) || LOAD(seccomp_active))
        return;
    wake_in_child();
    restore_signals(&hold);
}

/* --- The start ------------------------------------------------------------------ */

/* It can be switched off and on again; what watches forks stays. */
static atomic_bool watches_forks;

int stage_switch_on(void)
{
    int error = slots_start();
    if (error != 0)
        return error;
    attach_empty_page();
    if (!atomic_exchange(&watches_forks, true))
        pthread_atfork(before_fork, after_fork, after_fork_in_child);
    atomic_store(&stage_enabled, true);
    return 0;
}

void stage_start(void)
{
    if (stage_read_settings())
        stage_switch_on();
}

/* --- For bbio.c ----------------------------------------------------------------- */

int stage_allow(int fd)
{
    if (!is_ready())
        return 0;
    stage_opened(fd);
    identity_forget(fd);
    return 0;
}

bool stage_notify(int fd, stage_callback *callback)
{
    if (!is_ready() || !identity_is_controlled(fd) ||
        LOAD(descriptor_kinds[fd]) != KIND_STAGEABLE)
        return false;
    struct seat seat = seat_of(fd);
    if (seat.slot == NULL)
        seat = admit(fd);
    struct hold hold;
    if (seat.slot == NULL || !hold_seat(&hold, seat))
        return false;
    seat.slot->callback = callback;
    seat.slot->callback_fd = fd;
    if (callback != NULL)
        atomic_fetch_or(&seat.slot->journal.header->flags, JOURNAL_ASKS);
    else
        atomic_fetch_and(&seat.slot->journal.header->flags, ~(uint32_t)JOURNAL_ASKS);
    release_seat(&hold, seat);
    return true;
}
