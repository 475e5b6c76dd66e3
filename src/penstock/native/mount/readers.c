/* SPDX-License-Identifier: MIT */
#include "readers.h"

#include <pthread.h>
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

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *stack;
static int readers;

/* Let the thread on top of the stack read; the caller holds the mutex. */
static void call_waiter(void)
{
    struct waiter *waiter = stack;
    if (!waiter)
        return;
    stack = waiter->below;
    waiter->is_called = true;
    readers++;
    pthread_cond_signal(&waiter->called);
}

/* The thread is cancelled while it waits in the stack. */
static void leave_stack(void *argument)
{
    struct waiter *waiter = argument, **place = &stack;
    while (*place && *place != waiter)
        place = &(*place)->below;
    if (*place)
        *place = waiter->below;
    if (waiter->is_called)
        readers--;
    pthread_mutex_unlock(&mutex);
}

static void wait_in_stack(void)
{
    struct waiter waiter = {.below = stack, .called = PTHREAD_COND_INITIALIZER};
    stack = &waiter;
    pthread_cleanup_push(leave_stack, &waiter);
    while (!waiter.is_called)
        pthread_cond_wait(&waiter.called, &mutex);
    pthread_cleanup_pop(0);
}

/* A thread has left read(); also called if it is cancelled there. */
static void end_reading(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    if (!--readers)
        call_waiter();
    pthread_mutex_unlock(&mutex);
}

ssize_t read_in_turn(int fd, void *buffer, size_t size)
{
    ssize_t got;
    pthread_mutex_lock(&mutex);
    if (readers < MAX_READERS)
        readers++;
    else
        wait_in_stack();
    pthread_mutex_unlock(&mutex);
    pthread_cleanup_push(end_reading, NULL);
    got = read(fd, buffer, size);
    pthread_cleanup_pop(1);
    return got;
}
