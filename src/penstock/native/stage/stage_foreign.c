/* SPDX-License-Identifier: MIT
 *
 * Journals of other processes: whoever comes to use a file that another has staged
 * drains it first, at its own granted rate, and tells the writer to stage it no more.
 * The journal of a process that has died is removed when it is empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "stage.h"

void nap(struct patience *patience)
{
    const unsigned OFTEN = 30000;
    struct timespec millisecond = {0, 1000000};
    raw_call(SYS_nanosleep, (long)&millisecond, 0, 0, 0, 0, 0);
    if (++patience->naps % OFTEN == 0)
        stage_say("waits for another process, which drains a journal",
                  stage_settings.folder, 0);
}

/* --- The file behind a journal -------------------------------------------------- */

static bool is_of_this_boot(const struct journal_header *header)
{
    const uint64_t *boot = stage_settings.terms.boot;
    return header->boot[0] == boot[0] && header->boot[1] == boot[1];
}

/* An inode may have been used again for another file since: it has another time of birth,
 * or, where the file system keeps none, another name. After a restart of the machine a
 * device may have another number. */
static bool is_file_of(int fd, const struct journal_header *header)
{
    struct staged_file file;
    if (!stage_describe(fd, &file) || file.inode != header->inode ||
        (file.device != header->device && is_of_this_boot(header)))
        return false;
    bool has_birth = file.birth_ns != 0 && header->birth_ns != 0;
    return has_birth ? file.birth_ns == header->birth_ns
                     : strcmp(file.path, header->path) == 0;
}

/* Open a file of ours that may not be written: its owner has said so after it was opened
 * to be written. */
static int open_read_only(int at, const char *path, const struct journal_header *header)
{
    char link[32];
    struct stat status;
    int place = (int)raw_call(SYS_openat, at, (long)path, O_PATH | O_CLOEXEC, 0, 0, 0);
    if (place < 0)
        return place;
    int fd = -EACCES;
    identity_fd_link(place, link);
    if (is_file_of(place, header) &&
        raw_call(SYS_fstat, place, (long)&status, 0, 0, 0, 0) == 0 &&
        status.st_uid == (uid_t)raw_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) &&
        (status.st_mode & S_IWUSR) == 0) {
        long mode = status.st_mode & 07777;
        raw_call(SYS_fchmodat, AT_FDCWD, (long)link, mode | S_IWUSR, 0, 0, 0);
        fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)link, O_WRONLY | O_CLOEXEC, 0, 0,
                           0);
        raw_call(SYS_fchmodat, AT_FDCWD, (long)link, mode, 0, 0, 0);
    }
    raw_call(SYS_close, place, 0, 0, 0, 0, 0);
    return fd;
}

static int open_checked(int at, const char *path, const struct journal_header *header)
{
    const int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    if (path == NULL)
        return -ENOENT;
    int fd = (int)raw_call(SYS_openat, at, (long)path, flags, 0, 0, 0);
    if (fd == -EACCES)
        fd = open_read_only(at, path, header);
    if (fd < 0 || is_file_of(fd, header))
        return fd;
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return -ESTALE;
}

/* -ESTALE: it is not the file that was asked about, and its own is not to be found. */
static int open_file(const struct journal_header *header, int fd, int at,
                     const char *path)
{
    char link[32];
    int asked = -ENOENT;
    if (fd >= 0) {
        identity_fd_link(fd, link);
        asked = open_checked(AT_FDCWD, link, header);
    }
    if (asked < 0 && asked != -ESTALE)
        asked = open_checked(at, path, header);
    if (asked >= 0)
        return asked;
    int file = open_checked(AT_FDCWD, header->path, header);
    return file == -ENOENT ? asked : file;
}

/* --- Draining ------------------------------------------------------------------- */

/* Whether what is in it was counted in the page with this device and inode. */
static bool is_of_page(const struct journal *journal, const uint64_t page[2])
{
    const struct journal_header *header = journal->header;
    return header->page[0] == page[0] && header->page[1] == page[1] &&
           is_of_this_boot(header);
}

static int64_t locked_step(struct journal *journal, int file, uint64_t most)
{
    int64_t moved = journal_lock(journal, LOCK_DRAIN);
    if (moved != 0)
        return moved;
    moved = journal_step(journal, file, most);
    if (moved == -ENOSPC && !journal_is_locked(journal, LOCK_LIFE) &&
        journal_give_back(journal))
        moved = journal_step(journal, file, most);
    journal_unlock(journal, LOCK_DRAIN);
    return moved;
}

static int settle_foreign(struct journal *journal, int file)
{
    struct patience patience = {0};
    int answer;
    while ((answer = journal_lock(journal, LOCK_DRAIN)) == -EAGAIN)
        nap(&patience);
    if (answer != 0)
        return answer;
    answer = journal_settle(journal, file);
    journal_unlock(journal, LOCK_DRAIN);
    return answer;
}

/* Drain in at most `steps` steps, at the rate that is granted to `class`. */
static int drain_foreign(struct journal *journal, int file, enum io_class class,
                         unsigned steps)
{
    struct patience patience = {0};
    uint64_t next;
    while (steps-- > 0 && (next = journal_next(journal, pace_drain_step_bytes())) > 0) {
        struct paced_call call = {.class = NULL};
        pace_begin_sized(&call, class, next, false);
        int64_t moved = locked_step(journal, file, next);
        if (moved > 0 && is_of_page(journal, attached_page_id))
            ADD(attached_page->staging.drained_bytes, (uint64_t)moved);
        wrap_end(&call, moved);
        if (moved == -EAGAIN)
            nap(&patience);
        else if (moved < 0)
            return (int)moved;
    }
    return settle_foreign(journal, file);
}

/* Of another file, damaged, or to be put aside: nobody can drain it, and the name is
 * needed. */
static bool is_hopeless(int answer)
{
    return answer == -ESTALE || answer == -EUCLEAN || answer == -ECANCELED;
}

/* The journal of a dead process goes once it is empty, or aside if that is hopeless. */
static void bury(struct journal *journal, const char *name, int answer)
{
    if (!journal_try_lock(journal, LOCK_DRAIN))
        return;
    bool dead = !journal_is_locked(journal, LOCK_LIFE);
    if (dead && journal_is_empty(journal))
        journal_retire(journal, name);
    else if (dead && is_hopeless(answer)) {
        stage_say("journal is put aside, it cannot be drained", name, -answer);
        journal_put_aside(journal, name);
    }
    journal_unlock(journal, LOCK_DRAIN);
}

/* After a restart of the machine, drain again what was not synced. */
static void take_back(struct journal *journal)
{
    struct journal_header *header = journal->header;
    if (is_of_this_boot(header) || journal_is_locked(journal, LOCK_LIFE) ||
        !journal_try_lock(journal, LOCK_DRAIN))
        return;
    atomic_store(&header->drained, atomic_load(&header->settled));
    journal_unlock(journal, LOCK_DRAIN);
}

static int settle(struct journal *journal, const char *name, int fd, int at,
                  const char *path)
{
    int answer = 0;
    take_back(journal);
    if (!journal_is_empty(journal)) {
        int file = open_file(journal->header, fd, at, path);
        answer = file < 0 ? file : drain_foreign(journal, file, CLASS_WRITE, UINT_MAX);
        if (file >= 0)
            raw_call(SYS_close, file, 0, 0, 0, 0, 0);
        if (answer != 0)
            stage_say("journal is kept, it cannot be drained now", name, -answer);
    }
    bury(journal, name, answer);
    return is_hopeless(answer) ? 0 : answer;
}

int foreign_settle(uint64_t device, uint64_t inode, int fd, int at, const char *path)
{
    struct journal journal;
    char name[JOURNAL_NAME];
    if (!journal_name(name, stage_settings.folder, device, inode))
        return 0;
    int answer = journal_open(&journal, name);
    if (answer == -ENOENT || answer == -ENOTDIR)
        return 0;
    if (answer != 0) {
        stage_say("journal is kept, it cannot be read", name, -answer);
        return 1;
    }
    atomic_fetch_or(&journal.header->flags, JOURNAL_THROUGH);
    answer = settle(&journal, name, fd, at, path);
    if (answer == 0)
        answer = journal_is_locked(&journal, LOCK_LIFE);
    journal_close(&journal);
    return answer;
}

enum visited foreign_visit(const char *name, const uint64_t page[2])
{
    const unsigned STEPS = 16; /* then it is the turn of another journal */
    struct journal journal;
    enum visited visited = VISITED_NOTHING;
    int answer = journal_open(&journal, name);
    if (answer != 0)
        return answer == -ENOENT || answer == -EPERM ? VISITED_NOTHING : VISITED_KEPT;
    bool ours = is_of_page(&journal, page);
    bool asks = atomic_load(&journal.header->flags) & JOURNAL_ASKS &&
                journal_is_locked(&journal, LOCK_LIFE);
    if (ours && !journal_is_empty(&journal)) {
        int file = asks ? -EBUSY : open_file(journal.header, -1, AT_FDCWD, NULL);
        answer = file < 0 ? file : drain_foreign(&journal, file, CLASS_DRAIN, STEPS);
        if (file >= 0)
            raw_call(SYS_close, file, 0, 0, 0, 0, 0);
        visited = answer == 0 ? VISITED_DRAINED : VISITED_KEPT;
    }
    if (ours)
        bury(&journal, name, answer);
    journal_close(&journal);
    return visited;
}

enum visited foreign_adopt(const char *name, const uint64_t page[2])
{
    struct journal journal;
    if (journal_open(&journal, name) != 0)
        return VISITED_NOTHING;
    bool wanted = page[1] == 0 || is_of_page(&journal, page);
    bool orphan = wanted && !journal_is_locked(&journal, LOCK_LIFE);
    if (orphan)
        settle(&journal, name, -1, AT_FDCWD, NULL);
    journal_close(&journal);
    return orphan ? VISITED_DRAINED : VISITED_NOTHING;
}

bool foreign_end(uint64_t device, uint64_t inode, uint64_t *end)
{
    char name[JOURNAL_NAME];
    struct journal_header header;
    if (!journal_name(name, stage_settings.folder, device, inode))
        return false;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)name, flags, 0, 0, 0);
    if (fd < 0)
        return false;
    long size = raw_call(SYS_pread64, fd, (long)&header, sizeof header, 0, 0, 0);
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    *end = LOAD(header.end);
    return size == (long)sizeof header && header.magic == JOURNAL_MAGIC &&
           header.version == JOURNAL_VERSION &&
           LOAD(header.drained) < LOAD(header.appended);
}
