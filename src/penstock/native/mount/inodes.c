/* SPDX-License-Identifier: MIT */
#include "inodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shown numbers of files on other devices below the backing folder start here. */
#define FOREIGN (UINT64_C(1) << 62)
/* Steps of one search for descriptors to close. */
#define SEARCH_STEPS 64
/* Descriptors that are closed after the mutex was released; further ones before. */
#define CLOSED_LATER 256

/* Descriptors that this thread has taken out of the table. */
static __thread int taken_fds[CLOSED_LATER];
static __thread int taken_count;

static void close_later(int fd)
{
    if (taken_count == CLOSED_LATER)
        close(fd);
    else
        taken_fds[taken_count++] = fd;
}

static void close_taken(void)
{
    while (taken_count)
        close(taken_fds[--taken_count]);
}

/* Release the mutex, and then close what was taken out: the last close() of a deleted
 * file may take the storage a long time, and must not hold up others. */
static void unlock(struct inodes *table)
{
    pthread_mutex_unlock(&table->mutex);
    close_taken();
}

static size_t bucket_of(const struct inodes *table, dev_t device, ino_t number)
{
    uint64_t mixed = ((uint64_t)number ^ (uint64_t)device << 40) * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 20) & (table->size - 1);
}

/* --- The hash table; the caller holds the mutex ----------------------------------- */

static void grow(struct inodes *table)
{
    size_t old_size = table->size;
    struct inode **old = table->buckets;
    struct inode **buckets = calloc(2 * old_size, sizeof(struct inode *));
    if (!buckets)
        return;
    table->buckets = buckets;
    table->size = 2 * old_size;
    for (size_t i = 0; i < old_size; i++) {
        for (struct inode *inode = old[i], *next; inode; inode = next) {
            next = inode->next;
            size_t bucket = bucket_of(table, inode->device, inode->number);
            inode->next = buckets[bucket];
            buckets[bucket] = inode;
        }
    }
    free(old);
}

static void hash(struct inodes *table, struct inode *inode)
{
    if (++table->count > 2 * table->size)
        grow(table);
    size_t bucket = bucket_of(table, inode->device, inode->number);
    inode->next = table->buckets[bucket];
    table->buckets[bucket] = inode;
}

static void unhash(struct inodes *table, struct inode *inode)
{
    if (inode->unhashed)
        return;
    inode->unhashed = true;
    table->count--;
    struct inode **place =
        &table->buckets[bucket_of(table, inode->device, inode->number)];
    while (*place != inode)
        place = &(*place)->next;
    *place = inode->next;
}

static struct inode *find(struct inodes *table, const struct stat *status)
{
    size_t bucket = bucket_of(table, status->st_dev, status->st_ino);
    struct inode *inode = table->buckets[bucket];
    while (inode &&
           (inode->number != status->st_ino || inode->device != status->st_dev))
        inode = inode->next;
    return inode;
}

/* --- Descriptors; the caller holds the mutex -------------------------------------- */

static void add_to_ring(struct inodes *table, struct inode *inode)
{
    struct inode *hand = table->hand;
    inode->newer = hand ? hand : inode;
    inode->older = hand ? hand->older : inode;
    inode->older->newer = inode;
    inode->newer->older = inode;
    if (!hand)
        table->hand = inode;
    table->fds++;
}

static void close_fd(struct inodes *table, struct inode *inode)
{
    if (inode->fd < 0)
        return;
    if (table->hand == inode)
        table->hand = inode->newer == inode ? NULL : inode->newer;
    inode->older->newer = inode->newer;
    inode->newer->older = inode->older;
    table->fds--;
    close_later(inode->fd);
    inode->fd = -1;
}

/* Close a few descriptors that have not been used since the last round. */
static void close_unused(struct inodes *table)
{
    for (int step = 0; step < SEARCH_STEPS && table->fds >= table->max_fds; step++) {
        struct inode *inode = table->hand;
        if (!inode)
            return;
        table->hand = inode->newer;
        if (inode->users || inode->opens || inode->unhashed || !inode->parent)
            continue;
        if (inode->used)
            inode->used = false;
        else
            close_fd(table, inode);
    }
}

/* --- Life of an inode; the caller holds the mutex --------------------------------- */

static void free_if_unused(struct inodes *table, struct inode *inode)
{
    while (inode && inode->parent && !inode->lookups && !inode->children &&
           !inode->users) {
        struct inode *parent = inode->parent;
        unhash(table, inode);
        close_fd(table, inode);
        free(inode->name);
        free(inode);
        parent->children--;
        inode = parent;
    }
}

static bool is_below(const struct inode *inode, const struct inode *folder)
{
    while (inode && inode != folder)
        inode = inode->parent;
    return inode != NULL;
}

/* Set the place of an inode; keep the old place if memory is short. */
static void set_place(struct inodes *table, struct inode *inode, struct inode *parent,
                      const char *name)
{
    if (inode->parent == parent && !strcmp(inode->name, name))
        return;
    /* A folder that was moved below itself in the backing folder, as it seems. */
    if (!inode->parent || is_below(parent, inode))
        return;
    char *copy = strdup(name);
    if (!copy)
        return;
    struct inode *old_parent = inode->parent;
    free(inode->name);
    inode->name = copy;
    inode->parent = parent;
    parent->children++;
    old_parent->children--;
    free_if_unused(table, old_parent);
}

static struct inode *make_inode(struct inodes *table, struct inode *parent,
                                const char *name, const struct stat *status)
{
    struct inode *inode = calloc(1, sizeof(*inode));
    char *copy = strdup(name);
    if (!inode || !copy) {
        free(inode);
        free(copy);
        return NULL;
    }
    inode->name = copy;
    inode->parent = parent;
    parent->children++;
    inode->device = status->st_dev;
    inode->number = status->st_ino;
    inode->type = status->st_mode & S_IFMT;
    inode->application = -1;
    inode->fd = -1;
    bool is_own = status->st_dev == table->root.device && status->st_ino < FOREIGN;
    inode->shown = is_own ? status->st_ino : ++table->foreign;
    hash(table, inode);
    return inode;
}

int inodes_init(struct inodes *table, int root_fd, size_t max_fds)
{
    struct stat status;
    memset(table, 0, sizeof(*table));
    if (fstat(root_fd, &status))
        return errno;
    table->size = 1024;
    table->buckets = calloc(table->size, sizeof(struct inode *));
    if (!table->buckets)
        return ENOMEM;
    pthread_mutex_init(&table->mutex, NULL);
    table->max_fds = max_fds;
    table->foreign = FOREIGN;
    table->root = (struct inode){.device = status.st_dev,
                                 .number = status.st_ino,
                                 .shown = status.st_ino,
                                 .type = S_IFDIR,
                                 .fd = root_fd,
                                 .application = -1,
                                 .lookups = 1};
    hash(table, &table->root);
    add_to_ring(table, &table->root);
    return 0;
}

void inodes_free(struct inodes *table)
{
    for (size_t i = 0; i < table->size; i++) {
        for (struct inode *inode = table->buckets[i], *next; inode; inode = next) {
            next = inode->next;
            close_fd(table, inode);
            if (inode != &table->root) {
                free(inode->name);
                free(inode);
            }
        }
    }
    close_taken();
    free(table->buckets);
    pthread_mutex_destroy(&table->mutex);
}

struct inode *inodes_look_up(struct inodes *table, struct inode *parent,
                             const char *name, struct stat *status)
{
    pthread_mutex_lock(&table->mutex);
    struct inode *inode = find(table, status);
    if (inode && inode->type != (status->st_mode & S_IFMT)) {
        /* The number was given to a new file, behind our back. */
        unhash(table, inode);
        inode = NULL;
    }
    if (inode)
        set_place(table, inode, parent, name);
    else
        inode = make_inode(table, parent, name, status);
    if (inode) {
        inode->lookups++;
        inodes_show(inode, status);
    }
    unlock(table);
    return inode;
}

void inodes_forget(struct inodes *table, struct inode *inode, uint64_t lookups)
{
    pthread_mutex_lock(&table->mutex);
    inode->lookups -= lookups < inode->lookups ? lookups : inode->lookups;
    free_if_unused(table, inode);
    unlock(table);
}

void inodes_show(const struct inode *inode, struct stat *status)
{
    status->st_ino = inode->shown;
}

static bool is_same(const struct inode *inode, const struct stat *status)
{
    return inode->number == status->st_ino && inode->device == status->st_dev;
}

/* --- Reaching the file ------------------------------------------------------------ */

/* The place of an inode, held so that the parent stays in the table. */
struct place {
    struct inode *parent;
    int parent_fd;
    char name[NAME_MAX + 1];
};

/* Get the place of an inode. Return 0 or an error number. */
static int hold_place(struct inodes *table, struct inode *inode, struct place *place)
{
    pthread_mutex_lock(&table->mutex);
    struct inode *parent = place->parent = inode->parent;
    if (parent) {
        parent->children++;
        snprintf(place->name, sizeof(place->name), "%s", inode->name);
    }
    unlock(table);
    if (!parent)
        return ESTALE;
    place->parent_fd = inodes_use(table, parent);
    return place->parent_fd < 0 ? -place->parent_fd : 0;
}

static void release_place(struct inodes *table, struct place *place)
{
    if (!place->parent)
        return;
    pthread_mutex_lock(&table->mutex);
    if (place->parent_fd >= 0)
        place->parent->users--;
    place->parent->children--;
    free_if_unused(table, place->parent);
    unlock(table);
}

/* Open the file at the place of an inode, if it is the same file. Return a descriptor
 * or minus an error number. */
static int open_at_place(struct inodes *table, struct inode *inode, int flags)
{
    struct place place;
    struct stat status;
    int fd = -hold_place(table, inode, &place);
    if (!fd) {
        fd = openat(place.parent_fd, place.name, flags | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            fd = errno == ENOENT || errno == ELOOP ? -ESTALE : -errno;
    }
    if (fd >= 0 && (fstat(fd, &status) || !is_same(inode, &status))) {
        close(fd);
        fd = -ESTALE;
    }
    release_place(table, &place);
    return fd;
}

int inodes_use(struct inodes *table, struct inode *inode)
{
    pthread_mutex_lock(&table->mutex);
    inode->users++;
    inode->used = true;
    int fd = inode->fd;
    /* Before the file is opened: otherwise it would fail, and close nothing, once this
     * process has too many descriptors. */
    if (fd < 0)
        close_unused(table);
    unlock(table);
    if (fd >= 0)
        return fd;
    fd = open_at_place(table, inode, O_PATH);
    pthread_mutex_lock(&table->mutex);
    if (fd < 0) {
        inode->users--;
    } else if (inode->fd >= 0) {
        close_later(fd);
        fd = inode->fd;
    } else {
        inode->fd = fd;
        add_to_ring(table, inode);
    }
    unlock(table);
    return fd;
}

void inodes_done(struct inodes *table, struct inode *inode)
{
    pthread_mutex_lock(&table->mutex);
    inode->users--;
    free_if_unused(table, inode);
    unlock(table);
}

/* Return the descriptor of an inode as inodes_use() does, or -1 if none is open. */
static int use_if_open(struct inodes *table, struct inode *inode)
{
    pthread_mutex_lock(&table->mutex);
    int fd = inode->fd;
    if (fd >= 0) {
        inode->users++;
        inode->used = true;
    }
    unlock(table);
    return fd;
}

static int stat_at_place(struct inodes *table, struct inode *inode, struct stat *status)
{
    struct place place;
    int error = hold_place(table, inode, &place);
    if (!error && fstatat(place.parent_fd, place.name, status, AT_SYMLINK_NOFOLLOW))
        error = errno == ENOENT ? ESTALE : errno;
    if (!error && !is_same(inode, status))
        error = ESTALE;
    release_place(table, &place);
    return error;
}

int inodes_stat(struct inodes *table, struct inode *inode, struct stat *status)
{
    int error, fd = use_if_open(table, inode);
    if (fd >= 0) {
        error = fstat(fd, status) ? errno : 0;
        inodes_done(table, inode);
    } else {
        error = stat_at_place(table, inode, status);
    }
    inodes_show(inode, status);
    return error;
}

int inodes_open(struct inodes *table, struct inode *inode, int flags)
{
    int fd = use_if_open(table, inode);
    if (fd < 0 && !(flags & O_TRUNC))
        return open_at_place(table, inode, flags);
    /* Only a descriptor is certain not to truncate another file. */
    if (fd < 0)
        fd = inodes_use(table, inode);
    if (fd < 0)
        return fd;
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int file = open(path, flags | O_CLOEXEC);
    if (file < 0)
        file = -errno;
    inodes_done(table, inode);
    return file;
}

/* --- Open files ------------------------------------------------------------------- */

/* Keep an inode reachable by a descriptor of its open file. */
static void keep_reachable(struct inodes *table, struct inode *inode, int file)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    pthread_mutex_lock(&table->mutex);
    if (inode->fd >= 0) {
        close_later(fd);
    } else {
        close_unused(table);
        inode->fd = fd;
        add_to_ring(table, inode);
    }
    unlock(table);
}

uint64_t inodes_before_open(const struct inodes *table)
{
    return atomic_load(&table->changed);
}

void inodes_opened(struct inodes *table, struct inode *inode, int file, uint64_t before)
{
    pthread_mutex_lock(&table->mutex);
    inode->opens++;
    /* A change of a name that began earlier did not see that the file is open. */
    bool may_still_go = atomic_load(&table->changing);
    bool may_be_gone = atomic_load(&table->changed) != before;
    bool has_fd = inode->fd >= 0;
    unlock(table);
    if (has_fd || !(may_still_go || may_be_gone))
        return;
    struct stat status;
    if (may_still_go || stat_at_place(table, inode, &status))
        keep_reachable(table, inode, file);
}

void inodes_closed(struct inodes *table, struct inode *inode)
{
    pthread_mutex_lock(&table->mutex);
    inode->opens--;
    unlock(table);
}

/* --- Changes of names ------------------------------------------------------------- */

void inodes_begin_change(struct inodes *table)
{
    atomic_fetch_add(&table->changing, 1);
}

void inodes_end_change(struct inodes *table)
{
    atomic_fetch_add(&table->changed, 1);
    atomic_fetch_sub(&table->changing, 1);
}

struct inode *inodes_before_removal(struct inodes *table, int parent_fd,
                                    const char *name)
{
    struct stat status;
    if (fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW))
        return NULL;
    pthread_mutex_lock(&table->mutex);
    struct inode *inode = find(table, &status);
    bool is_last = S_ISDIR(status.st_mode) || status.st_nlink == 1;
    /* Programs open pipes and devices, and stay in folders, without telling us. */
    bool is_needed = inode && (inode->opens || !S_ISREG(status.st_mode));
    if (inode && (is_last || is_needed))
        inode->users++;
    else
        inode = NULL;
    bool is_open = inode && inode->fd >= 0;
    unlock(table);
    if (is_needed && !is_open && inodes_use(table, inode) >= 0)
        inodes_done(table, inode);
    if (inode && !is_last) {
        inodes_done(table, inode);
        inode = NULL;
    }
    return inode;
}

void inodes_after_removal(struct inodes *table, struct inode *inode, bool removed)
{
    if (!inode)
        return;
    pthread_mutex_lock(&table->mutex);
    if (removed)
        unhash(table, inode);
    inode->users--;
    free_if_unused(table, inode);
    unlock(table);
}

void inodes_renamed(struct inodes *table, struct inode *parent, int parent_fd,
                    const char *name)
{
    struct stat status;
    if (fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW))
        return;
    pthread_mutex_lock(&table->mutex);
    struct inode *inode = find(table, &status);
    if (inode)
        set_place(table, inode, parent, name);
    unlock(table);
}

/* Return the length of the path of an inode; the caller holds the mutex. */
static size_t path_length(const struct inode *inode)
{
    size_t length = 0;
    for (; inode->name; inode = inode->parent)
        length += 1 + strlen(inode->name);
    return length;
}

void inodes_path(struct inodes *table, struct inode *inode, const char *name,
                 char *path, size_t size)
{
    pthread_mutex_lock(&table->mutex);
    size_t end = path_length(inode) + (name ? 1 + strlen(name) : 0);
    if (end < size)
        path[end] = '\0';
    /* From the end backwards: the names are known from there. */
    for (const char *part = name ? name : inode->name; part;) {
        size_t begin = end - 1 - strlen(part);
        if (end < size) {
            path[begin] = '/';
            memcpy(path + begin + 1, part, end - begin - 1);
        } else if (begin < size) {
            path[begin] = '\0';
        }
        end = begin;
        if (!name)
            inode = inode->parent;
        name = NULL;
        part = inode->name;
    }
    unlock(table);
}
