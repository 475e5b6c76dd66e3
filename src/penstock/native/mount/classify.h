/* SPDX-License-Identifier: MIT
 *
 * Which application a process and a file belong to.
 *
 * Python knows the rules (mount/rules.py) and is asked by a callback. Its answers are
 * kept for CLASSIFY_VALID_S seconds by everything that a rule can depend on: the
 * process, its user, its executable, and which of the paths in the rules lead to the
 * file. So Python is asked once per process and second, not once per request.
 */
#ifndef PENSTOCK_CLASSIFY_H
#define PENSTOCK_CLASSIFY_H

#include "inodes.h"

#include <stdatomic.h>

#define CLASSIFY_VALID_S 1.0
enum { CLASSIFY_PATHS = 64, CLASSIFY_ENTRIES = 4096 };

/* Asks Python; returns the index of an application. */
typedef int32_t (*classify_callback)(int64_t pid, int64_t uid, const char *path);

struct answer {
    int64_t pid, uid;
    uint64_t program; /* hash of the path of its executable; 0: not known */
    uint64_t paths;
    uint32_t generation;
    int application;
    double until_s;
};

struct classifier {
    pthread_mutex_t mutex;
    atomic_bool is_on; /* off: all requests belong to application 0 */
    classify_callback ask;
    bool by_process; /* The rules depend on more than the user and the path. */
    bool by_program; /* The rules depend on the program, too. */
    int path_count;
    char *paths[CLASSIFY_PATHS];
    uint32_t generation; /* counts changes of the rules */
    struct answer answers[CLASSIFY_ENTRIES];
};

/* Set the rules. More than CLASSIFY_PATHS paths: Python is asked for every request. */
void classifier_set(struct classifier *classifier, classify_callback ask,
                    bool by_process, bool by_program, int path_count,
                    const char *const *paths);

/* Return the application of a process that uses an inode, or a name in it. */
int classify(struct classifier *classifier, struct inodes *inodes, struct inode *inode,
             const char *name, int64_t pid, int64_t uid);

#endif
