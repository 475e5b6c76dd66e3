/* SPDX-License-Identifier: MIT */
#include "operations.h"

#include <math.h>

/* Note that an application uses a folder; return true if another one uses it, too. */
static bool use_folder(struct inode *folder, int application, double now_s)
{
    if (folder->application >= 0 && folder->application != application)
        folder->shared_s = now_s;
    folder->application = application;
    return folder->shared_s > 0.0 && now_s - folder->shared_s < OPERATIONS_SHARED_S;
}

/* Take the next turn of a limit; return when to answer, at `latest_s` at the latest. */
static double take_turn(struct operation_limit *limit, double now_s, double latest_s)
{
    double turn_s = fmax(limit->next_s, now_s - OPERATIONS_BURST_S);
    double length_s = 1.0 / limit->rate;
    if (turn_s <= fmax(latest_s, now_s)) {
        /* It waits for all turns before its own, and so pays the debt. */
        limit->debt_s = 0.0;
        limit->next_s = turn_s + length_s;
    } else if (!limit->debt_s || limit->debt_s + length_s <= OPERATIONS_DEBT_S) {
        limit->debt_s += length_s;
        limit->next_s = turn_s + length_s;
    }
    return fmin(turn_s, latest_s);
}

double operations_charge(struct operations *operations, int application,
                         const struct locks *locks, double now_s, bool *is_shared)
{
    struct operation_limit *limit = &operations->limits[application];
    double answer_s = 0.0, latest_s = INFINITY;
    *is_shared = locks->of_mount;
    pthread_mutex_lock(&operations->mutex);
    limit->count++;
    for (int i = 0; i < MAX_LOCKED; i++) {
        if (locks->inodes[i]) {
            latest_s = now_s + OPERATIONS_LOCKED_S;
            *is_shared |= use_folder(locks->inodes[i], application, now_s);
            /* Such a renaming waits for locks of its folders, and all others for it. */
            if (locks->of_mount)
                locks->inodes[i]->shared_s = now_s;
        }
    }
    if (limit->rate > 0.0)
        answer_s = take_turn(limit, now_s, *is_shared ? now_s : latest_s);
    pthread_mutex_unlock(&operations->mutex);
    return answer_s <= now_s ? 0.0 : answer_s;
}
