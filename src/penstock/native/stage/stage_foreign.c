/* SPDX-License-Identifier: MIT
 *
 * Drains of journals of other processes, living or dead.
 *
 * A process that is about to use a file which another process has staged drains the
 * journal first, at its own granted rate, and tells the writer to stage the file no
 * longer. Drainers drain beside the writer, or after its death. The journal of a dead
 * process is removed when it is empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "stage.h"
#include "stage_slots.h"

void lock_wait_nap(struct lock_wait *wait)
{
    const unsigned OFTEN = 30000;
    struct timespec millisecond = {0, 1000000};
    raw_call(SYS_nanosleep, (long)&millisecond, 0, 0, 0, 0, 0);
    if (++wait->naps % OFTEN == 0)
        stage_log("waits for another process, which drains a journal",
                  stage_settings.folder, 0);
}

/* --- Draining ------------------------------------------------------------------- */

/* Return true if the data of the journal were counted in the page with this
 * identity. */
static bool is_of_page(const struct journal *journal, const uint64_t page[2])
{
    const struct journal_header *header = journal->header;
    return header->page[0] == page[0] && header->page[1] == page[1] &&
           find_is_of_this_boot(header);
}

static int64_t dead_step(struct journal *journal, int file, uint64_t most)
{
    int answer = merge_check(journal, file);
    if (answer != 0)
        return answer;
    int64_t moved = journal_step(journal, file, most);
    if (moved == -ENOSPC && journal_give_back(journal))
        moved = journal_step(journal, file, most);
    if (moved < 0)
        merge_interrupted(journal, file);
    return moved;
}

static int64_t locked_step(struct journal *journal, int file, uint64_t most)
{
    int64_t moved = journal_lock(journal, LOCK_DRAIN);
    if (moved != 0)
        return moved;
    bool lives = journal_is_locked(journal, LOCK_LIFE);
    moved = lives ? journal_step(journal, file, most) : dead_step(journal, file, most);
    journal_unlock(journal, LOCK_DRAIN);
    return moved;
}

/* Sleep 1 ms while another process drains; false if it has drained nothing for too
 * long. */
static bool wait_for_progress(const struct journal *journal, struct lock_wait *wait)
{
    uint64_t drained = atomic_load(&journal->header->drained_bytes);
    if (drained != wait->drained_bytes) {
        wait->drained_bytes = drained;
        wait->naps = 0;
    }
    if (wait->most_naps > 0 && wait->naps >= wait->most_naps)
        return false;
    lock_wait_nap(wait);
    return true;
}

static int lock_for_drain(struct journal *journal, struct lock_wait *wait)
{
    int answer;
    do
        answer = journal_lock(journal, LOCK_DRAIN);
    while (answer == -EAGAIN && wait_for_progress(journal, wait));
    return answer;
}

static int free_ring(struct journal *journal, int file, struct lock_wait *wait)
{
    int answer = lock_for_drain(journal, wait);
    if (answer != 0)
        return answer;
    answer = journal_free_drained(journal, file);
    journal_unlock(journal, LOCK_DRAIN);
    return answer;
}

/* Drain in at most `steps` steps, at the rate that is granted to `class`. */
static int drain_steps(struct journal *journal, int file, enum io_class class,
                       unsigned steps, struct lock_wait *wait)
{
    uint64_t next;
    while (steps-- > 0 &&
           (next = journal_next(journal, drain_step_bytes(journal))) > 0) {
        struct paced_call call = {.class = NULL, .fd = -1};
        pace_begin_step(&call, class, next);
        int64_t moved = locked_step(journal, file, next);
        bool merges = journal_has_part(journal);
        /* Data in a part were counted as written, not as staged. */
        if (moved > 0 && !merges && is_of_page(journal, attached_page_id))
            ADD(attached_page->staging.drained_bytes, (uint64_t)moved);
        if (merges)
            wrap_end_merge(&call, moved);
        else
            wrap_end(&call, moved);
        if (moved == -EAGAIN && class != CLASS_DRAIN &&
            wait_for_progress(journal, wait))
            continue;
        if (moved < 0)
            return (int)moved;
    }
    return free_ring(journal, file, wait);
}

/* Drain into `file` and close it; a negative `file` is the error of opening it. */
static int drain_foreign(struct journal *journal, int file, enum io_class class,
                         unsigned steps, struct lock_wait *wait)
{
    if (file < 0)
        return file;
    drain_begin();
    int answer = drain_steps(journal, file, class, steps, wait);
    drain_end();
    raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    return answer;
}

/* Return true if no later drain can succeed: the file was replaced or written, a record
 * is damaged, or the journal was put aside. The name of the journal is then needed for
 * a new one. */
static bool is_hopeless(int answer)
{
    return answer == -ESTALE || answer == -EUCLEAN || answer == -ECANCELED ||
           answer == -EREMCHG;
}

/* Remove the journal of a dead process if it is empty; put it aside if no drain can
 * succeed. The caller holds LOCK_DRAIN. */
static void clean_up_locked(struct journal *journal, const char *name, int answer)
{
    /* Check the writer first: while it lives it may append, and then die. */
    bool dead = !journal_is_locked(journal, LOCK_LIFE);
    if (dead && journal_is_empty(journal))
        journal_retire(journal, name);
    else if (dead && is_hopeless(answer)) {
        stage_log("journal is put aside, it cannot be drained", name, -answer);
        journal_put_aside(journal, name);
    }
}

static void clean_up(struct journal *journal, const char *name, int answer)
{
    if (!journal_try_lock(journal, LOCK_DRAIN))
        return;
    clean_up_locked(journal, name, answer);
    journal_unlock(journal, LOCK_DRAIN);
}

/* After a restart of the machine, drain again what was not synced. */
static void redo_unsynced(struct journal *journal)
{
    struct journal_header *header = journal->header;
    if (find_is_of_this_boot(header) || journal_is_locked(journal, LOCK_LIFE) ||
        !journal_try_lock(journal, LOCK_DRAIN))
        return;
    atomic_store(&header->drained, atomic_load(&header->freed));
    journal_unlock(journal, LOCK_DRAIN);
}

/* Drain all of the journal into `file`, which drain_foreign closes. */
static int drain_whole(struct journal *journal, const char *name, int file)
{
    struct lock_wait wait = {0};
    int answer = drain_foreign(journal, file, CLASS_WRITE, UINT_MAX, &wait);
    if (answer != 0)
        stage_log("journal is kept, it cannot be drained now", name, -answer);
    clean_up(journal, name, answer);
    return is_hopeless(answer) ? 0 : answer;
}

/* Return true if there is nothing to drain; the journal of a dead process is then
 * removed. */
static bool is_done(struct journal *journal, const char *name)
{
    redo_unsynced(journal);
    if (!journal_is_empty(journal))
        return false;
    clean_up(journal, name, 0);
    return true;
}

static int drain_and_clean_up(struct journal *journal, const char *name, int fd, int at,
                              const char *path)
{
    if (is_done(journal, name))
        return 0;
    return drain_whole(journal, name, find_file(journal, fd, at, path));
}

/* Open a journal whose file may be at `fd` or at `path`: see find_file. */
static int open_journal(struct journal *journal, const char *name, int fd, int at,
                        const char *path)
{
    int answer = journal_open_header(journal, name);
    if (answer != 0)
        return answer;
    answer = merge_note(journal, fd, at, path);
    if (answer == 0 && (answer = journal_open_ring(journal)) != 0)
        merge_stopped(journal, fd, at, path);
    if (answer != 0)
        journal_close(journal);
    return answer;
}

static int open_named(struct journal *journal, const char *name)
{
    return open_journal(journal, name, -1, AT_FDCWD, NULL);
}

/* The part of a journal cannot be read now. Put the journal aside if it belongs to
 * another file, whose inode this file has by now: return true. */
static bool is_of_other_file(const char *name, int fd, int at, const char *path)
{
    struct journal journal;
    if (journal_open_header(&journal, name) != 0)
        return false;
    int file = find_file(&journal, fd, at, path);
    if (file >= 0)
        raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    /* Its writer stages it no longer. */
    atomic_fetch_or(&journal.header->flags, JOURNAL_WRITE_THROUGH);
    if (file == -ESTALE)
        clean_up(&journal, name, file);
    journal_close(&journal);
    return file == -ESTALE;
}

int foreign_drain_file(uint64_t device, uint64_t inode, int fd, int at,
                       const char *path)
{
    struct journal journal;
    char name[JOURNAL_NAME_BYTES];
    if (!journal_name(name, stage_settings.folder, device, inode))
        return 0;
    int answer = open_journal(&journal, name, fd, at, path);
    if (answer == -ENOENT || answer == -ENOTDIR)
        return 0;
    if (answer == -EIO && is_of_other_file(name, fd, at, path))
        return 0;
    if (answer != 0) {
        stage_log("journal is kept, it cannot be read", name, -answer);
        return answer == -EIO ? answer : 1;
    }
    atomic_fetch_or(&journal.header->flags, JOURNAL_WRITE_THROUGH);
    answer = drain_and_clean_up(&journal, name, fd, at, path);
    if (answer == 0)
        answer = journal_is_locked(&journal, LOCK_LIFE);
    journal_close(&journal);
    return answer;
}

/* Return true if the program lives and wants to be called before a drain: only it
 * drains. */
static bool wants_call(struct journal *journal)
{
    return atomic_load(&journal->header->flags) & JOURNAL_CALLS_BACK &&
           journal_is_locked(journal, LOCK_LIFE);
}

enum drain_result foreign_drain_step(const char *name, const uint64_t page[2])
{
    const unsigned STEPS = 16; /* then another journal has its turn */
    struct journal journal;
    enum drain_result result = DRAIN_NOTHING;
    int answer = open_named(&journal, name);
    if (answer != 0)
        return answer == -ENOENT || answer == -EPERM ? DRAIN_NOTHING : DRAIN_KEPT;
    /* A part is merged by its writer, or after its writer's death. */
    bool ours = is_of_page(&journal, page) &&
                !(journal_has_part(&journal) && journal_is_locked(&journal, LOCK_LIFE));
    /* While a program drains by itself, its drainer must not wait in turn with it: a
     * turn that finds the journal locked is lost for the whole job. */
    if (ours && journal_is_locked(&journal, LOCK_DRAIN))
        result = DRAIN_KEPT;
    else if (ours && !journal_is_empty(&journal)) {
        struct lock_wait wait = {0};
        int file =
            wants_call(&journal) ? -EBUSY : find_file(&journal, -1, AT_FDCWD, NULL);
        answer = drain_foreign(&journal, file, CLASS_DRAIN, STEPS, &wait);
        result = answer == 0 ? DRAIN_DONE : DRAIN_KEPT;
    }
    if (ours)
        clean_up(&journal, name, answer);
    journal_close(&journal);
    return result;
}

enum drain_result foreign_drain_ended(const char *name, const uint64_t page[2])
{
    struct journal journal;
    if (open_named(&journal, name) != 0)
        return DRAIN_NOTHING;
    bool wanted = page[1] == 0 || is_of_page(&journal, page);
    bool ended = wanted && !journal_is_locked(&journal, LOCK_LIFE);
    if (ended)
        drain_and_clean_up(&journal, name, -1, AT_FDCWD, NULL);
    journal_close(&journal);
    return ended ? DRAIN_DONE : DRAIN_NOTHING;
}

enum drain_result foreign_merge_part(const char *name, const uint64_t page[2])
{
    struct journal journal;
    if (open_named(&journal, name) != 0)
        return DRAIN_NOTHING;
    bool wanted = is_of_page(&journal, page) && journal_has_part(&journal);
    if (wanted) {
        atomic_fetch_or(&journal.header->flags, JOURNAL_WRITE_THROUGH);
        if (!is_done(&journal, name))
            drain_whole(&journal, name, find_file_of(&journal));
    }
    journal_close(&journal);
    return wanted ? DRAIN_DONE : DRAIN_NOTHING;
}

static int drain_on_request(struct journal *journal, struct lock_wait *wait)
{
    if (wants_call(journal))
        return -EBUSY;
    redo_unsynced(journal);
    if (journal_is_empty(journal))
        return 0;
    int file = find_file_of(journal);
    return drain_foreign(journal, file, CLASS_WRITE, UINT_MAX, wait);
}

int foreign_drain_on_request(const char *name, unsigned limit_ms)
{
    struct lock_wait wait = {.most_naps = limit_ms};
    struct journal journal;
    int answer = open_named(&journal, name);
    if (answer != 0)
        return answer == -ENOENT ? 0 : answer; /* another process was faster */
    answer = drain_on_request(&journal, &wait);
    if (answer == 0 && (answer = lock_for_drain(&journal, &wait)) == 0) {
        clean_up_locked(&journal, name, 0);
        journal_unlock(&journal, LOCK_DRAIN);
    } else if (answer == -EREMCHG)
        clean_up(&journal, name, answer);
    journal_close(&journal);
    return answer;
}

bool foreign_end_of(uint64_t device, uint64_t inode, uint64_t *end)
{
    char name[JOURNAL_NAME_BYTES];
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
