/* SPDX-License-Identifier: MIT
 *
 * Which descriptors are controlled.
 *
 * A descriptor is looked up in /proc/self/fd at its first use after it was opened,
 * duplicated or inherited: relative paths, directory descriptors and symbolic links are
 * resolved there. The result is kept in descriptor_kinds until the descriptor is
 * closed. A look-up takes 2 to 5 us; a read that memory serves does without
 * (pace_begin_unknown), and so do files whose directory is known (identity_names.c).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "shim.h"

/* The list of prefixes has less than PATH_ROOM bytes. */
enum { PREFIXES = 16, PATH_ROOM = 1024 };

struct prefix {
    const char *text;
    size_t length;
};

_Atomic uint8_t descriptor_kinds[KNOWN_DESCRIPTORS];
_Atomic uint8_t descriptor_dirty[KNOWN_DESCRIPTORS];

static char prefix_text[PATH_ROOM];
static struct prefix prefixes[PREFIXES];
static size_t prefix_count;
static _Atomic long owner;          /* process whose descriptors the table describes */
static _Atomic unsigned highest_fd; /* highest descriptor that the table describes */

static void add_prefix(char *text, size_t length)
{
    while (length > 1 && text[length - 1] == '/')
        length--;
    if (length > 0 && text[0] == '/' && prefix_count < PREFIXES)
        prefixes[prefix_count++] = (struct prefix){text, length};
}

void identity_set_prefixes(const char *list)
{
    size_t length = list ? strlen(list) : 0;
    if (length >= PATH_ROOM)
        return;
    memcpy(prefix_text, list ? list : "", length + 1);
    for (char *text = prefix_text; *text != '\0';) {
        size_t span = strcspn(text, ":");
        add_prefix(text, span);
        text += span + (text[span] == ':');
    }
}

void identity_control_all(void)
{
    static char everything[] = "/";
    if (prefix_count == 0)
        add_prefix(everything, 1);
    identity_forget_range(0, UINT32_MAX);
}

void identity_claim_table(void)
{
    STORE(owner, raw_getpid());
}

bool identity_owns_table(void)
{
    return LOAD(owner) == raw_getpid();
}

static bool starts_with(const char *path, const char *prefix, size_t length)
{
    return strncmp(path, prefix, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

/* Files without storage behind them. The prefix "/" does not include them; a prefix
 * that names one of them does. */
static bool is_virtual(const char *path)
{
    return starts_with(path, "/proc", 5) || starts_with(path, "/sys", 4) ||
           starts_with(path, "/dev", 4);
}

bool identity_is_under_prefix(const char *path)
{
    for (size_t i = 0; i < prefix_count; i++) {
        bool root = prefixes[i].length == 1;
        if (root ? path[0] == '/' && !is_virtual(path)
                 : starts_with(path, prefixes[i].text, prefixes[i].length))
            return true;
    }
    return false;
}

void identity_fd_link(int fd, char text[32])
{
    char digits[12];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    memcpy(text, "/proc/self/fd/", 14);
    for (size_t i = 0; i < count; i++)
        text[14 + i] = digits[count - 1 - i];
    text[14 + count] = '\0';
}

/* Read a link of /proc. A path that does not fit is cut: no prefix is longer. */
static bool read_link(const char *link, char path[PATH_ROOM + 1])
{
    long length =
        raw_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, PATH_ROOM, 0, 0);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool read_fd_link(int fd, char path[PATH_ROOM + 1])
{
    char link[32];
    identity_fd_link(fd, link);
    return read_link(link, path);
}

/* AT_STATX_DONT_SYNC: the local kernel answers, no file server is asked. */
static bool look_at(int fd, struct statx *status)
{
    return raw_call(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                    STATX_TYPE, (long)status, 0) == 0;
}

bool identity_fd_path(int fd, char *path, size_t room)
{
    char link[32];
    identity_fd_link(fd, link);
    long length =
        raw_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, (long)room, 0, 0);
    if (length <= 0 || (size_t)length >= room)
        return false;
    path[length] = '\0';
    return true;
}

unsigned identity_highest_fd(void)
{
    return LOAD(highest_fd);
}

void identity_raise_highest_fd(unsigned fd)
{
    unsigned seen = LOAD(highest_fd);
    while (seen < fd && !atomic_compare_exchange_weak(&highest_fd, &seen, fd))
        continue;
}

bool identity_look_up(int fd)
{
    char path[PATH_ROOM + 1];
    struct statx status;
    if (LOAD(seccomp_active))
        return false;
    if (attached_page != NULL && !look_at(fd, &status))
        return false; /* not open: record nothing */
    bool regular = attached_page != NULL && S_ISREG(status.stx_mode);
    bool inside = LOAD(descriptor_kinds[fd]) == KIND_INSIDE;
    if (regular && !inside && !read_fd_link(fd, path))
        return false; /* no /proc: record nothing */
    bool controlled = regular && (inside || identity_is_under_prefix(path));
    if (identity_owns_table()) {
        /* File systems without a block device have the major number 0. */
        if (controlled)
            cache_note_file(fd, status.stx_dev_major != 0);
        uint8_t kind = controlled ? KIND_CONTROLLED : KIND_OTHER;
        identity_raise_highest_fd((unsigned)fd);
        if (controlled && LOAD(stage_enabled))
            kind = stage_kind(fd, path);
        STORE(descriptor_kinds[fd], kind);
    }
    return controlled;
}

bool identity_is_above_prefix(const char *path)
{
    size_t length = strlen(path);
    length -= length == 1; /* "/" */
    for (size_t i = 0; i < prefix_count; i++)
        if (starts_with(prefixes[i].text, path, length))
            return true;
    return false;
}

void identity_forget_range(unsigned first, unsigned last)
{
    unsigned end = LOAD(highest_fd); /* `last` may be 2^32 - 1: close all */
    for (unsigned fd = first; fd <= last && fd <= end; fd++)
        identity_forget((int)fd);
}
