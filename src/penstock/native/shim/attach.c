/* SPDX-License-Identifier: MIT
 *
 * Start-up: read the environment and map the page, and the bell that it refers to.
 *
 * PENSTOCK_PAGE        path of the page
 * PENSTOCK_CONTROLLED  controlled prefixes: absolute, resolved, separated by colons
 * PENSTOCK_DISABLE     unless empty, 0, no, false or off: nothing is controlled
 * PENSTOCK_DRAIN       makes this process a drainer (stage_drainer.c)
 *
 * Nothing here waits. If the page is missing, of another size or version, or if the
 * program runs with other rights than its caller (AT_SECURE), there is no page and
 * every call passes through. The same holds for a second copy of the library in one
 * process (libbbio_posix.so under `penstock run`): calls must not be charged or staged
 * twice.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "shim.h"
#include "stream.h"
#include "stage_text.h"

struct penstock_page *attached_page;
uint64_t attached_page_id[2];
atomic_bool seccomp_active;

/* Used where files are staged without a page. Its mode is MODE_OFF: no counting. */
static struct penstock_page empty_page;

struct penstock_bell *attached_bell;
uint32_t attached_bell_slot;
_Atomic uint64_t *attached_lease_ns = &empty_page.lease_ns;

static bool is_disabled(void)
{
    static const char *const NEGATIONS[] = {"", "0", "no", "false", "off"};
    const char *value = secure_getenv("PENSTOCK_DISABLE");
    if (value == NULL)
        return false;
    for (size_t n = 0; n < sizeof NEGATIONS / sizeof *NEGATIONS; n++)
        if (strcasecmp(value, NEGATIONS[n]) == 0)
            return false;
    return true;
}

/* Return true if another copy of the library comes first in the order of symbols. */
static bool is_second_copy(void)
{
    Dl_info first, own;
    void *symbol = dlsym(RTLD_DEFAULT, "penstock_phase_begin");
    return symbol != NULL && dladdr(symbol, &first) != 0 &&
           dladdr(&empty_page, &own) != 0 && first.dli_fbase != own.dli_fbase;
}

/* Map a regular file of exactly `size` bytes; NULL if that is not possible. */
static void *map_file(const char *path, off_t size, struct stat *status)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    if (fd < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (raw_call(SYS_fstat, fd, (long)status, 0, 0, 0, 0) == 0 &&
        S_ISREG(status->st_mode) && status->st_size == size)
        memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, fd, 0);
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool has_our_version(struct penstock_page *page)
{
    return LOAD(page->magic) == PAGE_MAGIC && page->version == PAGE_VERSION &&
           page->size == PAGE_SIZE;
}

/* Map the page at `path`; NULL if it is no page of this version. */
static struct penstock_page *attach(const char *path)
{
    struct stat status;
    struct penstock_page *page = map_file(path, PAGE_SIZE, &status);
    if (page == NULL)
        return NULL;
    if (!has_our_version(page)) {
        munmap(page, PAGE_SIZE);
        return NULL;
    }
    attached_page_id[0] = status.st_dev;
    attached_page_id[1] = status.st_ino;
    return page;
}

/* Write the path of the bell beside the page at `path`; false if there is no room. */
static bool bell_path(char *text, size_t room, const char *path, uint32_t user)
{
    const char *end = text + room, *name = strrchr(path, '/');
    size_t length = name == NULL ? 0 : (size_t)(name + 1 - path);
    if (length >= room)
        return false;
    memcpy(text, path, length);
    char *to = text_put_decimal(text + length, end, user);
    return text_put(to, end, ".bell") != NULL;
}

/* Map the bell that the attached page, at `path`, refers to. Without it the page and
 * its lease are enough. */
static void attach_bell(const char *path)
{
    char text[PATH_MAX];
    struct stat status;
    uint32_t slot = LOAD(attached_page->bell_slot);
    attached_lease_ns = &attached_page->lease_ns;
    if (slot == 0 || slot > BELL_SLOTS ||
        !bell_path(text, sizeof text, path, LOAD(attached_page->bell_user)))
        return;
    struct penstock_bell *bell = map_file(text, BELL_SIZE, &status);
    if (bell == NULL)
        return;
    if (LOAD(bell->magic) != BELL_MAGIC || bell->version != BELL_VERSION) {
        munmap(bell, BELL_SIZE);
        return;
    }
    attached_bell = bell;
    attached_bell_slot = slot;
    attached_lease_ns = &bell->lease_ns;
}

void attach_empty_page(void)
{
    if (attached_page == NULL)
        attached_page = &empty_page;
}

static void begin_in_child(void)
{
    identity_claim_table();
    cache_forget_thread();
}

__attribute__((constructor)) static void start_library(void)
{
    int kept_errno = errno;
    real_resolve();
    stage_confine_drainer();
    const char *path = secure_getenv("PENSTOCK_PAGE");
    identity_claim_table();
    pthread_atfork(NULL, NULL, begin_in_child);
    if (!is_disabled() && !is_second_copy()) {
        identity_set_prefixes(secure_getenv("PENSTOCK_CONTROLLED"));
        attached_page = path != NULL ? attach(path) : NULL;
        if (attached_page != NULL)
            attach_bell(path);
        stage_start();
        stage_drain_if_asked();
    }
    STORE(stream_quick, !LOAD(stage_enabled));
    errno = kept_errno;
}
