/* SPDX-License-Identifier: MIT
 *
 * Merges of parts whose writers have died: never over newer data.
 *
 * The targets of a part may be away for hours, or may not answer. Meanwhile the file
 * may be written, also by programs without the library and on other nodes, which know
 * nothing of the part. So the time of the last change of the file is noted in the
 * journal before the part is opened, and compared before every step. The file is synced
 * before: many file systems keep the time of their servers, who learn late of writes.
 *
 * From its first step on, the merge itself changes the file: FILE_MERGES takes the
 * place of the time, and nothing is compared. A process that comes to a merge which
 * another one has begun, and one that cannot go on, note the time anew. All this is
 * done with LOCK_DRAIN, as the steps are, so that a process may be killed at any
 * moment: the next one finds a time at which nobody but mergers had changed the file,
 * or none.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "stage.h"

/* Part of the last step of this thread, by its inode. */
static _Thread_local uint64_t merged_part;

/* Return when the file was last changed, more than FILE_MERGES; 0: not known. */
static uint64_t change_of(int file)
{
    struct statx status;
    if (raw_call(SYS_statx, file, (long)"", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
                 STATX_MTIME, (long)&status, 0) != 0)
        return 0;
    uint64_t changed_ns =
        (uint64_t)status.stx_mtime.tv_sec * 1000000000u + status.stx_mtime.tv_nsec;
    return changed_ns > FILE_MERGES ? changed_ns : FILE_MERGES + 1;
}

static void note(struct journal *journal, int file)
{
    if (raw_call(SYS_fsync, file, 0, 0, 0, 0, 0) == 0)
        atomic_store(&journal->header->file_changed_ns, change_of(file));
}

/* Return true if no time is noted that a step could be compared with. */
static bool needs_note(const struct journal *journal)
{
    uint64_t noted = atomic_load(&journal->header->file_changed_ns);
    return noted == 0 ||
           (noted == FILE_MERGES && merged_part != journal->header->part_inode);
}

static bool is_checked(const struct journal *journal)
{
    return journal_has_part(journal) && !journal->is_failed;
}

void merge_note(struct journal *journal, int fd, int at, const char *path)
{
    if (!is_checked(journal) || !needs_note(journal) || journal_is_empty(journal) ||
        journal_is_locked(journal, LOCK_LIFE))
        return;
    int file = find_file(journal, fd, at, path);
    if (file < 0)
        return;
    /* A process that holds the lock makes a step, and has noted the time before. */
    if (journal_try_lock(journal, LOCK_DRAIN)) {
        if (needs_note(journal))
            note(journal, file);
        journal_unlock(journal, LOCK_DRAIN);
    }
    raw_call(SYS_close, file, 0, 0, 0, 0, 0);
}

int merge_check(struct journal *journal, int file)
{
    if (!is_checked(journal))
        return 0;
    uint64_t noted = atomic_load(&journal->header->file_changed_ns);
    uint64_t changed_ns = noted > FILE_MERGES ? change_of(file) : 0;
    if (changed_ns != 0 && changed_ns != noted)
        return -EREMCHG;
    merged_part = journal->header->part_inode;
    atomic_store(&journal->header->file_changed_ns, FILE_MERGES);
    return 0;
}

void merge_interrupted(struct journal *journal, int file)
{
    if (is_checked(journal))
        note(journal, file);
}
