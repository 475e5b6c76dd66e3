/* SPDX-License-Identifier: MIT
 *
 * Merges of parts whose writers have died: never over newer data.
 *
 * The targets of a part may be away for hours, or may not answer. Meanwhile the file
 * may be written, also by programs without the library and on other nodes, which know
 * nothing of the part. So the time of the last change of the file is noted in the
 * journal before the part is opened, and compared before the first step. The file is
 * synced before: many file systems keep the time of their servers, who learn late of
 * writes.
 *
 * From its first step on, the merge itself changes the file: FILE_MERGES takes the
 * place of the time, and nothing is compared. A process that comes to a merge which
 * another one has begun, and one that cannot go on, note the time anew. All this is
 * done with LOCK_DRAIN, as the steps are, so that a process may be killed at any
 * moment: the next one finds a time at which nobody but mergers had changed the file,
 * or none.
 *
 * Two gaps are left. What is written between the steps of a merge is overwritten if
 * the part holds the same bytes, also if one of the steps waits for hours for a part
 * that does not answer. What is written between the death of a merger and the arrival
 * of the next one counts as merged.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "stage.h"

/* A time that no file has. */
enum { NEVER = FILE_MERGES + 1 };

/* Return when the file was last changed, more than NEVER; 0: not known. */
static uint64_t change_of(int file)
{
    struct statx status;
    if (raw_call(SYS_statx, file, (long)"", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
                 STATX_MTIME, (long)&status, 0) != 0)
        return 0;
    uint64_t changed_ns =
        (uint64_t)status.stx_mtime.tv_sec * 1000000000u + status.stx_mtime.tv_nsec;
    return changed_ns > NEVER ? changed_ns : NEVER + 1;
}

/* Note the time of the last change; false: it is not known for sure. Of a file that
 * cannot be synced it is noted all the same. If it was another one, the part is put
 * aside: it overwrites nothing. */
static bool note(struct journal *journal, int file)
{
    bool synced = raw_call(SYS_fsync, file, 0, 0, 0, 0, 0) == 0;
    uint64_t changed_ns = change_of(file);
    if (changed_ns != 0)
        atomic_store(&journal->header->file_changed_ns, changed_ns);
    return synced && changed_ns != 0;
}

/* Return when this process started. In a child of a fork the terms may still be those
 * of its parent: then it counts as another merger once more. */
static uint64_t started(uint64_t process)
{
    const struct journal_terms *terms = &stage_settings.terms;
    return terms->process == process ? terms->started : 0;
}

static bool is_merger(const struct journal_header *header)
{
    uint64_t process = (uint64_t)raw_getpid();
    return atomic_load(&header->merger) == process &&
           atomic_load(&header->merger_started) == started(process);
}

static void set_merger(struct journal_header *header)
{
    uint64_t process = (uint64_t)raw_getpid();
    atomic_store(&header->merger, process);
    atomic_store(&header->merger_started, started(process));
    atomic_store(&header->file_changed_ns, FILE_MERGES);
}

static bool is_merging(const struct journal *journal)
{
    return atomic_load(&journal->header->file_changed_ns) == FILE_MERGES;
}

/* Note it for a merge that cannot go on. If it is not known, the rest is put aside at
 * the next try: the file may be written before. */
static void note_stop(struct journal *journal, int file)
{
    note(journal, file);
    if (is_merging(journal))
        atomic_store(&journal->header->file_changed_ns, NEVER);
}

/* Return true if no time is noted that a step could be compared with. */
static bool needs_note(const struct journal *journal)
{
    return atomic_load(&journal->header->file_changed_ns) == 0 ||
           (is_merging(journal) && !is_merger(journal->header));
}

static bool is_checked(const struct journal *journal)
{
    return journal_has_part(journal) && !journal->is_failed;
}

/* Return true if the data in a part are merged by processes like this one. */
static bool is_orphaned(struct journal *journal)
{
    return is_checked(journal) && !journal_is_empty(journal) &&
           !journal_is_locked(journal, LOCK_LIFE);
}

int merge_note(struct journal *journal, int fd, int at, const char *path)
{
    int answer = 0;
    if (!is_orphaned(journal) || !needs_note(journal))
        return 0;
    int file = find_file(journal, fd, at, path);
    if (file < 0)
        return 0; /* it cannot be written, either */
    /* A process that holds the lock makes a step, and has noted the time before. */
    if (journal_try_lock(journal, LOCK_DRAIN)) {
        if (needs_note(journal) && !note(journal, file))
            answer = -EIO;
        journal_unlock(journal, LOCK_DRAIN);
    }
    raw_call(SYS_close, file, 0, 0, 0, 0, 0);
    return answer;
}

int merge_check(struct journal *journal, int file)
{
    if (!is_checked(journal))
        return 0;
    uint64_t noted = atomic_load(&journal->header->file_changed_ns);
    /* Its writer has died since the part was opened: nothing was noted. */
    if (noted == 0 && !note(journal, file))
        return -EIO;
    uint64_t changed_ns = noted > FILE_MERGES ? change_of(file) : noted;
    if (noted > FILE_MERGES && changed_ns == 0)
        return -EIO;
    if (changed_ns != noted)
        return -EREMCHG;
    set_merger(journal->header);
    return 0;
}

void merge_interrupted(struct journal *journal, int file)
{
    if (is_checked(journal))
        note_stop(journal, file);
}

void merge_stopped(struct journal *journal, int fd, int at, const char *path)
{
    if (!is_orphaned(journal) || !is_merging(journal))
        return;
    int file = find_file(journal, fd, at, path);
    if (file < 0)
        return;
    if (journal_try_lock(journal, LOCK_DRAIN)) {
        if (is_merging(journal))
            note_stop(journal, file);
        journal_unlock(journal, LOCK_DRAIN);
    }
    raw_call(SYS_close, file, 0, 0, 0, 0, 0);
}
