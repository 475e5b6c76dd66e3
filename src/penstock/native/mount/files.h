/* SPDX-License-Identifier: MIT
 *
 * An open file of a program. It belongs to one application from open() to close(),
 * because later requests may carry no process.
 */
#ifndef PENSTOCK_FILES_H
#define PENSTOCK_FILES_H

#include "mount.h"

struct open_file {
    int fd;
    int application;
    struct inode *inode;
    uid_t owner; /* whose budget it counts in */
};

static inline struct open_file *open_file_of(const struct fuse_file_info *info)
{
    return (struct open_file *)info->fh;
}

#endif
