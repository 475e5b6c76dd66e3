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

/* Take the next turn of a limit; return its time. */
static double take_turn(struct operation_limit *limit, double now_s)
{
    double turn_s = fmax(limit->next_s, now_s - OPERATIONS_BURST_S);
    limit->next_s = fmin(turn_s + 1.0 / limit->rate, now_s + OPERATIONS_DEBT_S);
    return turn_s;
}

double operations_charge(struct operations *operations, int application,
                         struct inode *locked, double now_s, bool *is_shared)
{
    struct operation_limit *limit = &operations->limits[application];
    double turn_s = 0.0;
    pthread_mutex_lock(&operations->mutex);
    limit->count++;
    *is_shared = locked && use_folder(locked, application, now_s);
    if (limit->rate > 0.0)
        turn_s = take_turn(limit, now_s);
    pthread_mutex_unlock(&operations->mutex);
    return *is_shared || turn_s <= now_s ? 0.0 : turn_s;
}
