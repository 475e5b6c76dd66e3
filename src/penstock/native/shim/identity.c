/* SPDX-License-Identifier: MIT
 *
 * Which descriptors and names are controlled.
 *
 * A descriptor is asked for once, at its first use after it was opened, duplicated or
 * inherited: the kernel says what it refers to, with relative paths, directory
 * descriptors and symbolic links resolved. Names are judged by their text: they are
 * only counted.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "shim.h"

enum { PREFIXES = 16, TEXT = 1024 };

struct prefix {
    const char *text;
    size_t length;
};

_Atomic uint8_t descriptor_kinds[KNOWN_DESCRIPTORS];
static _Atomic uint8_t directory; /* where relative names are */
enum { DIRECTORY_UNKNOWN, DIRECTORY_INSIDE, DIRECTORY_ABOVE, DIRECTORY_OUTSIDE };

static char prefix_text[TEXT];
static struct prefix prefixes[PREFIXES];
static size_t prefix_count;
static _Atomic long owner;       /* process whose descriptors the table describes */
static _Atomic unsigned highest; /* descriptor ever entered in the table */

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
    if (length >= TEXT)
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
    identity_forget_cwd();
}

static long process(void)
{
    return raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

void identity_claim_table(void)
{
    STORE(owner, process());
}

bool identity_owns_table(void)
{
    return LOAD(owner) == process();
}

static bool starts_with(const char *path, const char *prefix, size_t length)
{
    return strncmp(path, prefix, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

/* Files that no storage serves: "/" does not mean them, a prefix that names one does. */
static bool is_virtual(const char *path)
{
    return starts_with(path, "/proc", 5) || starts_with(path, "/sys", 4) ||
           starts_with(path, "/dev", 4);
}

static bool is_inside(const char *path)
{
    for (size_t i = 0; i < prefix_count; i++) {
        bool root = prefixes[i].length == 1;
        if (root ? path[0] == '/' && !is_virtual(path)
                 : starts_with(path, prefixes[i].text, prefixes[i].length))
            return true;
    }
    return false;
}

/* Write "/proc/self/fd/<fd>" without stdio. */
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

/* Read a link of /proc. What does not fit is longer than any prefix. */
static bool read_link(const char *link, char path[TEXT + 1])
{
    long length =
        raw_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, TEXT, 0, 0);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool read_descriptor(int fd, char path[TEXT + 1])
{
    char link[32];
    identity_fd_link(fd, link);
    return read_link(link, path);
}

/* A regular file? Asked of the local kernel: no server is waited for. */
static bool is_regular(int fd)
{
    struct statx status;
    long answer = raw_call(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                           STATX_TYPE, (long)&status, 0);
    return answer == 0 && (status.stx_mode & S_IFMT) == S_IFREG;
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
    return LOAD(highest);
}

void identity_raise_highest_fd(unsigned fd)
{
    unsigned seen = LOAD(highest);
    while (seen < fd && !atomic_compare_exchange_weak(&highest, &seen, fd))
        continue;
}

bool identity_look_up(int fd)
{
    char path[TEXT + 1];
    if (LOAD(seccomp_active))
        return false;
    if (attached_page != NULL && !read_descriptor(fd, path))
        return false; /* not open, or no /proc: nothing learned */
    bool controlled = attached_page != NULL && is_inside(path) && is_regular(fd);
    if (identity_owns_table()) {
        uint8_t kind = controlled ? KIND_CONTROLLED : KIND_OTHER;
        identity_raise_highest_fd((unsigned)fd);
        if (controlled && LOAD(stage_enabled))
            kind = stage_kind(fd, path);
        STORE(descriptor_kinds[fd], kind);
    }
    return controlled;
}

void identity_forget_range(unsigned first, unsigned last)
{
    unsigned end = LOAD(highest); /* whoever closes "all of them" names 2^32 */
    for (unsigned fd = first; fd <= last && fd <= end; fd++)
        identity_forget((int)fd);
}

/* --- Names ---------------------------------------------------------------------- */

static bool is_above_a_prefix(const char *path)
{
    size_t length = strlen(path);
    length -= length == 1; /* "/" */
    for (size_t i = 0; i < prefix_count; i++)
        if (starts_with(prefixes[i].text, path, length))
            return true;
    return false;
}

static uint8_t directory_of(const char *path)
{
    if (is_inside(path))
        return DIRECTORY_INSIDE;
    return is_above_a_prefix(path) ? DIRECTORY_ABOVE : DIRECTORY_OUTSIDE;
}

static bool read_directory(int at, char path[TEXT + 1])
{
    return at == AT_FDCWD ? read_link("/proc/self/cwd", path)
                          : read_descriptor(at, path);
}

static uint8_t directory_at(int at)
{
    char path[TEXT + 1];
    uint8_t known = at == AT_FDCWD ? LOAD(directory) : DIRECTORY_UNKNOWN;
    if (known != DIRECTORY_UNKNOWN || !read_directory(at, path))
        return known;
    uint8_t found = directory_of(path);
    if (at == AT_FDCWD && identity_owns_table())
        STORE(directory, found);
    return found;
}

static bool joined_is_inside(int at, const char *name)
{
    char path[TEXT + 1];
    if (!read_directory(at, path))
        return false;
    size_t length = strlen(path);
    if (length < TEXT && path[length - 1] != '/')
        path[length++] = '/';
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    size_t rest = strnlen(name, TEXT - length);
    memcpy(path + length, name, rest);
    path[length + rest] = '\0';
    return is_inside(path);
}

bool identity_path_is_controlled(int at, const char *path)
{
    if (path[0] == '/')
        return is_inside(path);
    if (LOAD(seccomp_active))
        return false;
    uint8_t where = directory_at(at);
    return where == DIRECTORY_INSIDE ||
           (where == DIRECTORY_ABOVE && joined_is_inside(at, path));
}

void identity_forget_cwd(void)
{
    STORE(directory, DIRECTORY_UNKNOWN);
}
