/* SPDX-License-Identifier: MIT
 *
 * Files that are known by their directory, without a look-up in /proc.
 *
 * The path of a file that open() has created (O_EXCL), or opened without following a
 * symbolic link (O_NOFOLLOW), is the path of its directory and its name. So whether it
 * lies under a prefix depends on the directory alone. Each thread remembers a few
 * directories by the text with which the program named them. Programs that copy or
 * unpack many small files open them in this way.
 *
 * A directory is forgotten when the working directory changes, when the descriptor that
 * it is relative to is closed, and after VALID_NS: another process may have renamed it.
 */
#include <string.h>
#include <sys/sysmacros.h>

#include "shim.h"

/* A file in such a directory is controlled, is not, or may be: a prefix is a file. */
enum place { INSIDE, OUTSIDE, UNDECIDED };

enum { DIRECTORIES = 4, TEXT_ROOM = 128, PATH_ROOM = 1024 };
static const uint64_t VALID_NS = 100000000;

struct directory {
    uint64_t until_ns; /* 0: none */
    uint32_t generation;
    int at;
    size_t length;
    enum place place;
    char text[TEXT_ROOM];
};

static __thread struct directory directories[DIRECTORIES];
static __thread unsigned oldest;
static _Atomic uint32_t generation;

void identity_forget_directories(void)
{
    ADD(generation, 1);
}

/* Return the length of the directory in `path`, 0 if it has none. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

static bool recall(int at, const char *path, size_t length, uint64_t now_ns,
                   enum place *place)
{
    for (int i = 0; i < DIRECTORIES; i++) {
        const struct directory *known = &directories[i];
        uint64_t until_ns = known->until_ns;
        *place = known->place;
        if (now_ns < until_ns && known->length == length && known->at == at &&
            known->generation == LOAD(generation) &&
            memcmp(known->text, path, length) == 0)
            return known->until_ns == until_ns; /* not changed by a signal handler */
    }
    return false;
}

/* Return where the directory of a file lies. */
static enum place place_of(int fd)
{
    char path[PATH_ROOM];
    if (!identity_fd_path(fd, path, sizeof path))
        return UNDECIDED;
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return UNDECIDED;
    slash[slash == path] = '\0';
    if (identity_is_under_prefix(path))
        return INSIDE;
    return identity_is_above_prefix(path) ? UNDECIDED : OUTSIDE;
}

/* A signal handler may open files at any moment: the entry is invalid meanwhile. */
static void remember(const struct directory *found, const char *path)
{
    struct directory *entry = &directories[oldest++ % DIRECTORIES];
    uint64_t until_ns = found->until_ns;
    entry->until_ns = 0;
    atomic_signal_fence(memory_order_seq_cst);
    entry->generation = found->generation;
    entry->at = found->at;
    entry->length = found->length;
    entry->place = found->place;
    memcpy(entry->text, path, found->length);
    atomic_signal_fence(memory_order_seq_cst);
    entry->until_ns = until_ns;
}

static enum place learn(int fd, int at, const char *path, size_t length,
                        uint64_t now_ns)
{
    struct directory found = {.until_ns = now_ns + VALID_NS,
                              .generation = LOAD(generation),
                              .at = at,
                              .length = length,
                              .place = place_of(fd)};
    bool by_descriptor = at >= 0 && path[0] != '/';
    if (!identity_owns_table() || (by_descriptor && at >= KNOWN_DESCRIPTORS))
        return found.place;
    if (by_descriptor) {
        identity_raise_highest_fd((unsigned)at);
        STORE(descriptor_kinds[at], KIND_DIRECTORY);
    }
    remember(&found, path);
    return found.place;
}

static bool is_decided_by_directory(int flags)
{
    bool created = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    bool opened = (flags & O_NOFOLLOW) != 0 && (flags & (O_PATH | O_DIRECTORY)) == 0;
    return created || opened;
}

void identity_note_opened(int fd, int at, const char *path, int flags)
{
    identity_forget(fd);
    cache_note_opened(fd);
    if (LIKELY(!is_decided_by_directory(flags)) || (unsigned)fd >= KNOWN_DESCRIPTORS ||
        attached_page == NULL || LOAD(stage_enabled) || LOAD(seccomp_active))
        return;
    size_t length = directory_length(path);
    if (length > TEXT_ROOM)
        return;
    uint64_t now_ns = pace_now_ns();
    enum place place;
    if (!recall(at, path, length, now_ns, &place))
        place = learn(fd, at, path, length, now_ns);
    if (place == UNDECIDED)
        return;
    identity_raise_highest_fd((unsigned)fd);
    STORE(descriptor_kinds[fd], place == INSIDE ? KIND_INSIDE : KIND_OTHER);
}

void identity_note_status(int fd, const struct stat *status)
{
    if ((unsigned)fd >= KNOWN_DESCRIPTORS ||
        LIKELY(LOAD(descriptor_kinds[fd]) != KIND_INSIDE) || !S_ISREG(status->st_mode))
        return;
    cache_note_file(fd, major(status->st_dev) != 0);
    STORE(descriptor_kinds[fd], KIND_CONTROLLED);
}
