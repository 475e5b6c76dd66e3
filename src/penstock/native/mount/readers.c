/* SPDX-License-Identifier: MIT */
#include "readers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* Threads that may wait in read() at a time. */
#define MAX_READERS 4

/* A thread that waits in the stack. */
struct waiter {
    struct waiter *below;
    pthread_cond_t called;
    bool is_called;
};

/* Threads in read(); only the stack needs the mutex. */
static _Atomic int readers;
static _Atomic int stacked;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *stack;

/* Count this thread among those in read() if fewer than `most` are there. */
static bool join_readers(int most)
{
    int now = atomic_load(&readers);
    while (now < most)
        if (atomic_compare_exchange_weak(&readers, &now, now + 1))
            return true;
    return false;
}

static void leave_stack(struct waiter *waiter)
{
    struct waiter **place = &stack;
    while (*place && *place != waiter)
        place = &(*place)->below;
    if (*place) {
        *place = waiter->below;
        atomic_fetch_sub(&stacked, 1);
    }
}

/* Let the thread on top of the stack read, unless another one does. */
static void call_waiter(void)
{
    pthread_mutex_lock(&mutex);
    struct waiter *waiter = stack;
    if (waiter && join_readers(1)) {
        leave_stack(waiter);
        waiter->is_called = true;
        pthread_cond_signal(&waiter->called);
    }
    pthread_mutex_unlock(&mutex);
}

/* A thread has left read(); also called if it is cancelled there. */
static void end_reading(void *unused)
{
    (void)unused;
    if (atomic_fetch_sub(&readers, 1) == 1 && atomic_load(&stacked))
        call_waiter();
}

/* The thread is cancelled while it waits in the stack. */
static void cancel_wait(void *argument)
{
    struct waiter *waiter = argument;
    leave_stack(waiter);
    pthread_mutex_unlock(&mutex);
    if (waiter->is_called)
        end_reading(NULL);
}

/* Wait until this thread is counted among those in read(). */
static void wait_in_stack(void)
{
    pthread_mutex_lock(&mutex);
    struct waiter waiter = {.below = stack, .called = PTHREAD_COND_INITIALIZER};
    stack = &waiter;
    atomic_fetch_add(&stacked, 1);
    pthread_cleanup_push(cancel_wait, &waiter);
    /* The last thread may have left read() before it could see this one. */
    if (join_readers(1))
        leave_stack(&waiter);
    else
        while (!waiter.is_called)
            pthread_cond_wait(&waiter.called, &mutex);
    pthread_cleanup_pop(0);
    pthread_mutex_unlock(&mutex);
}

ssize_t read_in_turn(int fd, void *buffer, size_t size)
{
    ssize_t got;
    if (!join_readers(MAX_READERS))
        wait_in_stack();
    pthread_cleanup_push(end_reading, NULL);
    got = read(fd, buffer, size);
    pthread_cleanup_pop(1);
    return got;
}
