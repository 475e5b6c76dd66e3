/* SPDX-License-Identifier: MIT
 *
 * Entry points for tests of the gate, the limiter, the meters, paths and late answers.
 * The time is set by the test, and a request that may go waits until the test completes
 * it.
 */
#include "gate.h"
#include "metadata.h"
#include "opens.h"
#include "operations.h"
#include "replies.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <math.h>
#include <stdlib.h>

double driver_now_s;

double gate_now(void)
{
    return driver_now_s;
}

/* --- The gate --------------------------------------------------------------------- */

struct gate *driver_gate_new(const struct penstock_scheduler *scheduler)
{
    struct gate *gate = malloc(sizeof(*gate));
    gate_init(gate, 4);
    if (scheduler->arrive) {
        gate->scheduler = *scheduler;
        gate->has_scheduler = true;
    }
    gate->is_active = true;
    return gate;
}

void driver_gate_limit(struct gate *gate, double total, double reads, double writes)
{
    const double rates[POOLS] = {total, reads, writes};
    limiter_set(&gate->limiter, rates, gate_now());
    gate_dispatch(gate);
}

/* A request arrives; return it. */
struct passage *driver_gate_enter(struct gate *gate, int kind, int application,
                                  int64_t size_bytes, bool is_urgent)
{
    struct passage *passage = calloc(1, sizeof(*passage));
    passage->kind = (enum kind)kind;
    passage->is_urgent = is_urgent;
    passage->application = application;
    passage->limited.size_bytes = size_bytes;
    gate_enter(gate, passage);
    return passage;
}

/* Return 0 for a request that waits, 1 for one that may go, 2 for a refused one. */
int driver_gate_state(const struct passage *passage)
{
    return passage->is_refused ? 2 : passage->is_released;
}

void driver_gate_leave(struct gate *gate, struct passage *passage, int64_t moved_bytes)
{
    gate_leave(gate, passage, moved_bytes);
    free(passage);
}

double driver_gate_wake_s(struct gate *gate)
{
    double wake_s = gate->limiter.wake_s;
    if (gate->has_scheduler)
        wake_s = fmin(wake_s, gate->scheduler.wake_s(gate->scheduler.state));
    return wake_s;
}

int64_t driver_gate_waiting(struct gate *gate, int application)
{
    return application < 0 ? gate->waiting_count
                           : gate->waiting_by_application[application];
}

/* --- The limiter ------------------------------------------------------------------ */

struct limiter *driver_limiter_new(double total, double reads, double writes)
{
    const double rates[POOLS] = {total, reads, writes};
    struct limiter *limiter = malloc(sizeof(*limiter));
    limiter_init(limiter, rates, driver_now_s);
    return limiter;
}

void driver_limiter_set(struct limiter *limiter, double total, double reads,
                        double writes)
{
    const double rates[POOLS] = {total, reads, writes};
    limiter_set(limiter, rates, driver_now_s);
}

struct limited *driver_limiter_arrive(struct limiter *limiter, int is_write,
                                      int64_t size_bytes)
{
    struct limited *request = calloc(1, sizeof(*request));
    request->is_write = is_write;
    request->size_bytes = size_bytes;
    limiter_arrive(limiter, request, driver_now_s);
    return request;
}

struct limited *driver_limiter_next(struct limiter *limiter)
{
    return limiter_next(limiter, driver_now_s);
}

void driver_limiter_complete(struct limiter *limiter, struct limited *request,
                             int64_t moved_bytes)
{
    limiter_complete(limiter, request, moved_bytes, driver_now_s);
}

double driver_limiter_wake_s(const struct limiter *limiter)
{
    return limiter->wake_s;
}

int64_t driver_limiter_waiting(const struct limiter *limiter)
{
    return limiter->waiting;
}

/* --- Meters and operations -------------------------------------------------------- */

struct meter *driver_meter_new(double latency_s)
{
    struct meter *meter = malloc(sizeof(*meter));
    meter_init(meter, latency_s, driver_now_s);
    return meter;
}

void driver_meter_record(struct meter *meter, double response_s, int64_t moved_bytes)
{
    meter_record(meter, response_s, moved_bytes, driver_now_s);
}

void driver_meter_read(struct meter *meter, struct meter_figures *figures)
{
    *figures = meter_read(meter, driver_now_s);
}

struct operations *driver_operations_new(int application, double rate)
{
    struct operations *operations = calloc(1, sizeof(*operations));
    pthread_mutex_init(&operations->mutex, NULL);
    operations->limits[application].rate = rate;
    return operations;
}

struct inode *driver_folder_new(void)
{
    struct inode *folder = calloc(1, sizeof(*folder));
    folder->application = -1;
    return folder;
}

double driver_operations_charge(struct operations *operations, int application,
                                struct inode *folder, struct inode *second,
                                bool of_mount, bool *is_shared)
{
    struct locks locks = {.inodes = {folder, second}, .of_mount = of_mount};
    return operations_charge(operations, application, &locks, driver_now_s, is_shared);
}

/* --- Inodes ----------------------------------------------------------------------- */

/* A table of inodes, with the working directory as its root. */
struct inodes *driver_inodes_new(void)
{
    struct inodes *inodes = calloc(1, sizeof(*inodes));
    inodes_init(inodes, open(".", O_PATH), 100);
    return inodes;
}

/* Add an inode to a folder, or to the root if it is NULL. */
struct inode *driver_inodes_add(struct inodes *inodes, struct inode *folder,
                                const char *name, ino_t number)
{
    struct stat status = {.st_dev = 1, .st_ino = number, .st_mode = S_IFDIR};
    return inodes_look_up(inodes, folder ? folder : &inodes->root, name, &status);
}

void driver_inodes_path(struct inodes *inodes, struct inode *inode, const char *name,
                        char *path, size_t size)
{
    inodes_path(inodes, inode, name, path, size);
}

/* A table of a folder that keeps so many descriptors, unless they are needed. */
struct inodes *driver_inodes_of(const char *folder, size_t max_fds)
{
    struct inodes *inodes = calloc(1, sizeof(*inodes));
    inodes_init(inodes, open(folder, O_PATH | O_CLOEXEC), max_fds);
    return inodes;
}

void driver_inodes_free(struct inodes *inodes)
{
    inodes_free(inodes);
    free(inodes);
}

size_t driver_inodes_fds(const struct inodes *inodes)
{
    return inodes->fds;
}

struct inode *driver_inodes_look_up(struct inodes *inodes, const char *name)
{
    struct stat status;
    if (fstatat(inodes->root.fd, name, &status, AT_SYMLINK_NOFOLLOW))
        return NULL;
    return inodes_look_up(inodes, &inodes->root, name, &status);
}

/* Return true if there is a descriptor for this inode. */
bool driver_inodes_use(struct inodes *inodes, struct inode *inode)
{
    if (inodes_use(inodes, inode) < 0)
        return false;
    inodes_done(inodes, inode);
    return true;
}

/* --- Open files ------------------------------------------------------------------- */

struct opens *driver_opens_new(int64_t most, owner_callback ask)
{
    struct opens *opens = calloc(1, sizeof(*opens));
    opens->most = most;
    opens->ask = ask;
    return opens;
}

bool driver_opens_take(struct opens *opens, uid_t user)
{
    return opens_take(opens, opens_owner(opens, user));
}

void driver_opens_give_back(struct opens *opens, uid_t user)
{
    opens_give_back(opens, opens_owner(opens, user));
}

/* --- Late answers ----------------------------------------------------------------- */

/* A mount begins: duplicates of earlier descriptors are closed. */
int driver_io_begin(void)
{
    io_begin();
    return replies_start();
}

/* Read a request from a descriptor; return the descriptor for its answer. */
int driver_read_request(int fd)
{
    static char buffer[4096];
    mount_io.read(fd, buffer, sizeof(buffer), NULL);
    return present_request.fd;
}

/* Answer the request at a time, as libfuse does. */
void driver_answer_at(int fd, uint64_t unique, double due_s)
{
    struct fuse_out_header header = {.len = sizeof(header), .unique = unique};
    struct iovec part = {&header, sizeof(header)};
    present_request.answer_at_s = due_s;
    mount_io.writev(fd, &part, 1, NULL);
}
