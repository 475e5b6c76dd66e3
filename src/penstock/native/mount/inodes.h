/* SPDX-License-Identifier: MIT
 *
 * Table of the files that the kernel knows.
 *
 * A file is identified by (device, inode number), so that two names of one file are one
 * inode. It is reached by its parent folder and its name, as the kernel looked it up
 * last. When something needs a descriptor, the file is opened with O_PATH, checked
 * against (device, inode number), and kept open; if too many descriptors are open,
 * those that have not been used for longest are closed again. A file that has lost its
 * name while a program has it open stays open: its name cannot lead to it any more.
 *
 * If the name leads to another file (somebody changed the backing folder), the answer
 * is ESTALE. The kernel then looks the path up again.
 *
 * The kernel counts its look-ups of each inode and tells later how many it forgets. An
 * inode without look-ups and without children in the table is freed.
 */
#ifndef PENSTOCK_INODES_H
#define PENSTOCK_INODES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct inode {
    struct inode *next;          /* in its bucket; valid unless `unhashed` */
    struct inode *newer, *older; /* ring of all inodes with a descriptor */
    struct inode *parent;        /* NULL: the mounted folder */
    char *name;
    dev_t device;
    ino_t number;      /* on the backing file system */
    ino_t shown;       /* number that programs see */
    mode_t type;       /* S_IFMT part of the mode */
    int fd;            /* O_PATH; -1: not open */
    uint64_t lookups;  /* of the kernel */
    uint32_t children; /* inodes that have this one as parent */
    uint32_t users;    /* threads that use `fd` */
    uint32_t opens;    /* open files of programs */
    bool used;         /* since the last search for descriptors to close */
    bool unhashed;     /* deleted: its number may soon be that of another file */
    /* The application whose metadata requests came last to this folder, and when
     * another one's came (operations.c). */
    int application;
    double shared_s;
};

struct inodes {
    pthread_mutex_t mutex;
    struct inode root;
    struct inode **buckets;
    size_t size; /* number of buckets, a power of two */
    size_t count;
    struct inode *hand; /* of the ring */
    size_t fds, max_fds;
    ino_t foreign; /* last shown number of a file on another device */
    /* Removals and renamings: how many are under way, and how many have ended. */
    _Atomic uint64_t changing, changed;
};

/* Take over `root_fd`. Return 0 or an error number. */
int inodes_init(struct inodes *table, int root_fd, size_t max_fds);

/* Close all descriptors and free all inodes. */
void inodes_free(struct inodes *table);

/* Count a look-up of the file with this name and status; set st_ino to the number that
 * programs see. Return NULL if memory is short. */
struct inode *inodes_look_up(struct inodes *table, struct inode *parent,
                             const char *name, struct stat *status);

/* Subtract look-ups, and free an inode that nobody needs. */
void inodes_forget(struct inodes *table, struct inode *inode, uint64_t lookups);

/* Return the O_PATH descriptor of an inode, or minus an error number. The descriptor is
 * valid until inodes_done(). */
int inodes_use(struct inodes *table, struct inode *inode);
void inodes_done(struct inodes *table, struct inode *inode);

/* Get the status of an inode, as programs see it. Return 0 or an error number. */
int inodes_stat(struct inodes *table, struct inode *inode, struct stat *status);

/* Set st_ino to the number that programs see. */
void inodes_show(const struct inode *inode, struct stat *status);

/* Open a file for reading or writing. Return a descriptor or minus an error number. */
int inodes_open(struct inodes *table, struct inode *inode, int flags);

/* Count an open file of programs, whose descriptor is `file`. If a name was removed
 * while it was opened, its own name may not lead to it any more: then it stays open.
 * `before` is from inodes_before_open(), which comes before the file is opened. */
uint64_t inodes_before_open(const struct inodes *table);
void inodes_opened(struct inodes *table, struct inode *inode, int file,
                   uint64_t before);
void inodes_closed(struct inodes *table, struct inode *inode);

/* Call these before and after names are removed or renamed. */
void inodes_begin_change(struct inodes *table);
void inodes_end_change(struct inodes *table);

/* Call before a name is removed. Return the inode of the name if its last name goes,
 * else NULL. It stays open if a program has it open. inodes_after_removal() follows. */
struct inode *inodes_before_removal(struct inodes *table, int parent_fd,
                                    const char *name);

/* Record whether the name was removed; `inode` is from inodes_before_removal(). */
void inodes_after_removal(struct inodes *table, struct inode *inode, bool removed);

/* Record that a file has a new name, if it is in the table. */
void inodes_renamed(struct inodes *table, struct inode *parent, int parent_fd,
                    const char *name);

/* Write the path of an inode, or of a name in it if `name` is not NULL, relative to the
 * mounted folder and with a leading "/". If the buffer is too small, names at the end
 * are left out: a path never begins in the middle. */
void inodes_path(struct inodes *table, struct inode *inode, const char *name,
                 char *path, size_t size);

#endif
