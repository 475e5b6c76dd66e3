/* SPDX-License-Identifier: MIT */
#include "replies.h"

#include "gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct reply {
    double due_s;
    int fd;
    size_t size;
    char *data;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t earlier;
static struct reply *heap; /* The first is due first. */
static size_t heap_count, heap_size;

static void swap(size_t i, size_t j)
{
    struct reply kept = heap[i];
    heap[i] = heap[j];
    heap[j] = kept;
}

static bool push(struct reply reply)
{
    if (heap_count == heap_size) {
        size_t size = heap_size ? 2 * heap_size : 64;
        struct reply *grown = realloc(heap, size * sizeof(*heap));
        if (!grown)
            return false;
        heap = grown;
        heap_size = size;
    }
    size_t i = heap_count++;
    heap[i] = reply;
    for (; i && heap[i].due_s < heap[(i - 1) / 2].due_s; i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
    return true;
}

static struct reply pop(void)
{
    struct reply first = heap[0];
    heap[0] = heap[--heap_count];
    for (size_t i = 0, least; (least = 2 * i + 1) < heap_count; i = least) {
        if (least + 1 < heap_count && heap[least + 1].due_s < heap[least].due_s)
            least++;
        if (heap[i].due_s <= heap[least].due_s)
            break;
        swap(i, least);
    }
    return first;
}

static void wait_for_first(void)
{
    if (!heap_count) {
        pthread_cond_wait(&earlier, &mutex);
    } else {
        double whole_s = floor(heap[0].due_s);
        struct timespec until = {(time_t)whole_s,
                                 (long)(1e9 * (heap[0].due_s - whole_s))};
        pthread_cond_timedwait(&earlier, &mutex, &until);
    }
}

/* Main loop of the thread. */
static void *send_when_due(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (true) {
        while (!heap_count || heap[0].due_s > gate_now())
            wait_for_first();
        struct reply reply = pop();
        pthread_mutex_unlock(&mutex);
        /* It fails only if the mount has ended. */
        ssize_t sent = write(reply.fd, reply.data, reply.size);
        (void)sent;
        free(reply.data);
        pthread_mutex_lock(&mutex);
    }
    return NULL;
}

int replies_start(void)
{
    pthread_t thread;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&earlier, &clock);
    int error = pthread_create(&thread, NULL, send_when_due, NULL);
    if (!error)
        pthread_detach(thread);
    return error;
}

bool reply_at(double due_s, int fd, const struct iovec *parts, int count)
{
    struct reply reply = {.due_s = due_s, .fd = fd};
    for (int i = 0; i < count; i++)
        reply.size += parts[i].iov_len;
    reply.data = malloc(reply.size);
    if (!reply.data)
        return false;
    char *at = reply.data;
    for (int i = 0; i < count; at += parts[i].iov_len, i++)
        memcpy(at, parts[i].iov_base, parts[i].iov_len);
    pthread_mutex_lock(&mutex);
    bool pushed = push(reply);
    pthread_cond_signal(&earlier);
    pthread_mutex_unlock(&mutex);
    if (!pushed)
        free(reply.data);
    return pushed;
}
