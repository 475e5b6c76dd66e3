/* SPDX-License-Identifier: MIT
 *
 * Files and folders that each user has open. Each is a descriptor of this process: a
 * user who has too many is refused, so that others can still open files.
 */
#ifndef PENSTOCK_OPENS_H
#define PENSTOCK_OPENS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Users whose numbers differ by a multiple of this have one budget together. */
#define OPENS_USERS 4096

struct opens {
    int64_t most; /* of one user; root has no limit */
    _Atomic int64_t of_user[OPENS_USERS];
};

/* Count a file that a user opens; false if that user has too many. */
static inline bool opens_take(struct opens *opens, uid_t user)
{
    _Atomic int64_t *count = &opens->of_user[user % OPENS_USERS];
    if (!user || atomic_fetch_add(count, 1) < opens->most)
        return true;
    atomic_fetch_sub(count, 1);
    return false;
}

/* Count a file that was closed, or was not opened after all. */
static inline void opens_give_back(struct opens *opens, uid_t user)
{
    if (user)
        atomic_fetch_sub(&opens->of_user[user % OPENS_USERS], 1);
}

#endif
