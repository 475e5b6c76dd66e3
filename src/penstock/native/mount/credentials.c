/* SPDX-License-Identifier: MIT */
#include "credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_root;
static uint64_t permitted; /* capabilities of the process */

/* State of this thread. */
static __thread bool has_own_umask;
static __thread mode_t present_umask;
static __thread bool removes_set_id;

static void set_capabilities(uint64_t effective)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {
        {(uint32_t)effective, (uint32_t)permitted, 0},
        {(uint32_t)(effective >> 32), (uint32_t)(permitted >> 32), 0},
    };
    syscall(SYS_capset, &header, data);
}

void credentials_init(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
    is_root = !geteuid() && !syscall(SYS_capget, &header, data);
    permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/* Give this thread a umask of its own, and set it. */
static void set_umask(mode_t mask)
{
    if (!has_own_umask) {
        /* If this fails, the umask of the whole process changes for a moment. */
        has_own_umask = !unshare(CLONE_FS);
        present_umask = umask(mask);
    }
    if (present_umask != mask || !has_own_umask)
        umask(mask);
    present_umask = mask;
}

static int make(const struct creation *file)
{
    int result;
    if (file->open_flags)
        result = openat(file->parent_fd, file->name, file->open_flags, file->mode);
    else if (file->target)
        result = symlinkat(file->target, file->parent_fd, file->name);
    else if (S_ISDIR(file->mode))
        result = mkdirat(file->parent_fd, file->name, file->mode & ~(mode_t)S_IFMT);
    else
        result = mknodat(file->parent_fd, file->name, file->mode, file->device);
    return result < 0 ? -errno : result;
}

/* Create a file as root, and give it to its owner afterwards. */
static int make_and_give(const struct creator *creator, const struct creation *file)
{
    struct stat folder;
    int result = make(file);
    if (result < 0)
        return result;
    bool inherits = !fstat(file->parent_fd, &folder) && folder.st_mode & S_ISGID;
    gid_t gid = inherits ? (gid_t)-1 : creator->gid;
    if (!fchownat(file->parent_fd, file->name, creator->uid, gid, AT_SYMLINK_NOFOLLOW))
        return result;
    int error = errno;
    if (file->open_flags)
        close(result);
    unlinkat(file->parent_fd, file->name, S_ISDIR(file->mode) ? AT_REMOVEDIR : 0);
    return -error;
}

int create_for(const struct creator *creator, const struct creation *file)
{
    set_umask(creator->umask);
    if (!is_root || (!creator->uid && !creator->gid))
        return make(file);
    syscall(SYS_setfsgid, creator->gid);
    syscall(SYS_setfsuid, creator->uid);
    /* setfsuid has taken away the rights over other users' files. */
    set_capabilities(permitted);
    int result = make(file);
    syscall(SYS_setfsuid, 0);
    syscall(SYS_setfsgid, 0);
    removes_set_id = false;
    /* A backing file system that checks permissions itself does not know the
     * supplementary groups of the program. */
    if (result == -EACCES || result == -EPERM)
        result = make_and_give(creator, file);
    return result;
}

void set_removal_of_set_id(bool removal)
{
    if (!is_root || removes_set_id == removal)
        return;
    removes_set_id = removal;
    set_capabilities(removal ? permitted & ~(UINT64_C(1) << CAP_FSETID) : permitted);
}
