/* SPDX-License-Identifier: MIT
 *
 * Finding the file that a journal belongs to, and opening it to be written.
 *
 * The file is looked for behind a descriptor or a name that the caller has, under the
 * path in the journal, and behind the descriptors of the writer while it lives. It is
 * written only if it is the file that was staged: the same inode and device (a device
 * may have another number after a restart of the machine), and the same time of birth
 * or, where the file system keeps none, the same path.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "stage.h"
#include "stage_text.h"

bool find_is_of_this_boot(const struct journal_header *header)
{
    const uint64_t *boot = stage_settings.terms.boot;
    return header->boot[0] == boot[0] && header->boot[1] == boot[1];
}

/* Another file may have the inode by now: then its time of birth differs or, where the
 * file system keeps none, its path. */
static bool is_file_of(int fd, const struct journal_header *header)
{
    struct staged_file file;
    if (!stage_describe(fd, &file) || file.inode != header->inode ||
        (file.device != header->device && find_is_of_this_boot(header)))
        return false;
    bool has_birth = file.birth_ns != 0 && header->birth_ns != 0;
    return has_birth ? file.birth_ns == header->birth_ns
                     : strcmp(file.path, header->path) == 0;
}

/* Open a file of this user that the user has made read-only since it was staged. */
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

int find_file(const struct journal *journal, int fd, int at, const char *path)
{
    const struct journal_header *header = journal->header;
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

/* --- The descriptors of the writer ------------------------------------------------ */

/* An entry of a directory, as SYS_getdents64 gives it. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
};

/* Open the file behind the descriptor that is called `name` in `folder`, a directory
 * /proc/PID/fd. Inode and device suffice: the writer has the file open, so that no
 * other file can have the inode. */
static int open_same_inode(int folder, const char *name,
                           const struct journal_header *header)
{
    const int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    struct stat status;
    if (raw_call(SYS_newfstatat, folder, (long)name, (long)&status, 0, 0, 0) != 0 ||
        status.st_dev != header->device || status.st_ino != header->inode)
        return -ENOENT;
    return (int)raw_call(SYS_openat, folder, (long)name, flags, 0, 0, 0);
}

static int open_descriptor_in(int folder, const struct journal_header *header)
{
    _Alignas(struct entry) char buffer[4096];
    int file = -ENOENT;
    for (;;) {
        long size =
            raw_call(SYS_getdents64, folder, (long)buffer, sizeof buffer, 0, 0, 0);
        if (size <= 0)
            return file;
        for (long place = 0; place < size;) {
            const struct entry *entry = (const struct entry *)(buffer + place);
            place += entry->size;
            int opened = open_same_inode(folder, entry->name, header);
            if (opened >= 0)
                return opened;
            file = opened == -ENOENT ? file : opened;
        }
    }
}

/* Open the file by a descriptor of its writer: the file may have another name by now,
 * or none. */
static int open_by_writer(const struct journal_header *header)
{
    char path[40];
    const char *end = path + sizeof path;
    char *to = text_put_decimal(text_put(path, end, "/proc/"), end, header->process);
    text_put(to, end, "/fd");
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int folder = (int)raw_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    if (folder < 0)
        return folder;
    int file = open_descriptor_in(folder, header);
    raw_call(SYS_close, folder, 0, 0, 0, 0, 0);
    return file;
}

int find_file_of(struct journal *journal)
{
    int file = find_file(journal, -1, AT_FDCWD, NULL);
    if (file >= 0 || !journal_is_locked(journal, LOCK_LIFE))
        return file;
    int by_writer = open_by_writer(journal->header);
    return by_writer >= 0 ? by_writer : file;
}
