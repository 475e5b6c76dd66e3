/* SPDX-License-Identifier: MIT
 *
 * Start-up: read the environment and map the page.
 *
 * PENSTOCK_PAGE        path of the page
 * PENSTOCK_CONTROLLED  controlled prefixes: absolute, resolved, separated by colons
 * PENSTOCK_DISABLE     if set and not "0", nothing is controlled
 * PENSTOCK_DRAIN       makes this process a drainer (stage_drainer.c)
 *
 * Nothing here waits. If the page is missing, of another size or version, or if the
 * program runs with other rights than its caller (AT_SECURE), there is no page and
 * every call passes through.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "shim.h"

struct penstock_page *attached_page;
uint64_t attached_page_id[2];
atomic_bool seccomp_active;

/* Used where files are staged without a page. Its mode is MODE_OFF: no counting. */
static struct penstock_page empty_page;

static bool is_disabled(void)
{
    const char *value = secure_getenv("PENSTOCK_DISABLE");
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

static bool has_page_size(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_size == PAGE_SIZE;
}

static struct penstock_page *map_page(int fd)
{
    struct stat status;
    if (raw_call(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) != 0 ||
        !has_page_size(&status))
        return NULL;
    void *page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return NULL;
    attached_page_id[0] = status.st_dev;
    attached_page_id[1] = status.st_ino;
    return page;
}

static bool has_our_version(struct penstock_page *page)
{
    return LOAD(page->magic) == PAGE_MAGIC && page->version == PAGE_VERSION &&
           page->size == PAGE_SIZE;
}

/* Map the page at `path`; NULL if it is no page of this version. */
static struct penstock_page *attach(const char *path)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    if (fd < 0)
        return NULL;
    struct penstock_page *page = map_page(fd);
    raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    if (page == NULL || has_our_version(page))
        return page;
    munmap(page, PAGE_SIZE);
    attached_page_id[0] = attached_page_id[1] = 0;
    return NULL;
}

void attach_empty_page(void)
{
    if (attached_page == NULL)
        attached_page = &empty_page;
}

__attribute__((constructor)) static void start_library(void)
{
    int kept_errno = errno;
    real_resolve();
    const char *path = secure_getenv("PENSTOCK_PAGE");
    identity_claim_table();
    pthread_atfork(NULL, NULL, identity_claim_table);
    if (!is_disabled()) {
        identity_set_prefixes(secure_getenv("PENSTOCK_CONTROLLED"));
        attached_page = path != NULL ? attach(path) : NULL;
        if (attached_page != NULL)
            ADD(attached_page->attached_processes, 1);
        stage_start();
        stage_drain_if_asked();
    }
    errno = kept_errno;
}
