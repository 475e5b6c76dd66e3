/* SPDX-License-Identifier: MIT
 *
 * The bell: the memory that the processes of all jobs of one user share with the agent.
 *
 * The agent sleeps on the bells of all users in one thread. A process that wakes the
 * agent counts up its slot, which tells the agent its page, and then `rings`. The bell
 * also holds the lease of all pages that refer to it: the agent renews one word for all
 * jobs of a user, however many there are.
 *
 * A bell is a file of BELL_SIZE bytes beside the pages, <user id>.bell. Only that user
 * can open it: nobody else can truncate it, which would kill the processes that map it.
 * The agent reads and writes it with pread and pwrite (live/node/pages/bell.py). A page
 * refers to its bell by the words bell_user and bell_slot. A process that cannot map
 * the bell uses the lease in its page, and the agent notices its calls later.
 *
 * Who writes which word
 * ---------------------
 *   agent only      magic, version, size, lease_ns
 *   processes only  rings, posts
 *
 * Memory ordering: a process counts up its slot before `rings` (release). The agent
 * reads `rings` before the slots, so that it never sleeps on a value that includes a
 * post which it has not seen.
 */
#ifndef PENSTOCK_BELL_H
#define PENSTOCK_BELL_H

#include <stdint.h>

#define BELL_MAGIC UINT64_C(0x6c6c65626e6570) /* "penbell", little endian */
#define BELL_VERSION 1u
#define BELL_SIZE 4096u

enum { BELL_SLOTS = 1984 };

struct penstock_bell {
    _Atomic uint64_t magic;
    uint32_t version;
    uint32_t size;
    _Atomic uint64_t lease_ns; /* as page.h says, for all pages of this bell */
    uint64_t unused[5];
    _Atomic uint32_t rings; /* Futex: the agent sleeps on this word. */
    uint32_t unused_words[15];
    /* Wake-ups of the agent by slot; slot n is posts[n - 1], 0 is no slot. */
    _Atomic uint16_t posts[BELL_SLOTS];
};

_Static_assert(sizeof(struct penstock_bell) == BELL_SIZE, "a bell is one page");

#endif
