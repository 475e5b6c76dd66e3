/* SPDX-License-Identifier: MIT
 *
 * Files and folders that each user has open. Each is a descriptor of this process: a
 * user who has too many is refused, so that others can still open files. The user ids
 * of a user's containers have one budget with their owner.
 */
#ifndef PENSTOCK_OPENS_H
#define PENSTOCK_OPENS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Users whose numbers differ by a multiple of this have one budget together. */
#define OPENS_USERS 4096

/* Returns the user whose budget a user id has (live/wire/subordinates.py); the same in
 * each call. */
typedef uint32_t (*owner_callback)(uint32_t user);

struct opens {
    int64_t most;       /* of one owner; root has no limit */
    owner_callback ask; /* NULL: each user id is its own owner */
    /* The last answers: a user id in the upper half, its owner in the lower half. */
    _Atomic uint64_t owners[OPENS_USERS];
    _Atomic int64_t of_owner[OPENS_USERS];
};

/* Return whose budget the files of a user id count in. */
static inline uid_t opens_owner(struct opens *opens, uid_t user)
{
    if (!user || !opens->ask)
        return user;
    _Atomic uint64_t *kept = &opens->owners[user % OPENS_USERS];
    uint64_t answer = atomic_load(kept);
    if (answer >> 32 != user) {
        uid_t owner = opens->ask(user);
        /* Nobody else is root: the question has failed. */
        answer = (uint64_t)user << 32 | (owner ? owner : user);
        atomic_store(kept, answer);
    }
    return (uid_t)answer;
}

/* Count a file that is opened; false if its owner has too many. */
static inline bool opens_take(struct opens *opens, uid_t owner)
{
    _Atomic int64_t *count = &opens->of_owner[owner % OPENS_USERS];
    if (!owner || atomic_fetch_add(count, 1) < opens->most)
        return true;
    atomic_fetch_sub(count, 1);
    return false;
}

/* Count a file that was closed, or was not opened after all. */
static inline void opens_give_back(struct opens *opens, uid_t owner)
{
    if (owner)
        atomic_fetch_sub(&opens->of_owner[owner % OPENS_USERS], 1);
}

#endif
