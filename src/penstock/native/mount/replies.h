/* SPDX-License-Identifier: MIT
 *
 * Answers that are sent to the kernel later: a heap by time, and the thread that sends
 * them.
 */
#ifndef PENSTOCK_REPLIES_H
#define PENSTOCK_REPLIES_H

#include <stdbool.h>
#include <sys/uio.h>

/* Start the thread. Return 0 or an error number. */
int replies_start(void);

/* Send an answer at a time (of gate_now()). Return false if memory is short. */
bool reply_at(double due_s, int fd, const struct iovec *parts, int count);

#endif
