/* SPDX-License-Identifier: MIT
 *
 * The life of a mount, and all functions that Python calls (mount/data_path.py).
 *
 * Every function may be called from any thread. Those that read or change the scheduler
 * or the counts take the mutex of the gate.
 */
#include "mount.h"
#include "replies.h"

#include <errno.h>
#include <linux/magic.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Most threads that read requests; files.c and metadata.c use 48 each. */
#define MAX_THREADS 112
/* Most threads for further requests. A metadata request that hangs at the storage keeps
 * its thread, and those of other programs are sent nevertheless. */
#define DATA_POOL_THREADS 64
#define METADATA_POOL_THREADS 512
/* Most background requests (read-ahead, write-back) at a time. The kernel's default is
 * 12 for all programs, so that one program with much read-ahead would hold up the
 * others before any scheduler sees their requests. */
#define MAX_BACKGROUND 4096
/* Ends the wait of the loop; no program uses it here. */
#define WAKE_SIGNAL SIGUSR2

/* --- Mounting --------------------------------------------------------------------- */

/* The last message of libfuse, for the error message of Python. */
static char last_message[512];

static void keep_message(enum fuse_log_level level, const char *format, va_list values)
{
    (void)level;
    vsnprintf(last_message, sizeof(last_message), format, values);
    last_message[strcspn(last_message, "\n")] = '\0';
}

/* Handle the first request. */
static void set_options(void *userdata, struct fuse_conn_info *connection)
{
    struct mount *mount = userdata;
    unsigned wanted = FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK;
    connection->want |= wanted & connection->capable;
    /* io.c switches the second version on, and look-ups at the same time. */
    connection->want &= ~(unsigned)FUSE_CAP_HANDLE_KILLPRIV;
    connection->max_background = MAX_BACKGROUND;
    connection->congestion_threshold = MAX_BACKGROUND;
    if (mount->report_ready)
        mount->report_ready();
}

static void do_nothing(int number)
{
    (void)number;
}

static void set_wake_signal(void)
{
    /* Without SA_RESTART: it interrupts the wait of the loop. */
    struct sigaction action = {.sa_handler = do_nothing};
    sigaction(WAKE_SIGNAL, &action, NULL);
}

EXPORT const char *penstock_mount_message(void)
{
    return last_message;
}

/* Return true for a file system of this node, which reports no errors at close(). */
static bool is_local(int fd)
{
    struct statfs status;
    if (fstatfs(fd, &status))
        return false;
    switch (status.f_type) {
    case TMPFS_MAGIC:
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

/* Return a new mount of the folder `root_fd`, which it takes over; NULL if it fails. */
EXPORT struct mount *penstock_mount_new(int root_fd, int64_t max_fds)
{
    struct mount *mount = calloc(1, sizeof(*mount));
    if (!mount)
        return NULL;
    pthread_mutex_init(&mount->classifier.mutex, NULL);
    pthread_mutex_init(&mount->operations.mutex, NULL);
    for (int i = 0; i < MAX_APPLICATIONS; i++)
        mount->replaced_by[i] = i;
    if (gate_init(&mount->gate, DATA_POOL_THREADS) ||
        gate_init(&mount->metadata, METADATA_POOL_THREADS) || replies_start() ||
        inodes_init(&mount->inodes, root_fd, (size_t)max_fds)) {
        free(mount);
        return NULL;
    }
    /* A file costs up to two descriptors, its own and that of its inode: half of all
     * are left for others. A mount of an ordinary user has one user. */
    mount->opens.most = geteuid() ? INT64_MAX : max_fds / 2;
    mount->is_local = is_local(root_fd);
    credentials_init();
    fuse_set_log_func(keep_message);
    return mount;
}

/* Mount at a folder; `options` are those of mount -o. Return false if it fails. */
EXPORT bool penstock_mount_attach(struct mount *mount, const char *point,
                                  const char *options)
{
    struct fuse_lowlevel_ops handlers = {.init = set_options};
    struct fuse_args arguments = FUSE_ARGS_INIT(0, NULL);
    set_name_handlers(&handlers);
    set_attribute_handlers(&handlers);
    set_file_handlers(&handlers);
    set_folder_handlers(&handlers);
    fuse_opt_add_arg(&arguments, "penstock");
    fuse_opt_add_arg(&arguments, "-o");
    fuse_opt_add_arg(&arguments, options);
    mount->session = fuse_session_new(&arguments, &handlers, sizeof(handlers), mount);
    fuse_opt_free_args(&arguments);
    if (!mount->session || fuse_session_mount(mount->session, point))
        return false;
    io_begin();
    return !fuse_session_custom_io(mount->session, &mount_io,
                                   fuse_session_fd(mount->session));
}

static void set_serving(struct mount *mount, bool is_serving)
{
    pthread_mutex_lock(&mount->gate.mutex);
    mount->loop = pthread_self();
    mount->is_serving = is_serving;
    pthread_mutex_unlock(&mount->gate.mutex);
}

/* Start the threads of both gates. Return 0 or an error number. */
static int start_gates(struct mount *mount)
{
    int error = gate_start(&mount->gate);
    if (error)
        return error;
    error = gate_start(&mount->metadata);
    if (error)
        gate_end(&mount->gate);
    return error;
}

/* Serve until the folder is unmounted or penstock_mount_stop() is called; call `ready`
 * at the first request. Return false if requests cannot be served, e.g. because there
 * are too many threads. */
EXPORT bool penstock_mount_serve(struct mount *mount, void (*ready)(void))
{
    int error = start_gates(mount);
    if (error) {
        snprintf(last_message, sizeof(last_message), "%s", strerror(error));
        return false;
    }
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 1);
    fuse_loop_cfg_set_max_threads(config, MAX_THREADS);
    /* Threads stay: delayed answers use their descriptors. */
    fuse_loop_cfg_set_idle_threads(config, MAX_THREADS);
    set_wake_signal();
    mount->report_ready = ready;
    set_serving(mount, true);
    int result = fuse_session_loop_mt(mount->session, config);
    set_serving(mount, false);
    gate_end(&mount->gate);
    gate_end(&mount->metadata);
    fuse_loop_cfg_destroy(config);
    return result >= 0;
}

/* End penstock_mount_serve(): requests that wait are refused. */
EXPORT void penstock_mount_stop(struct mount *mount)
{
    gate_close(&mount->gate);
    gate_close(&mount->metadata);
    fuse_session_exit(mount->session);
    pthread_mutex_lock(&mount->gate.mutex);
    if (mount->is_serving)
        pthread_kill(mount->loop, WAKE_SIGNAL);
    pthread_mutex_unlock(&mount->gate.mutex);
}

/* Unmount, if it is still mounted. */
EXPORT void penstock_mount_detach(struct mount *mount)
{
    fuse_session_unmount(mount->session);
}

/* --- Scheduler and limits --------------------------------------------------------- */

/* Hold both schedulers still. */
EXPORT void penstock_mount_lock(struct mount *mount)
{
    pthread_mutex_lock(&mount->gate.mutex);
    pthread_mutex_lock(&mount->metadata.mutex);
}

EXPORT void penstock_mount_unlock(struct mount *mount)
{
    pthread_mutex_unlock(&mount->metadata.mutex);
    pthread_mutex_unlock(&mount->gate.mutex);
}

/* Send what may go; call this with both locked, after every change of a scheduler. */
EXPORT void penstock_mount_dispatch(struct mount *mount)
{
    gate_dispatch(&mount->gate);
    gate_dispatch(&mount->metadata);
}

static void set_scheduler(struct gate *gate, const struct penstock_scheduler *scheduler)
{
    gate->scheduler = *scheduler;
    gate->has_scheduler = true;
    atomic_store(&gate->is_active, true);
}

/* Set the scheduler of reads, writes and syncs, and that of metadata requests; once,
 * before requests are served. */
EXPORT void penstock_mount_set_schedulers(struct mount *mount,
                                          const struct penstock_scheduler *data,
                                          const struct penstock_scheduler *metadata)
{
    set_scheduler(&mount->gate, data);
    set_scheduler(&mount->metadata, metadata);
}

/* Set the limits (bytes/s; infinity: none) of all data, reads and writes. */
EXPORT void penstock_mount_set_limits(struct mount *mount, double total, double reads,
                                      double writes)
{
    const double rates[POOLS] = {total, reads, writes};
    struct gate *gate = &mount->gate;
    pthread_mutex_lock(&gate->mutex);
    limiter_set(&gate->limiter, rates, gate_now());
    atomic_store(&gate->is_active, gate->has_scheduler || !gate->limiter.unlimited);
    gate_dispatch(gate);
    pthread_mutex_unlock(&gate->mutex);
}

/* --- Applications ----------------------------------------------------------------- */

/* Measure an application; counts stay if it is measured already. */
EXPORT void penstock_mount_measure(struct mount *mount, int application,
                                   double latency_s, double operations_per_s)
{
    struct gate *gate = &mount->gate;
    pthread_mutex_lock(&gate->mutex);
    struct meter *meter = gate->meters[application];
    if (!meter) {
        meter = gate->meters[application] = malloc(sizeof(*meter));
        if (meter)
            meter_init(meter, latency_s, gate_now());
    }
    if (meter)
        meter->latency_s = latency_s;
    pthread_mutex_unlock(&gate->mutex);
    pthread_mutex_lock(&mount->operations.mutex);
    mount->operations.limits[application].rate = operations_per_s;
    pthread_mutex_unlock(&mount->operations.mutex);
}

/* Give the open files of one application to another one. */
EXPORT void penstock_mount_replace(struct mount *mount, int application, int by)
{
    mount->replaced_by[application] = by;
}

EXPORT void penstock_mount_set_rules(struct mount *mount, classify_callback ask,
                                     bool by_process, bool by_program, int path_count,
                                     const char *const *paths)
{
    classifier_set(&mount->classifier, ask, by_process, by_program, path_count, paths);
}

/* Let `ask` say whose budget the open files of a user id count in. */
EXPORT void penstock_mount_set_owners(struct mount *mount, owner_callback ask)
{
    mount->opens.ask = ask;
}

/* --- Counts ----------------------------------------------------------------------- */

/* The totals of a mount; mount/data_path.py has the same struct. */
struct totals {
    int64_t requests[KINDS];
    int64_t moved_bytes[KINDS];
    double held_up_s[KINDS];
    int64_t waiting;          /* reads, writes and syncs */
    int64_t waiting_metadata; /* metadata requests */
};

EXPORT void penstock_mount_totals(struct mount *mount, struct totals *totals)
{
    penstock_mount_lock(mount);
    for (int kind = 0; kind < KINDS; kind++) {
        struct gate *gate = kind == KIND_METADATA ? &mount->metadata : &mount->gate;
        totals->requests[kind] = gate->tallies[kind].requests;
        totals->moved_bytes[kind] = gate->tallies[kind].moved_bytes;
        totals->held_up_s[kind] = gate->tallies[kind].held_up_s;
    }
    totals->waiting = mount->gate.waiting_count;
    totals->waiting_metadata = mount->metadata.waiting_count;
    penstock_mount_unlock(mount);
}

/* The service of an application; mount/data_path.py has the same struct. */
struct service {
    struct meter_figures figures;
    int64_t queued;
    int64_t operations;
    int64_t queued_operations;
};

EXPORT void penstock_mount_service(struct mount *mount, int application,
                                   struct service *service)
{
    struct gate *gate = &mount->gate;
    memset(service, 0, sizeof(*service));
    penstock_mount_lock(mount);
    if (gate->meters[application])
        service->figures = meter_read(gate->meters[application], gate_now());
    service->queued = gate->waiting_by_application[application];
    service->queued_operations = mount->metadata.waiting_by_application[application];
    penstock_mount_unlock(mount);
    pthread_mutex_lock(&mount->operations.mutex);
    service->operations = mount->operations.limits[application].count;
    pthread_mutex_unlock(&mount->operations.mutex);
}

/* Return the name of a counted request; NULL: there is none with this number. */
EXPORT const char *penstock_mount_operation_name(int operation)
{
    static const char *const names[] = {
#define X(name) #name,
        OPERATIONS(X)
#undef X
    };
    return operation < OPERATION_COUNT ? names[operation] : NULL;
}

EXPORT int64_t penstock_mount_operation_count(struct mount *mount, int operation)
{
    return mount->counts[operation];
}
