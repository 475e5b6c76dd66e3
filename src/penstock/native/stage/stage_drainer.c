/* SPDX-License-Identifier: MIT
 *
 * The drainer of a job: a process of its own, started by the agent, that drains the
 * job's journals beside the programs that fill them. It draws on the job's page, so that
 * drains are charged, paced and counted as if the programs had made them, and it drains
 * no other job's journals. Programs need it not: whoever must drain does.
 *
 * It is any program under the library that finds PENSTOCK_DRAIN in its environment: it
 * drains, until nothing was drained for so many milliseconds, and never begins. Without a
 * page it drains once what programs that have ended have left behind, unpaced: those of
 * the page whose device and inode PENSTOCK_DRAIN_OF says, or all.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "stage_slots.h"

/* Between two looks; and after a look in which something could not be drained. */
static const uint64_t LOOK_NS = 5000000;
static const uint64_t RETRY_NS = 1000000000;

static void rest(uint64_t duration_ns)
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

/* Do something with every journal in the folder; return the most that came of it. */
static enum visited for_all(enum visited (*act)(const char *name,
                                                const uint64_t page[2]),
                            const uint64_t page[2])
{
    enum visited most = VISITED_NOTHING;
    char path[JOURNAL_NAME];
    size_t length = strlen(stage_settings.folder);
    DIR *folder = opendir(stage_settings.folder);
    if (folder == NULL)
        return VISITED_KEPT;
    memcpy(path, stage_settings.folder, length);
    path[length++] = '/';
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t room = strlen(entry->d_name) + 1;
        if (!is_journal(entry->d_name) || length + room > sizeof path)
            continue;
        memcpy(path + length, entry->d_name, room);
        enum visited visited = act(path, page);
        most = visited > most ? visited : most;
    }
    closedir(folder);
    return most;
}

/* What the page says is staged. */
struct balance {
    uint64_t drained;
    uint64_t absorbed;
    uint64_t since_ns; /* it was so for the first time */
};

static struct balance read_balance(void)
{
    struct page_staging *page = &attached_page->staging;
    uint64_t drained = atomic_load(&page->drained_bytes);
    return (struct balance){drained, atomic_load(&page->absorbed_bytes), pace_now_ns()};
}

/* What somebody else has drained, who has not our page, is missing in it; and what a
 * program has staged that was killed before it could count. The page is right again once
 * no journal has anything and it has not changed for a while. */
static void correct(struct balance *before, struct balance now)
{
    bool whole = LOAD(attached_page->staging.folder_state) == FOLDER_KNOWN;
    if (now.drained != before->drained || now.absorbed != before->absorbed)
        *before = now;
    else if (whole && now.since_ns - before->since_ns > RETRY_NS)
        atomic_compare_exchange_strong(&attached_page->staging.drained_bytes,
                                       &now.drained, now.absorbed);
}

/* Drain until nothing was drained for so long. */
static void drain_beside(uint64_t linger_ns)
{
    struct balance before = {0, 0, 0};
    for (uint64_t busy = pace_now_ns(); pace_now_ns() - busy < linger_ns;) {
        struct balance now = read_balance();
        enum visited visited = VISITED_NOTHING;
        STORE(attached_page->classes[CLASS_DRAIN].heartbeat_ns, now.since_ns);
        if (now.drained != now.absorbed)
            visited = for_all(foreign_visit, attached_page_id);
        if (visited == VISITED_NOTHING && now.drained != now.absorbed)
            correct(&before, now);
        if (visited == VISITED_DRAINED)
            busy = pace_now_ns();
        else
            rest(visited == VISITED_KEPT ? RETRY_NS : LOOK_NS);
    }
}

/* DEVICE:INODE; nothing: of any page. */
static void read_place(uint64_t page[2])
{
    const char *text = secure_getenv("PENSTOCK_DRAIN_OF");
    char *end = NULL;
    page[0] = text != NULL ? strtoull(text, &end, 10) : 0;
    page[1] = end != NULL && *end == ':' ? strtoull(end + 1, NULL, 10) : 0;
}

void stage_drain_if_asked(void)
{
    const char *linger_ms = secure_getenv("PENSTOCK_DRAIN");
    if (linger_ms == NULL)
        return;
    uint64_t page[2];
    read_place(page);
    prctl(PR_SET_NAME, "penstock-drain");
    /* The agent may go before others; this is the user's. */
    if (getpriority(PRIO_PROCESS, 0) < 0)
        setpriority(PRIO_PROCESS, 0, 0);
    bool has_page = attached_page_id[1] != 0;
    if (is_ready() && has_page)
        drain_beside(strtoull(linger_ms, NULL, 10) * UINT64_C(1000000));
    else if (is_ready() && secure_getenv("PENSTOCK_PAGE") == NULL)
        for_all(foreign_adopt, page);
    raw_call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}
