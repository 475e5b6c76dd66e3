/* SPDX-License-Identifier: MIT
 *
 * Metadata requests: count them, limit their rate (operations.c), and let a scheduler
 * order them, at a gate of their own (gate.c).
 *
 * A handler calls begin_operation() first. If the request has to wait, its bytes are
 * kept and the handler returns without an answer. Later a thread of the gate's pool
 * gives the bytes to libfuse again, which calls the handler a second time. So
 * requests wait without a thread, and handlers need not keep their arguments. The same
 * happens, also without a scheduler, if too many threads of libfuse have metadata
 * requests already.
 *
 * The operation ends with its answer (io.c), even if a limit delays the answer.
 */
#ifndef PENSTOCK_METADATA_H
#define PENSTOCK_METADATA_H

#include "mount.h"

/* A request that a scheduler has ordered, or that runs in the pool, from
 * begin_operation() to its answer. */
struct operation_request {
    struct passage passage;
    struct mount *mount;
    uint64_t unique; /* number of the request, which its answer repeats */
    int fd;          /* to which the answer is written */
    bool is_in_pool; /* It is not run in the thread that has read it. */
    bool removes_set_id;
    double answer_at_s;
    size_t size;
    char data[]; /* of a request that runs in the pool */
};

/* End an operation: the scheduler may send the next one. The answer with this number is
 * about to be written; return the descriptor to write it to, or -1 if no operation of
 * this thread has this number. */
int end_operation(uint64_t unique);

#endif
