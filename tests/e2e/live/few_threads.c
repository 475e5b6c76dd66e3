/* SPDX-License-Identifier: MIT
 *
 * A library in which threads can be started only as often as THREADS says; then a limit
 * of the system is reached.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*run)(void *), void *argument)
{
    static int started;
    if (started == atoi(getenv("THREADS")))
        return EAGAIN;
    started++;
    create *real = (create *)dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, argument);
}
