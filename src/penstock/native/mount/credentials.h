/* SPDX-License-Identifier: MIT
 *
 * The rights with which a thread calls the backing file system.
 *
 * The kernel has checked the permissions of the program (default_permissions), so a
 * mount of root calls with all rights, with two exceptions. A new file is created with
 * the user, group and umask of the program, so that it belongs to the program and
 * default access control lists and set-group-ID folders work as always. And a write
 * that must remove set-user-ID bits is made without the right to keep them
 * (CAP_FSETID).
 *
 * All of this belongs to the calling thread, not to the process. A mount of another
 * user has one user only, and nothing to change.
 */
#ifndef PENSTOCK_CREDENTIALS_H
#define PENSTOCK_CREDENTIALS_H

#include <stdbool.h>
#include <sys/types.h>

/* A file to be created. */
struct creation {
    int parent_fd;
    const char *name;
    mode_t mode;
    dev_t device;       /* of mknod */
    const char *target; /* of a symbolic link, else NULL */
    int open_flags;     /* of a file to be opened; 0: do not open */
};

/* The program that creates a file. */
struct creator {
    uid_t uid;
    gid_t gid;
    mode_t umask;
};

/* Read the rights of the process; call this once, before all others. */
void credentials_init(void);

/* Create a file for a program. Return a descriptor of an opened file, 0 for all others,
 * or minus an error number. */
int create_for(const struct creator *creator, const struct creation *file);

/* Choose whether the next calls of this thread remove set-user-ID bits. */
void set_removal_of_set_id(bool removal);

#endif
