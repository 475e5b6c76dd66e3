/* SPDX-License-Identifier: MIT
 *
 * Parts: which open files are redirected to other storage targets, and where to.
 *
 * The page says on which targets new files of the job are placed, by a number: the
 * partition. A file counts as placed on the targets that were in force when it was
 * opened, also if it was created earlier. If the partition changes while it is open,
 * new data go to a second file, the part, which is placed on the present targets. A
 * part is the ring of a journal (journal.h), so that all rules of staging hold for it:
 * a close, sync or read merges it into the file, and so does another process after a
 * crash. If the partition changes again, the next write merges the part first; its own
 * data go to a new part, or to the file if the targets are those of the opening again.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "stage_slots.h"
#include "stage_text.h"

/* The mark of a file that is never redirected. It is also the mark of files that were
 * opened before the partition was known. */
static const uint32_t FIXED = 1;

/* Every partition has a mark of its own. The greatest number is none. */
static uint32_t mark_of(uint32_t partition)
{
    return partition == UINT32_MAX ? FIXED : partition + 1;
}

static uint32_t present_mark(void)
{
    return mark_of(LOAD(attached_page->staging.partition));
}

static uint32_t now_ms(void)
{
    return (uint32_t)(pace_now_ns() / 1000000);
}

void part_note_opened(int fd)
{
    uint32_t mark = present_mark();
    if (mark > FIXED)
        STORE(slot_opened_ms[fd], now_ms());
    STORE(slot_opened_here[fd], mark);
}

void part_note_copied(int from, int fd)
{
    STORE(slot_opened_ms[fd], LOAD(slot_opened_ms[from]));
    STORE(slot_opened_here[fd], LOAD(slot_opened_here[from]));
}

/* Return true if the file was opened so lately that it may soon be closed: redirected
 * data is written twice. */
static bool is_young(int fd)
{
    uint32_t least_ms = LOAD(attached_page->staging.redirect_age_ms);
    return least_ms > 0 && now_ms() - LOAD(slot_opened_ms[fd]) < least_ms;
}

uint32_t part_wanted(int fd)
{
    uint32_t mark = LOAD(slot_opened_here[fd]);
    if (mark <= FIXED || mark == present_mark() || is_young(fd))
        return 0;
    uint32_t partition = pace_partition();
    return mark_of(partition) == mark ? 0 : partition;
}

/* Return true if the path lies in one of the folders of a list. */
static bool is_under(const char *path, const char *list)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ":");
        if (length > 1 && strncmp(path, list, length) == 0 && path[length] == '/')
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

static bool is_in_job_folder(int fd)
{
    char path[JOURNAL_PATH_BYTES], roots[PART_ROOTS_BYTES];
    memcpy(roots, attached_page->part_roots, sizeof roots);
    roots[sizeof roots - 1] = '\0';
    return identity_fd_path(fd, path, sizeof path) && is_under(path, roots);
}

bool part_is_current(uint32_t partition)
{
    /* After all words that depend on the number were read. */
#ifndef __SANITIZE_THREAD__ /* which knows no fences */
    atomic_thread_fence(memory_order_acquire);
#endif
    return LOAD(attached_page->staging.partition) == partition;
}

/* Return the slot of the next part: the files of a process are spread over all slots,
 * and processes begin with different ones. */
static uint64_t next_slot(uint32_t slot_count)
{
    static _Atomic uint32_t parts_made;
    return ((uint64_t)raw_getpid() + atomic_fetch_add(&parts_made, 1)) % slot_count;
}

/* Replace a path by one without links. A slot is a link that leads to other targets
 * when the partition changes; a part stays where it was made. A folder that is missing
 * is left to the making of the part, which reports it. */
static bool resolve(char *folder, size_t room)
{
    const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)folder, flags, 0, 0, 0);
    if (fd < 0)
        return true;
    bool done = identity_fd_path(fd, folder, room);
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return done;
}

bool part_find_place(int fd, uint32_t partition, struct part_place *place)
{
    char folder[PART_FOLDER_BYTES];
    const char *end = place->folder + sizeof place->folder;
    uint32_t slots_there = LOAD(attached_page->staging.part_slots);
    memcpy(folder, attached_page->part_folder, sizeof folder);
    folder[sizeof folder - 1] = '\0';
    place->partition = partition;
    char *to = text_put(place->folder, end, folder);
    if (slots_there > 0)
        to = text_put_decimal(text_put(to, end, "/"), end, next_slot(slots_there));
    return to != NULL && folder[0] == '/' && is_in_job_folder(fd) &&
           resolve(place->folder, sizeof place->folder) && part_is_current(partition);
}

void part_forbid(int fd)
{
    STORE(slot_opened_here[fd], FIXED);
}
