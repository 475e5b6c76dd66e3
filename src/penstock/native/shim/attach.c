/* SPDX-License-Identifier: MIT
 *
 * Finding the page when the process starts.
 *
 * PENSTOCK_PAGE        path of the page
 * PENSTOCK_CONTROLLED  colon-separated, absolute, resolved: what is controlled
 * PENSTOCK_DISABLE     set and not "0": nothing is
 * PENSTOCK_DRAIN       see stage_drainer.c
 *
 * Nothing here waits: the page is opened, looked at and mapped. If anything is wrong
 * with it, or if the program runs with other rights than its caller (AT_SECURE), there
 * is no page and every call passes through.
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

/* In place of a page where there is none but files are staged: nothing is counted. */
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

static struct penstock_page *map(int fd)
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

static struct penstock_page *attach(const char *path)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    if (fd < 0)
        return NULL;
    struct penstock_page *page = map(fd);
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

__attribute__((constructor)) static void start(void)
{
    int kept = errno;
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
    errno = kept;
}
