/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include "gate.h"

#include <stdlib.h>

struct pool_queue {
    pthread_mutex_t mutex;
    pthread_cond_t pushed;
    struct passage *first, **end;
    int threads, most_threads, idle, queued;
};

struct pool_queue *pool_new(int most_threads)
{
    struct pool_queue *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->pushed, NULL);
    pool->end = &pool->first;
    pool->most_threads = most_threads;
    return pool;
}

static struct passage *pop(struct pool_queue *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->idle++;
    while (!pool->first)
        pthread_cond_wait(&pool->pushed, &pool->mutex);
    pool->idle--;
    pool->queued--;
    struct passage *passage = pool->first;
    pool->first = passage->newer;
    if (!pool->first)
        pool->end = &pool->first;
    pthread_mutex_unlock(&pool->mutex);
    return passage;
}

/* Main loop of a thread. */
static void *serve(void *argument)
{
    struct pool_queue *pool = argument;
    while (true) {
        struct passage *passage = pop(pool);
        passage->run(passage);
    }
    return NULL;
}

/* Start a thread; the caller holds the mutex. Return 0 or an error number. */
static int add_thread(struct pool_queue *pool)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, serve, pool);
    if (!error) {
        pthread_detach(thread);
        pool->threads++;
    }
    return error;
}

int pool_start(struct pool_queue *pool)
{
    pthread_mutex_lock(&pool->mutex);
    int error = add_thread(pool);
    pthread_mutex_unlock(&pool->mutex);
    return error;
}

void pool_push(struct pool_queue *pool, struct passage *passage)
{
    pthread_mutex_lock(&pool->mutex);
    passage->newer = NULL;
    *pool->end = passage;
    pool->end = &passage->newer;
    pool->queued++;
    /* If all are busy and no further one can be started, the request waits for them. */
    if (pool->idle < pool->queued && pool->threads < pool->most_threads)
        add_thread(pool);
    pthread_cond_signal(&pool->pushed);
    pthread_mutex_unlock(&pool->mutex);
}
