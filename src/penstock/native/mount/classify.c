/* SPDX-License-Identifier: MIT */
#include "classify.h"

#include "gate.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a, 64 bits. */
#define FIRST_MIXED UINT64_C(0xcbf29ce484222325)
#define MIXING_FACTOR UINT64_C(0x100000001b3)

void classifier_set(struct classifier *classifier, classify_callback ask,
                    bool by_process, bool by_program, int path_count,
                    const char *const *paths)
{
    pthread_mutex_lock(&classifier->mutex);
    for (int i = 0; i < CLASSIFY_PATHS; i++) {
        free(classifier->paths[i]);
        classifier->paths[i] = i < path_count ? strdup(paths[i]) : NULL;
    }
    classifier->ask = ask;
    classifier->by_process = by_process;
    classifier->by_program = by_program;
    classifier->path_count = path_count;
    classifier->generation++;
    pthread_mutex_unlock(&classifier->mutex);
    atomic_store(&classifier->is_on, true);
}

/* Return a mask of the paths in the rules that are `path` or contain it. */
static uint64_t matching_paths(const struct classifier *classifier, const char *path)
{
    uint64_t mask = 0;
    for (int i = 0; i < classifier->path_count && i < CLASSIFY_PATHS; i++) {
        const char *folder = classifier->paths[i];
        size_t length = folder ? strlen(folder) : 0;
        if (!length || strncmp(path, folder, length))
            continue;
        if (folder[length - 1] == '/' || path[length] == '/' || !path[length])
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

/* Note the executable of a process: a process that executes another program may belong
 * to another application. The path is read from the kernel. The file itself must not be
 * touched: it may lie on this mount, whose threads all wait here, or on a file system
 * that hangs. */
static void identify_program(struct answer *key)
{
    char link[40], path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/%lld/exe", (long long)key->pid);
    ssize_t length = readlink(link, path, sizeof(path));
    uint64_t mixed = FIRST_MIXED;
    for (ssize_t i = 0; i < length; i++)
        mixed = (mixed ^ (unsigned char)path[i]) * MIXING_FACTOR;
    key->program = length > 0 ? mixed : 0;
}

static size_t entry_of(const struct answer *key)
{
    uint64_t mixed = (uint64_t)key->pid * 31 + (uint64_t)key->uid;
    mixed = (mixed * 31 + key->paths) * 31 + key->program;
    return (size_t)(mixed * 0x9e3779b97f4a7c15u >> 40) % CLASSIFY_ENTRIES;
}

static bool is_for(const struct answer *answer, const struct answer *key)
{
    return answer->pid == key->pid && answer->uid == key->uid &&
           answer->paths == key->paths && answer->program == key->program &&
           answer->generation == key->generation;
}

static int known_or_asked(struct classifier *classifier, struct answer *key,
                          int64_t pid, const char *path)
{
    struct answer *answer = &classifier->answers[entry_of(key)];
    bool is_kept = classifier->path_count <= CLASSIFY_PATHS;
    double now_s = gate_now();
    pthread_mutex_lock(&classifier->mutex);
    key->generation = classifier->generation;
    classify_callback ask = classifier->ask;
    bool is_known = is_kept && is_for(answer, key) && now_s < answer->until_s;
    int application = answer->application;
    pthread_mutex_unlock(&classifier->mutex);
    if (is_known)
        return application;
    application = ask(pid, key->uid, path);
    if (application < 0 || application >= MAX_APPLICATIONS)
        application = 0;
    key->application = application;
    key->until_s = now_s + CLASSIFY_VALID_S;
    pthread_mutex_lock(&classifier->mutex);
    *answer = *key;
    pthread_mutex_unlock(&classifier->mutex);
    return application;
}

int classify(struct classifier *classifier, struct inodes *inodes, struct inode *inode,
             const char *name, int64_t pid, int64_t uid)
{
    if (!atomic_load_explicit(&classifier->is_on, memory_order_relaxed))
        return 0;
    char path[PATH_MAX] = "";
    struct answer key = {.uid = uid};
    pthread_mutex_lock(&classifier->mutex);
    bool by_path = classifier->path_count, by_program = classifier->by_program;
    if (classifier->by_process)
        key.pid = pid;
    pthread_mutex_unlock(&classifier->mutex);
    if (by_path) {
        inodes_path(inodes, inode, name, path, sizeof(path));
        pthread_mutex_lock(&classifier->mutex);
        key.paths = matching_paths(classifier, path);
        pthread_mutex_unlock(&classifier->mutex);
    }
    if (by_program)
        identify_program(&key);
    return known_or_asked(classifier, &key, pid, path);
}
