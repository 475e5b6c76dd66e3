/* SPDX-License-Identifier: MIT
 *
 * Threads that run requests which had to wait. Threads are started when they are
 * needed, up to POOL_THREADS.
 */
#ifndef PENSTOCK_POOL_H
#define PENSTOCK_POOL_H

struct passage;
struct pool_queue;

enum { POOL_THREADS = 64 };

struct pool_queue *pool_new(void);

/* Call passage->run(passage) in a thread. */
void pool_push(struct pool_queue *pool, struct passage *passage);

#endif
