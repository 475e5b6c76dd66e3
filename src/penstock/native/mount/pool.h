/* SPDX-License-Identifier: MIT
 *
 * Threads that run requests which had to wait. Threads are started when they are
 * needed.
 */
#ifndef PENSTOCK_POOL_H
#define PENSTOCK_POOL_H

struct passage;
struct pool_queue;

/* Return a pool with at most so many threads; NULL if memory is short. */
struct pool_queue *pool_new(int most_threads);

/* Start the first thread. Return 0 or an error number. */
int pool_start(struct pool_queue *pool);

/* Call passage->run(passage) in a thread. */
void pool_push(struct pool_queue *pool, struct passage *passage);

#endif
