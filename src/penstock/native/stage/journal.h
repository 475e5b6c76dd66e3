/* SPDX-License-Identifier: MIT
 *
 * The journal of one staged file: what was written and is not in the file yet.
 *
 * A file in the staging folder, named by the device and the inode of the staged file: a
 * header of JOURNAL_HEADER bytes, mapped by all who use it, and a ring of `capacity`
 * bytes. Positions in the log only grow; the byte at position p lies in the ring at
 * (p - base) mod capacity, and `base` changes only while the log is empty. A record
 * begins at a multiple of RECORD_ALIGN, never crosses the end of the ring, and never
 * changes once it is committed:
 *
 *     append   data and head of the record are written behind `appended`, then
 *              `appended` is stored: that one store is the commit
 *     drain    records from `drained` on are written to the file, in order, then
 *              `drained` is stored: to do it twice does no harm
 *     settle   drained, and synced where that was promised; the ring is free up to it
 *
 * One process appends: it holds the lock LOCK_LIFE as long as it lives. Who drains holds
 * LOCK_DRAIN. Both are locks of open file descriptions: the kernel lets them go when
 * their holder dies. penstock/live/staging/journal.py has the same layout; a test compares them.
 */
#ifndef PENSTOCK_JOURNAL_H
#define PENSTOCK_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_MAGIC UINT64_C(0x6c616e72756f6a70) /* "pjournal" */
#define RECORD_MAGIC UINT64_C(0x64726f6365727021)  /* "!precord" */
#define JOURNAL_VERSION 1u
#define JOURNAL_HEADER 4096u
#define JOURNAL_PATH 3072u
#define JOURNAL_FAILED ".failed" /* ends the name of a journal that was put aside */
#define RECORD_ALIGN 64u
/* No record is longer: a drain goes in steps of at most this many bytes. */
#define RECORD_MAX (UINT64_C(4) << 20)

enum { LOCK_DRAIN = 0, LOCK_LIFE = 1 };

enum journal_flag {
    JOURNAL_THROUGH = 1, /* another one uses the file: what is written goes there */
    JOURNAL_ASKS = 4,    /* the program is to be called before a drain: while it lives,
                          * only it drains, and who comes to use the file */
    JOURNAL_ASIDE = 8,   /* put aside: whoever was draining it goes no further */
};

struct journal_record {
    uint64_t mark;     /* RECORD_MAGIC ^ position: not what was here a round ago */
    uint64_t sequence; /* 1, 2, ... over the life of the journal */
    uint64_t offset;   /* in the file */
    uint64_t length;   /* of the data that follow */
    uint64_t checksum; /* CRC-32 of the data, where the journal is `checked` */
};

struct journal_header {
    uint64_t magic;
    uint32_t version;
    uint32_t checked; /* on storage that survives the machine: records have checksums */
    uint64_t capacity;
    uint64_t device; /* of the file: as stat gives it */
    uint64_t inode;
    uint64_t birth_ns; /* of the file; 0: not known */
    uint64_t boot[2];  /* after a restart devices have other numbers */
    uint64_t process;  /* the writer, */
    uint64_t started;  /* in clock ticks after boot */
    uint32_t durable;  /* a drain ends with a sync of the file */
    uint32_t unused_word;
    uint64_t page[2]; /* device and inode of the page that its drains are charged to */
    uint64_t unused[3];

    _Atomic uint64_t base;
    _Atomic uint64_t appended;
    _Atomic uint64_t sequence; /* of the last record */
    _Atomic uint64_t end;      /* offset in the file behind the farthest record */
    _Atomic uint32_t flags;
    _Atomic uint32_t error; /* errno of the last drain that failed; 0: none */
    uint64_t unused_writer[3];

    _Atomic uint64_t drained;
    _Atomic uint64_t settled;
    _Atomic uint64_t drained_bytes; /* data, over the life of the journal */
    uint64_t unused_drainer[5];

    char padding[768];
    char path[JOURNAL_PATH]; /* of the file, when the journal was made */
};

_Static_assert(sizeof(struct journal_header) == JOURNAL_HEADER, "one page");
_Static_assert(sizeof(struct journal_record) <= RECORD_ALIGN, "a head fits anywhere");

/* A journal that this process has mapped. */
struct journal {
    int fd; /* -1: none */
    struct journal_header *header;
    const char *ring; /* mapped to be read */
    bool is_failed;   /* opened by the name that it got when it was put aside */
};

/* The regular file that a journal is for. */
struct staged_file {
    uint64_t device;
    uint64_t inode;
    uint64_t birth_ns;
    char path[JOURNAL_PATH];
};

/* What a new journal is like. */
struct journal_terms {
    const char *folder;
    uint64_t capacity;
    uint64_t process;
    uint64_t started;
    uint64_t boot[2];
    uint64_t page[2];
    bool checked;
    bool durable;
};

enum { JOURNAL_NAME = 1200 };

/* Write the name of the journal of (device, inode) in `folder`. */
bool journal_name(char name[JOURNAL_NAME], const char *folder, uint64_t device,
                  uint64_t inode);

/* Make a journal, locked for life; 0 or -errno (-EEXIST: there is one). */
int journal_create(struct journal *, const struct journal_terms *,
                   const struct staged_file *);

/* Map the journal that has this name; 0 or -errno (-EPROTO: of another version, -EPERM:
 * of another user). */
int journal_open(struct journal *, const char *name);

/* Unmap and close; the locks of this process go. */
void journal_close(struct journal *);

bool journal_is_empty(const struct journal *);

/* Commit up to `size` bytes at `data`, to be written at `offset` of the file. Returns
 * how many; 0: the ring is full; -errno: nothing was committed. One thread at a time. */
int64_t journal_append(struct journal *, const void *data, uint64_t size,
                       uint64_t offset);

/* Data bytes that the next step of a drain would write, one record or up to `most`;
 * 0: nothing is to be drained. */
uint64_t journal_next(const struct journal *, uint64_t most);

/* Write the next records to `file`, one or up to `most` bytes; the caller holds
 * LOCK_DRAIN. Returns the data bytes, or -errno (-EUCLEAN: what should be a record is
 * none; -ECANCELED: it was put aside, and the file may have been written since; a journal
 * that was opened by its name with ".failed" is drained all the same). */
int64_t journal_step(struct journal *, int file, uint64_t most);

/* Let the ring be used again; where promised, sync the file first. The caller holds
 * LOCK_DRAIN: what is settled never goes back. 0 or -errno. */
int journal_settle(struct journal *, int file);

/* Give back the storage of all that is settled, for a file on the same file system. The
 * caller holds LOCK_DRAIN, and nobody appends meanwhile. False: there is nothing. */
bool journal_give_back(struct journal *);

/* Remove a journal from the folder, if the name is still its own; the caller holds
 * LOCK_DRAIN, without which no journal loses its name. */
void journal_retire(struct journal *, const char *name);

/* Put a journal aside, under a name with ".failed", to be looked at by a person; the
 * same holds. */
void journal_put_aside(struct journal *, const char *name);

/* Take a lock, without waiting: 0, -EAGAIN if another has it, or another error, which
 * stays. Or ask only whether it was taken. */
int journal_lock(struct journal *, int which);
bool journal_try_lock(struct journal *, int which);
void journal_unlock(struct journal *, int which);

/* Duplicate a descriptor to a number where programs have none; or -errno. */
int high_descriptor(int fd);

/* True if another open description holds the lock. */
bool journal_is_locked(struct journal *, int which);

#endif
