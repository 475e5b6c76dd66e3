/* SPDX-License-Identifier: MIT
 *
 * The settings of staging, from the environment, and the log.
 *
 * PENSTOCK_STAGING          the folder of the journals; without it nothing is staged
 * PENSTOCK_STAGING_SIZE     bytes that a journal may hold (256 MiB)
 * PENSTOCK_STAGING_WHEN     "always", or "granted" (default): while the page says so
 * PENSTOCK_STAGING_DURABLE  "file" (default), or "journal": fsync and close wait until
 *                           the journal is on storage, and not for the drain
 * PENSTOCK_STAGING_RULES    colon-separated patterns; the first that matches a file
 *                           decides: staged, or not staged if the pattern begins with
 *                           "-". A pattern without a slash is compared with the last
 *                           part of the path. Files that match none are staged.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "stage.h"
#include "stage_text.h"

#ifndef RAMFS_MAGIC
#define RAMFS_MAGIC 0x858458f6
#endif

static const uint64_t DEFAULT_BYTES = UINT64_C(256) << 20;
static const uint64_t LEAST_BYTES = UINT64_C(64) << 10;
static const uint64_t MOST_BYTES = UINT64_C(1) << 40;

struct stage_settings stage_settings;

static bool copy_text(char to[1024], const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length >= 1024)
        return false;
    memcpy(to, text ? text : "", length);
    to[length] = '\0';
    return true;
}

/* With a slash at its end, a link would be followed. */
static void strip_slashes(char *path)
{
    for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
        path[end - 1] = '\0';
}

static bool is_set_to(const char *variable, const char *word)
{
    const char *value = secure_getenv(variable);
    return value != NULL && strcmp(value, word) == 0;
}

/* --- Rules ---------------------------------------------------------------------- */

/* Match a pattern: * is any text, with slashes too; ? is one character. */
static bool matches(const char *pattern, const char *end, const char *text)
{
    const char *star = NULL, *retry = NULL;
    while (*text != '\0') {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (pattern < end && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool stage_rules_allow(const char *path)
{
    const char *last = strrchr(path, '/');
    for (const char *rule = stage_settings.rules; *rule != '\0';) {
        const char *end = rule + strcspn(rule, ":");
        bool refuses = *rule == '-';
        const char *pattern = rule + refuses;
        bool whole = memchr(pattern, '/', (size_t)(end - pattern)) != NULL;
        if (matches(pattern, end, whole || last == NULL ? path : last + 1))
            return !refuses;
        rule = end + (*end == ':');
    }
    return true;
}

/* --- The folder ----------------------------------------------------------------- */

/* Return true if the folder is in memory. Elsewhere it survives the machine, and
 * records have checksums. */
static bool is_memory(const char *folder)
{
    struct statfs status;
    if (raw_call(SYS_statfs, (long)folder, (long)&status, 0, 0, 0, 0) != 0)
        return true;
    return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

static size_t read_file(const char *path, char *text, size_t room)
{
    const int flags = O_RDONLY | O_CLOEXEC;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    long length = 0;
    if (fd >= 0)
        length = raw_call(SYS_read, fd, (long)text, (long)room - 1, 0, 0, 0);
    if (fd >= 0)
        raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

/* Return field 22 of /proc/self/stat. Field 2 may contain blanks; it ends with the
 * last ")". */
static uint64_t start_time(void)
{
    char text[1024];
    read_file("/proc/self/stat", text, sizeof text);
    const char *place = strrchr(text, ')');
    for (int i = 0; place != NULL && i < 20; i++)
        place = strchr(place + 1, ' ');
    return place != NULL ? strtoull(place, NULL, 10) : 0;
}

static void read_boot(uint64_t boot[2])
{
    char text[64];
    size_t length = read_file("/proc/sys/kernel/random/boot_id", text, sizeof text);
    for (size_t i = 0, digits = 0; i < length && digits < 32; i++) {
        const char *digit = strchr("0123456789abcdef", text[i]);
        if (text[i] == '-' || digit == NULL || *digit == '\0')
            continue;
        boot[digits / 16] =
            boot[digits / 16] << 4 | (uint64_t)(digit - "0123456789abcdef");
        digits++;
    }
}

void stage_note_process(void)
{
    struct journal_terms *terms = &stage_settings.terms;
    uint64_t process = (uint64_t)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    if (terms->process == process)
        return;
    terms->process = process;
    terms->started = start_time();
    terms->boot[0] = terms->boot[1] = 0;
    read_boot(terms->boot);
}

static uint64_t rounded(uint64_t capacity)
{
    if (capacity == 0)
        capacity = DEFAULT_BYTES;
    capacity = capacity < LEAST_BYTES ? LEAST_BYTES : capacity;
    capacity = capacity > MOST_BYTES ? MOST_BYTES : capacity;
    return capacity / 4096 * 4096;
}

/* Return 0 if a folder belongs to this user and no other user can write to it. Python
 * has the same rule in live/wire/folder.py (own_folder). */
static int check_own_folder(const char *folder, uint64_t user)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat status;
    long fd = raw_call(SYS_openat, AT_FDCWD, (long)folder, flags, 0, 0, 0);
    if (fd < 0)
        return (int)fd;
    long answer = raw_call(SYS_fstat, fd, (long)&status, 0, 0, 0, 0);
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    if (answer == 0 &&
        (status.st_uid != user || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0))
        answer = -EACCES;
    return (int)answer;
}

/* Make the folder in memory for this user alone. All users can make folders and links
 * in /dev/shm, also of this name: what exists is checked. */
static int make_memory_folder(char folder[1024], uint64_t user)
{
    const char *end = folder + 1024;
    text_put_decimal(text_put(folder, end, "/dev/shm/penstock-"), end, user);
    long answer = raw_call(SYS_mkdirat, AT_FDCWD, (long)folder, 0700, 0, 0, 0);
    return answer == -EEXIST ? 0 : (int)answer;
}

/* Wait until the process that writes the folder into the page has done so; false if it
 * takes too long: it was killed. */
static bool is_filled(struct penstock_page *page)
{
    const struct timespec nap = {0, 100000};
    for (int naps = 0; naps < 10000; naps++) {
        if (atomic_load(&page->staging.folder_state) != FOLDER_FILLED)
            return true;
        raw_call(SYS_nanosleep, (long)&nap, 0, 0, 0, 0, 0);
    }
    return false;
}

/* Write the folder into the page: the agent starts a drainer for it. A job with
 * several folders has no drainer, which could not tell how much is left to drain. */
static void publish_folder(void)
{
    struct penstock_page *page = attached_page;
    uint32_t state = FOLDER_UNKNOWN, filled = FOLDER_FILLED;
    if (page == NULL)
        return;
    if (atomic_compare_exchange_strong(&page->staging.folder_state, &state,
                                       FOLDER_FILLED)) {
        memcpy(page->folder, stage_settings.folder, sizeof page->folder);
        /* Unless another process has given up to wait, and stored SEVERAL. */
        atomic_compare_exchange_strong(&page->staging.folder_state, &filled,
                                       FOLDER_KNOWN);
    } else if (!is_filled(page) ||
               strncmp(page->folder, stage_settings.folder, FOLDER_BYTES) != 0) {
        atomic_store(&page->staging.folder_state, FOLDERS_SEVERAL);
    }
}

int stage_use(const char *folder, uint64_t capacity)
{
    struct stage_settings *settings = &stage_settings;
    uint64_t user = (uint64_t)raw_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    char chosen[1024];
    int answer = 0;
    if (folder == NULL)
        answer = make_memory_folder(chosen, user);
    else if (folder[0] != '/' || !copy_text(chosen, folder))
        answer = -EINVAL;
    if (answer == 0)
        strip_slashes(chosen);
    /* A drainer stages nothing, and looks at the owner of each journal. */
    bool drains = secure_getenv("PENSTOCK_DRAIN") != NULL;
    if (answer == 0 && !drains)
        answer = check_own_folder(chosen, user);
    if (answer != 0)
        return answer;
    memcpy(settings->folder, chosen, sizeof chosen);
    settings->terms.folder = settings->folder;
    settings->terms.capacity = rounded(capacity);
    settings->terms.checked = !is_memory(chosen);
    /* Memory is lost with the machine: nothing durable can be promised. */
    settings->terms.durable = settings->terms.durable && settings->terms.checked;
    memcpy(settings->terms.page, attached_page_id, sizeof attached_page_id);
    stage_note_process();
    if (!drains)
        publish_folder();
    return 0;
}

bool stage_read_settings(void)
{
    const char *folder = secure_getenv("PENSTOCK_STAGING");
    const char *size = secure_getenv("PENSTOCK_STAGING_SIZE");
    if (folder == NULL || folder[0] == '\0' ||
        !copy_text(stage_settings.rules, secure_getenv("PENSTOCK_STAGING_RULES")))
        return false;
    stage_settings.always = is_set_to("PENSTOCK_STAGING_WHEN", "always");
    stage_settings.terms.durable = is_set_to("PENSTOCK_STAGING_DURABLE", "journal");
    return stage_use(folder, size ? strtoull(size, NULL, 10) : 0) == 0;
}

/* --- The log -------------------------------------------------------------------- */

/* Write to the log in the staging folder, or nowhere if the folder is gone; never
 * to the output of the program. A pipe of this name must not hold it up. */
void stage_log(const char *what, const char *path, int error)
{
    char name[1100], line[JOURNAL_PATH_BYTES + 512];
    const char *end = line + sizeof line;
    struct timespec now = {0, 0};
    raw_call(SYS_clock_gettime, CLOCK_REALTIME, (long)&now, 0, 0, 0, 0);
    char *to = text_put_decimal(line, end, (uint64_t)now.tv_sec);
    to = text_put(to, end, " process ");
    to = text_put_decimal(to, end, stage_settings.terms.process);
    to = text_put(text_put(to, end, ": "), end, what);
    to = text_put(text_put(to, end, ": "), end, path);
    if (error != 0)
        to = text_put_decimal(text_put(to, end, ": error "), end, (uint64_t)error);
    to = text_put(to, end, "\n");
    if (to == NULL) /* the path is too long */
        return;
    text_put(text_put(name, name + sizeof name, stage_settings.folder),
             name + sizeof name, "/shim.log");
    const int flags =
        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)name, flags, 0600, 0, 0);
    if (fd < 0)
        return;
    raw_call(SYS_write, fd, (long)line, to - line, 0, 0, 0);
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
}
