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

/* --- Draining ------------------------------------------------------------------- */

/* Whether what is in it was counted in the page with this device and inode. */
static bool is_of_page(const struct journal *journal, const uint64_t page[2])
{
    const struct journal_header *header = journal->header;
    return header->page[0] == page[0] && header->page[1] == page[1] &&
           find_is_of_this_boot(header);
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

/* Sleep a moment while another process drains; false: it has drained nothing for too
 * long. */
static bool wait_for_drainer(const struct journal *journal, struct patience *patience)
{
    uint64_t drained = atomic_load(&journal->header->drained_bytes);
    if (drained != patience->drained_bytes) {
        patience->drained_bytes = drained;
        patience->naps = 0;
    }
    if (patience->most_naps > 0 && patience->naps >= patience->most_naps)
        return false;
    nap(patience);
    return true;
}

static int lock_for_drain(struct journal *journal, struct patience *patience)
{
    int answer;
    do
        answer = journal_lock(journal, LOCK_DRAIN);
    while (answer == -EAGAIN && wait_for_drainer(journal, patience));
    return answer;
}

static int settle_foreign(struct journal *journal, int file, struct patience *patience)
{
    int answer = lock_for_drain(journal, patience);
    if (answer != 0)
        return answer;
    answer = journal_settle(journal, file);
    journal_unlock(journal, LOCK_DRAIN);
    return answer;
}

/* Drain in at most `steps` steps, at the rate that is granted to `class`. */
static int drain_steps(struct journal *journal, int file, enum io_class class,
                       unsigned steps, struct patience *patience)
{
    uint64_t next;
    while (steps-- > 0 && (next = journal_next(journal, pace_drain_step_bytes())) > 0) {
        struct paced_call call = {.class = NULL};
        pace_begin_sized(&call, class, next, false);
        int64_t moved = locked_step(journal, file, next);
        if (moved > 0 && is_of_page(journal, attached_page_id))
            ADD(attached_page->staging.drained_bytes, (uint64_t)moved);
        wrap_end(&call, moved);
        if (moved == -EAGAIN && wait_for_drainer(journal, patience))
            continue;
        if (moved < 0)
            return (int)moved;
    }
    return settle_foreign(journal, file, patience);
}

/* Drain into `file`, or fail with its error, and close it. */
static int drain_foreign(struct journal *journal, int file, enum io_class class,
                         unsigned steps, struct patience *patience)
{
    if (file < 0)
        return file;
    int answer = drain_steps(journal, file, class, steps, patience);
    raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    return answer;
}

/* Of another file, damaged, or to be put aside: nobody can drain it, and the name is
 * needed. */
static bool is_hopeless(int answer)
{
    return answer == -ESTALE || answer == -EUCLEAN || answer == -ECANCELED;
}

/* Remove the journal of a dead process if it is empty, or put it aside if that is
 * hopeless; the caller holds LOCK_DRAIN. */
static void bury_locked(struct journal *journal, const char *name, int answer)
{
    /* In this order: a writer that lives may append, and then die. */
    bool dead = !journal_is_locked(journal, LOCK_LIFE);
    if (dead && journal_is_empty(journal))
        journal_retire(journal, name);
    else if (dead && is_hopeless(answer)) {
        stage_say("journal is put aside, it cannot be drained", name, -answer);
        journal_put_aside(journal, name);
    }
}

static void bury(struct journal *journal, const char *name, int answer)
{
    if (!journal_try_lock(journal, LOCK_DRAIN))
        return;
    bury_locked(journal, name, answer);
    journal_unlock(journal, LOCK_DRAIN);
}

/* After a restart of the machine, drain again what was not synced. */
static void take_back(struct journal *journal)
{
    struct journal_header *header = journal->header;
    if (find_is_of_this_boot(header) || journal_is_locked(journal, LOCK_LIFE) ||
        !journal_try_lock(journal, LOCK_DRAIN))
        return;
    atomic_store(&header->drained, atomic_load(&header->settled));
    journal_unlock(journal, LOCK_DRAIN);
}

static int settle(struct journal *journal, const char *name, int fd, int at,
                  const char *path)
{
    struct patience patience = {0};
    int answer = 0;
    take_back(journal);
    if (!journal_is_empty(journal)) {
        int file = find_file(journal, fd, at, path);
        answer = drain_foreign(journal, file, CLASS_WRITE, UINT_MAX, &patience);
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

/* True if the program lives and is to be called before a drain: only it drains. */
static bool asks(struct journal *journal)
{
    return atomic_load(&journal->header->flags) & JOURNAL_ASKS &&
           journal_is_locked(journal, LOCK_LIFE);
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
    if (ours && !journal_is_empty(&journal)) {
        struct patience patience = {0};
        int file = asks(&journal) ? -EBUSY : find_file(&journal, -1, AT_FDCWD, NULL);
        answer = drain_foreign(&journal, file, CLASS_DRAIN, STEPS, &patience);
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

static int drain_asked(struct journal *journal, struct patience *patience)
{
    if (asks(journal))
        return -EBUSY;
    take_back(journal);
    if (journal_is_empty(journal))
        return 0;
    int file = find_file_of(journal);
    return drain_foreign(journal, file, CLASS_WRITE, UINT_MAX, patience);
}

int foreign_drain(const char *name, unsigned limit_ms)
{
    struct patience patience = {.most_naps = limit_ms};
    struct journal journal;
    int answer = journal_open(&journal, name);
    if (answer != 0)
        return answer == -ENOENT ? 0 : answer; /* another process was faster */
    answer = drain_asked(&journal, &patience);
    if (answer == 0 && (answer = lock_for_drain(&journal, &patience)) == 0) {
        bury_locked(&journal, name, 0);
        journal_unlock(&journal, LOCK_DRAIN);
    }
    journal_close(&journal);
    return answer;
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
