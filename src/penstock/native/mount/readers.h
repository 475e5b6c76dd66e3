/* SPDX-License-Identifier: MIT
 *
 * Which threads wait for requests of the kernel.
 *
 * The kernel wakes threads that wait in read() in turn, so that many waiting threads
 * would all be woken from sleep, one after the other, with cold caches. So only a few
 * threads wait there. The others wait in a stack: the one that has waited for the
 * shortest time takes over when no thread is left in read().
 */
#ifndef PENSTOCK_READERS_H
#define PENSTOCK_READERS_H

#include <stddef.h>
#include <sys/types.h>

/* Call read(2) when it is the turn of this thread. */
ssize_t read_in_turn(int fd, void *buffer, size_t size);

#endif
