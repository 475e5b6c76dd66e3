/* SPDX-License-Identifier: MIT
 *
 * The drainer: a process that drains journals and does nothing else.
 *
 * It is any program under the library that finds PENSTOCK_DRAIN, a number of
 * milliseconds, in its environment: it drains in the constructor of the library and
 * ends before the program begins. PENSTOCK_STAGING names the folder of the journals. It
 * drains:
 *
 *   beside a job     if there is a page: the journals of that job, paced, charged and
 *                    counted as if its programs had done so, until nothing was drained
 *                    for PENSTOCK_DRAIN. The agent starts it; programs do not need it.
 *   what is named    if PENSTOCK_DRAIN_NAMED is set: the journals that standard input
 *                    names, with an answer for each on standard output. A process that
 *                    holds a journal is waited for until it has drained nothing for
 *                    PENSTOCK_DRAIN. This is `penstock drain`.
 *   what was left    otherwise: the journals of programs that have ended, unpaced;
 *                    those of the page whose device and inode PENSTOCK_DRAIN_OF says,
 *                    or all. With PENSTOCK_DRAIN_PARTS: those that have parts, of
 *                    programs that live, too, which then write to their files.
 *
 * The agent starts a drainer for another user as root. Before it looks at anything of
 * that user, it joins cgroups (PENSTOCK_DRAIN_CGROUPS: descriptors of cgroup.procs,
 * separated by commas) and becomes the user (PENSTOCK_DRAIN_USER), whose groups it has
 * already. A user can signal the own drainer, and cannot debug it: if it is in the
 * cgroup of the agent, it must not run anything else.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "stage_slots.h"
#include "stage_text.h"

/* Threads that drain beside a job. Each has some of the journals: the files of a job
 * may lie on many storage targets, and one stream of data keeps one of them busy. */
enum { DRAIN_THREADS = 8 };

/* Time between two looks into the folder; and after a look at which a journal was
 * kept. */
static const uint64_t LOOK_NS = 5000000;
static const uint64_t RETRY_NS = 1000000000;

static void sleep_ns(uint64_t duration_ns)
{
    struct timespec duration = {(time_t)(duration_ns / 1000000000u),
                                (long)(duration_ns % 1000000000u)};
    raw_call(SYS_nanosleep, (long)&duration, 0, 0, 0, 0, 0);
}

static bool is_journal(const char *name)
{
    const char *end = strrchr(name, '.');
    return end != NULL && strcmp(end, ".journal") == 0;
}

/* Call `act` for every journal in the folder that belongs to `thread`, one of `threads`
 * from 0 on: its inode is that number modulo `threads`. Return the greatest result. */
static enum drain_result
for_each_journal(enum drain_result (*act)(const char *name, const uint64_t page[2]),
                 const uint64_t page[2], uint64_t thread, uint64_t threads)
{
    enum drain_result most = DRAIN_NOTHING;
    char path[JOURNAL_NAME_BYTES];
    size_t length = strlen(stage_settings.folder);
    DIR *folder = opendir(stage_settings.folder);
    if (folder == NULL)
        return DRAIN_KEPT;
    memcpy(path, stage_settings.folder, length);
    path[length++] = '/';
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t room = strlen(entry->d_name) + 1;
        if (!is_journal(entry->d_name) || length + room > sizeof path ||
            (uint64_t)entry->d_ino % threads != thread)
            continue;
        memcpy(path + length, entry->d_name, room);
        enum drain_result result = act(path, page);
        most = result > most ? result : most;
    }
    closedir(folder);
    return most;
}

/* The counts of staged data in the page. */
struct balance {
    uint64_t drained;
    uint64_t absorbed;
    uint64_t since_ns; /* when these counts were first seen */
};

static struct balance read_balance(void)
{
    struct page_staging *page = &attached_page->staging;
    uint64_t drained = atomic_load(&page->drained_bytes);
    return (struct balance){drained, atomic_load(&page->absorbed_bytes), pace_now_ns()};
}

/* Correct the count of drained bytes in the page. It lacks what processes without
 * the page have drained, and data of a program that was killed before it could
 * count them. It is corrected once all journals are empty and the counts have not
 * changed for RETRY_NS. */
static void correct_page(struct balance *before, struct balance now)
{
    bool whole = LOAD(attached_page->staging.folder_state) == FOLDER_KNOWN;
    if (now.drained != before->drained || now.absorbed != before->absorbed)
        *before = now;
    else if (whole && now.since_ns - before->since_ns > RETRY_NS)
        atomic_compare_exchange_strong(&attached_page->staging.drained_bytes,
                                       &now.drained, now.absorbed);
}

/* --- Steps of `drain_beside`, and its end --------------------------------------- */

#ifndef DRAIN_STUCK_MS /* A test does not wait that long. */
#define DRAIN_STUCK_MS 60000
#endif

/* A thread beside the first one whose storage does not answer delays the end of the
 * process for this long at most. The first one cannot end the process before its own
 * step is done. */
static const uint64_t STUCK_NS = UINT64_C(1000000) * DRAIN_STUCK_MS;

/* When a thread last drained something. */
static _Atomic uint64_t drained_at_ns;

/* Threads inside a step; negative: the process ends, and no step may begin. A thread
 * that is killed inside a step would leave its charge to the job. */
static _Atomic int steps_under_way;

static enum drain_result counted_step(const char *name, const uint64_t page[2])
{
    enum drain_result result = DRAIN_KEPT;
    if (atomic_fetch_add(&steps_under_way, 1) >= 0)
        result = foreign_drain_step(name, page);
    if (result == DRAIN_DONE)
        STORE(drained_at_ns, pace_now_ns());
    atomic_fetch_sub(&steps_under_way, 1);
    return result;
}

/* `time_ns` was read before the clock. If it is later all the same, because another
 * thread has stored it, the difference is negative. */
static bool is_within(uint64_t time_ns, uint64_t duration_ns)
{
    return (int64_t)(pace_now_ns() - time_ns) < (int64_t)duration_ns;
}

/* Return true, and let no step begin, if nothing was drained for `linger_ns` and no
 * thread is inside a step. One that is waits for its grant, as programs do, until the
 * policy grants or the lease ends, and renews the time in the page; or it waits for the
 * storage. */
static bool may_end(uint64_t linger_ns)
{
    int none = 0;
    if (is_within(LOAD(drained_at_ns), linger_ns))
        return false;
    if (atomic_compare_exchange_strong(&steps_under_way, &none, INT_MIN))
        return true;
    uint64_t waited_ns = LOAD(attached_page->classes[CLASS_DRAIN].last_active_ns);
    return !is_within(waited_ns, STUCK_NS) && !is_within(LOAD(drained_at_ns), STUCK_NS);
}

/* --- Threads beside a job ------------------------------------------------------- */

/* Number of threads that drain, the first one included; 0: not yet known. */
static _Atomic unsigned drain_threads;

/* True unless a thread has found nothing to drain when it last looked. */
static _Atomic bool is_busy[DRAIN_THREADS];

static bool has_staged(struct balance now)
{
    return now.drained != now.absorbed;
}

/* Drain the journals of one thread once, and sleep. */
static void drain_own_journals(unsigned thread, uint64_t look_ns)
{
    STORE(is_busy[thread], true);
    enum drain_result result =
        for_each_journal(counted_step, attached_page_id, thread, LOAD(drain_threads));
    STORE(is_busy[thread], result != DRAIN_NOTHING);
    if (result != DRAIN_DONE)
        sleep_ns(result == DRAIN_KEPT ? RETRY_NS : look_ns);
}

static void *drain_forever(void *thread)
{
    const uint64_t SELDOM_NS = 4 * LOOK_NS; /* often, the first thread has all of it */
    for (;;) {
        if (LOAD(drain_threads) > 0 && has_staged(read_balance()))
            drain_own_journals((unsigned)(uintptr_t)thread, SELDOM_NS);
        else
            sleep_ns(SELDOM_NS);
    }
    return NULL;
}

/* Start the threads beside the first one. A limit of the user or of the job may leave
 * fewer: those that there are drain all journals. */
static void start_threads(void)
{
    pthread_t started;
    uintptr_t thread = 1;
    for (; thread < DRAIN_THREADS; thread++) {
        STORE(is_busy[thread], true);
        if (pthread_create(&started, NULL, drain_forever, (void *)thread) != 0) {
            STORE(is_busy[thread], false);
            break;
        }
        pthread_detach(started);
    }
    STORE(drain_threads, (unsigned)thread);
}

static bool is_any_busy(void)
{
    for (int thread = 0; thread < DRAIN_THREADS; thread++)
        if (LOAD(is_busy[thread]))
            return true;
    return false;
}

/* Drain beside the job until nothing was drained for `linger_ns`. */
static void drain_beside(uint64_t linger_ns)
{
    struct balance before = {0, 0, 0};
    STORE(drained_at_ns, pace_now_ns());
    start_threads();
    while (!may_end(linger_ns)) {
        struct balance now = read_balance();
        STORE(attached_page->classes[CLASS_DRAIN].heartbeat_ns, now.since_ns);
        if (has_staged(now))
            drain_own_journals(0, LOOK_NS);
        else
            sleep_ns(LOOK_NS);
        if (has_staged(now) && !is_any_busy())
            correct_page(&before, now);
    }
}

/* --- Journals that a person has named --------------------------------------------- */

/* Read a name from standard input, up to a zero byte; false at the end. A name that
 * is too long is cut, and then has no zero byte. */
static bool read_name(char *name, size_t room)
{
    for (size_t length = 0;;) {
        char sign;
        long size = raw_call(SYS_read, 0, (long)&sign, 1, 0, 0, 0);
        if (size == -EINTR)
            continue;
        if (size != 1)
            return false;
        if (length < room)
            name[length++] = sign;
        if (sign == '\0')
            return true;
    }
}

/* Answer with 0 or an error number; false if no process reads the answers. */
static bool answer(int error)
{
    char line[24];
    const char *end = line + sizeof line;
    char *to = text_put(text_put_decimal(line, end, (uint64_t)error), end, "\n");
    return raw_call(SYS_write, 1, (long)line, to - line, 0, 0, 0) == to - line;
}

/* Drain the journals whose names come on standard input, in this order, and answer
 * on standard output. Names are relative to the folder; a zero byte ends each. */
static void drain_named(unsigned limit_ms)
{
    char path[JOURNAL_NAME_BYTES];
    char *end = text_put(path, path + sizeof path, stage_settings.folder);
    end = text_put(end, path + sizeof path, "/");
    size_t room = (size_t)(path + sizeof path - end);
    int error;
    do {
        end[room - 1] = '\0';
        if (!read_name(end, room))
            return;
        error = end[room - 1] == '\0' ? -foreign_drain_on_request(path, limit_ms)
                                      : ENAMETOOLONG;
    } while (answer(error));
}

/* --- The start ---------------------------------------------------------------- */

/* Join the cgroups of the job, and close their descriptors. */
static bool join_cgroups(void)
{
    const char *text = secure_getenv("PENSTOCK_DRAIN_CGROUPS");
    while (text != NULL && *text != '\0') {
        char *end;
        long fd = strtol(text, &end, 10);
        if (end == text || raw_call(SYS_write, fd, (long)"0", 1, 0, 0, 0) != 1)
            return false;
        raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
        text = *end == ',' ? end + 1 : end;
    }
    return true;
}

/* Become the user for whom journals are drained; there is one thread only. */
static bool become_user(void)
{
    const char *text = secure_getenv("PENSTOCK_DRAIN_USER");
    if (text == NULL)
        return true;
    char *end;
    uint64_t user = strtoull(text, &end, 10);
    /* The greatest number would mean: no change. */
    if (*text < '0' || *text > '9' || *end != '\0' || user >= UINT32_MAX)
        return false;
    return raw_call(SYS_setresuid, (long)user, (long)user, (long)user, 0, 0, 0) == 0;
}

void stage_confine_drainer(void)
{
    if (secure_getenv("PENSTOCK_DRAIN") == NULL)
        return;
    if (!join_cgroups() || !become_user() ||
        raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) != 0 ||
        raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0) != 0)
        raw_call(SYS_exit_group, 1, 0, 0, 0, 0, 0);
}

/* Read DEVICE:INODE; without the variable: 0, any page. */
static void read_place(uint64_t page[2])
{
    const char *text = secure_getenv("PENSTOCK_DRAIN_OF");
    char *end = NULL;
    page[0] = text != NULL ? strtoull(text, &end, 10) : 0;
    page[1] = end != NULL && *end == ':' ? strtoull(end + 1, NULL, 10) : 0;
}

void stage_drain_if_asked(void)
{
    const char *text = secure_getenv("PENSTOCK_DRAIN");
    if (text == NULL)
        return;
    uint64_t page[2];
    read_place(page);
    prctl(PR_SET_NAME, "penstock-drain");
    /* The agent may have raised its priority; this process is the user's. */
    if (getpriority(PRIO_PROCESS, 0) < 0)
        setpriority(PRIO_PROCESS, 0, 0);
    bool has_page = attached_page_id[1] != 0;
    uint64_t limit_ms = strtoull(text, NULL, 10);
    if (stage_is_ready() && secure_getenv("PENSTOCK_DRAIN_NAMED") != NULL)
        drain_named((unsigned)limit_ms);
    else if (stage_is_ready() && has_page)
        drain_beside(limit_ms * UINT64_C(1000000));
    else if (stage_is_ready() && secure_getenv("PENSTOCK_PAGE") == NULL)
        for_each_journal(secure_getenv("PENSTOCK_DRAIN_PARTS") != NULL
                             ? foreign_merge_part
                             : foreign_drain_ended,
                         page, 0, 1);
    raw_call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}
