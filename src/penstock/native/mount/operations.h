/* SPDX-License-Identifier: MIT
 *
 * Metadata requests: count them by application, and limit their rate.
 *
 * Every application has its own limit (operations/s) and its own turn, so that no
 * application waits for another one's limit. A request is executed at once; if its
 * application is ahead of its limit, the answer is sent later (replies.c), and the
 * program waits for it.
 *
 * Meanwhile the kernel may hold locks, for all applications: of one or two inodes, and
 * for a renaming between folders one lock that all such renamings of the mount need. So
 * the answer is not delayed for a renaming between folders, nor if during the last
 * OPERATIONS_SHARED_S seconds one of the folders was in such a renaming or was used by
 * another application. It is delayed for OPERATIONS_LOCKED_S seconds at most if not:
 * others may come meanwhile.
 *
 * A request that is answered before its turn is counted, and the application pays for
 * it with its next request that no lock is held for. Such a debt is at most
 * OPERATIONS_DEBT_S seconds: further requests that do not wait for their turn take no
 * turn. Requests for which no lock is held are never answered before their turn,
 * however many there are.
 */
#ifndef PENSTOCK_OPERATIONS_H
#define PENSTOCK_OPERATIONS_H

#include "gate.h"
#include "inodes.h"

#define OPERATIONS_SHARED_S 1.0
#define OPERATIONS_LOCKED_S 1.0
#define OPERATIONS_DEBT_S 10.0
/* A renaming locks two folders. */
enum { MAX_LOCKED = 2 };
/* Requests that may follow each other at once, in seconds of the limit. */
#define OPERATIONS_BURST_S 0.020

struct operation_limit {
    double rate;   /* operations/s; 0: no limit */
    double next_s; /* when the next operation is due */
    double debt_s; /* time of the requests that were answered before their turn */
    int64_t count;
};

struct operations {
    pthread_mutex_t mutex;
    struct operation_limit limits[MAX_APPLICATIONS];
};

/* What the kernel locks until a request is answered. */
struct locks {
    struct inode *inodes[MAX_LOCKED]; /* or NULL */
    bool of_mount;                    /* the lock of all renamings between folders */
};

/* Count a request, and return when it may be answered (0: now). `is_shared` says
 * whether another application may wait for the same locks. */
double operations_charge(struct operations *operations, int application,
                         const struct locks *locks, double now_s, bool *is_shared);

#endif
