/* SPDX-License-Identifier: MIT
 *
 * Metadata requests: count them by application, and limit their rate.
 *
 * Every application has its own limit (operations/s) and its own turn, so that no
 * application waits for another one's limit. A request is executed at once; if its
 * application is ahead of its limit, the answer is sent later (replies.c), and the
 * program waits for it.
 *
 * Meanwhile the kernel may hold locks of one or two folders, for all applications. So
 * the answer is not delayed if another application has used one of these folders during
 * the last OPERATIONS_SHARED_S seconds, and for OPERATIONS_LOCKED_S seconds at most if
 * none has: one may come meanwhile. A request that is answered before its turn is
 * counted, and the application pays for it with its next request that no lock is held
 * for. Such a debt is at most OPERATIONS_DEBT_S seconds. Requests that wait for their
 * turn are never answered before it, however many there are.
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

/* Count a request, and return when it may be answered (0: now). `locked` are the inodes
 * that the kernel has locked meanwhile, or NULL; `is_shared` says whether another
 * application uses one of them, too. */
double operations_charge(struct operations *operations, int application,
                         struct inode *const locked[MAX_LOCKED], double now_s,
                         bool *is_shared);

#endif
