/* SPDX-License-Identifier: MIT
 *
 * The journal of one staged file: data that were written and are not in the file yet.
 *
 * A journal is a file in the staging folder, named by the device and the inode of the
 * staged file: a header of JOURNAL_HEADER_BYTES, which all users map, and a ring of
 * `capacity` bytes. Positions in the log only grow. The byte at position p lies in the
 * ring at (p - base) mod capacity; `base` changes only while the log is empty. A record
 * begins at a multiple of RECORD_ALIGN_BYTES, never crosses the end of the ring, and
 * never changes once it is committed:
 *
 *     append   write head and data of the record behind `appended`, then store the new
 *              `appended`: this one store is the commit
 *     drain    write the records from `drained` on to the file, in order, then store
 *              the new `drained`: doing it twice does no harm
 *     free     sync the file if that was promised, then store `drained` as `freed`:
 *              the ring can be used again up to there
 *
 * The ring is a part of the journal, or another file, the *part*: the data of a file
 * whose job has new storage targets go to a part on these targets. The part has the
 * layout of a journal; its header is not used. It is removed before the journal.
 *
 * The targets of a part may be away for a time after the death of its writer, and the
 * file may be written meanwhile, on any node. So a process that is about to merge such
 * a part notes the time of the last change of the file before it looks at the part, in
 * `file_changed_ns`. If the file has another time before the first step, its data may
 * be newer than those in the part, and the journal is put aside.
 *
 * One process appends: it holds the lock LOCK_LIFE as long as it lives. A process that
 * drains holds LOCK_DRAIN. Both are locks of open file descriptions: the kernel
 * releases them when their holder dies. penstock/live/staging/journal.py has the same
 * layout; a test compares the two.
 */
#ifndef PENSTOCK_JOURNAL_H
#define PENSTOCK_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_MAGIC UINT64_C(0x6c616e72756f6a70) /* "pjournal" */
#define RECORD_MAGIC UINT64_C(0x64726f6365727021)  /* "!precord" */
#define JOURNAL_VERSION 1u
#define JOURNAL_HEADER_BYTES 4096u
#define JOURNAL_PATH_BYTES 3072u
#define PART_PATH_BYTES 640u
#define JOURNAL_FAILED ".failed" /* ends the name of a journal that was put aside */
#define RECORD_ALIGN_BYTES 64u
/* The most data that one record, or one step of a drain, has. */
#define RECORD_MAX_BYTES (UINT64_C(4) << 20)

enum { LOCK_DRAIN = 0, LOCK_LIFE = 1 };

enum journal_flag {
    /* Another process uses the file: the writer stages it no longer. */
    JOURNAL_WRITE_THROUGH = 1,
    /* The program wants to be called before a drain. While it lives it drains itself;
     * only a process that opens the file drains it too. */
    JOURNAL_CALLS_BACK = 4,
    /* The journal was put aside after an error: drains that have begun stop. */
    JOURNAL_PUT_ASIDE = 8,
};

struct journal_record {
    uint64_t mark;     /* RECORD_MAGIC ^ position: differs from an older record here */
    uint64_t sequence; /* 1, 2, ... over the life of the journal */
    uint64_t offset;   /* in the file */
    uint64_t length;   /* of the data that follow (bytes) */
    uint64_t checksum; /* CRC-32 of the data, where the journal is `checked` */
};

struct journal_header {
    uint64_t magic;
    uint32_t version;
    uint32_t checked; /* on storage that survives the machine: records have checksums */
    uint64_t capacity; /* of the ring (bytes) */
    uint64_t device;   /* of the file, as stat gives it */
    uint64_t inode;
    uint64_t birth_ns;  /* time of birth of the file; 0: not known */
    uint64_t boot[2];   /* number of this boot: later devices may have other numbers */
    uint64_t process;   /* the writer */
    uint64_t started;   /* when the writer started (clock ticks after boot) */
    uint32_t durable;   /* the file is synced before the ring is freed */
    uint32_t partition; /* number of the targets of the part; 0: there is no part */
    uint64_t page[2];   /* device and inode of the page of the job */
    uint64_t part_inode;
    uint64_t unused[2];

    _Atomic uint64_t base;
    _Atomic uint64_t appended;
    _Atomic uint64_t sequence; /* of the last record */
    _Atomic uint64_t end;      /* offset in the file where the farthest record ends */
    _Atomic uint32_t flags;
    _Atomic uint32_t error; /* errno of the last drain; 0: it succeeded */
    uint64_t unused_writer[3];

    _Atomic uint64_t drained;
    _Atomic uint64_t freed;
    _Atomic uint64_t drained_bytes; /* data drained over the life of the journal */
    /* Of a journal with a part, after the death of its writer: when the file was last
     * changed, as noted before the part was opened; 0: not noted. FILE_MERGES: the
     * merge has begun, and may have changed it. */
    _Atomic uint64_t file_changed_ns;
    /* The process whose merge FILE_MERGES is about, and when it started, as above. */
    _Atomic uint64_t merger, merger_started;
    uint64_t unused_drainer[2];

    char part[PART_PATH_BYTES]; /* path of the part */
    char padding[128];
    char path[JOURNAL_PATH_BYTES]; /* path of the file when the journal was made */
};

_Static_assert(sizeof(struct journal_header) == JOURNAL_HEADER_BYTES, "one page");
_Static_assert(sizeof(struct journal_record) <= RECORD_ALIGN_BYTES,
               "a head fits anywhere");

enum { FILE_MERGES = 1 };

/* A journal that this process has open and mapped. */
struct journal {
    int fd;   /* -1: not open */
    int part; /* descriptor of the part; -1: the ring is in the journal */
    struct journal_header *header;
    /* Mapped read-only; NULL: the journal is empty, and its part was removed. */
    const char *ring;
    /* Bytes of the ring that are mapped. Header and ring are the memory of whoever owns
     * the journal: words of them are read once, then checked, then used. */
    uint64_t capacity;
    bool is_failed; /* opened by its name with ".failed" */
};

/* Identity of the regular file that a journal belongs to. */
struct staged_file {
    uint64_t device;
    uint64_t inode;
    uint64_t birth_ns;
    char path[JOURNAL_PATH_BYTES];
};

/* Settings of a new journal. */
struct journal_terms {
    const char *folder;
    uint64_t capacity;
    uint64_t process;
    uint64_t started;
    uint64_t boot[2];
    uint64_t page[2];
    uint32_t partition; /* 0: the ring is in the journal */
    const char *part_folder;
    bool checked;
    bool durable;
};

enum { JOURNAL_NAME_BYTES = 1200 };

/* Write the path of the journal of (device, inode) in `folder`; false: too long. */
bool journal_name(char name[JOURNAL_NAME_BYTES], const char *folder, uint64_t device,
                  uint64_t inode);

/* Make a journal and take LOCK_LIFE; 0 or -errno (-EEXIST: there is one). */
int journal_create(struct journal *, const struct journal_terms *,
                   const struct staged_file *);

/* Map the header of the journal that has this name; 0 or -errno (-EPROTO: of another
 * version; -EPERM: of another user). */
int journal_open_header(struct journal *, const char *name);

/* Map the ring of a journal whose header is mapped; 0 or -errno (-EPROTO: it is
 * damaged; -EIO: its part cannot be read now, or is not there). */
int journal_open_ring(struct journal *);

/* Unmap and close the journal; this process loses its locks. */
void journal_close(struct journal *);

bool journal_is_empty(const struct journal *);

/* Return true if the data are in a part. */
bool journal_has_part(const struct journal *);

/* Sync the journal and its part; 0 or -errno. */
int journal_sync(const struct journal *);

/* Commit up to `size` bytes at `data`, to be written at `offset` of the file. Returns
 * how many, 0 if the ring is full, or -errno (nothing was committed). The caller sees
 * to it that one thread appends at a time. */
int64_t journal_append(struct journal *, const void *data, uint64_t size,
                       uint64_t offset);

/* Return the data bytes that the next step of a drain would write: one record, or more
 * up to `most`; 0: there is nothing to drain. */
uint64_t journal_next(const struct journal *, uint64_t most);

/* Write the next records to `file`: one, or more up to `most` bytes. The caller holds
 * LOCK_DRAIN. Returns the data bytes or -errno (-EUCLEAN: the next record is damaged;
 * -ECANCELED: the journal was put aside, and the file may have been written since. A
 * journal that was opened by its name with ".failed" is drained all the same). */
int64_t journal_step(struct journal *, int file, uint64_t most);

/* Free the drained part of the ring; sync the file before if that was promised. The
 * caller holds LOCK_DRAIN, so that `freed` never goes back. 0 or -errno. */
int journal_free_drained(struct journal *, int file);

/* Give the storage of the free part of the ring back to the file system. The caller
 * holds LOCK_DRAIN, and no process appends meanwhile. False: nothing was given back. */
bool journal_give_back(struct journal *);

/* Remove a journal and its part, if `name` is still its own. The caller holds
 * LOCK_DRAIN, without which no journal loses its name. */
void journal_retire(struct journal *, const char *name);

/* Put a journal aside for a person to look at: its name gets ".failed". The caller
 * holds LOCK_DRAIN. */
void journal_put_aside(struct journal *, const char *name);

/* Take a lock without waiting: 0, -EAGAIN if another process has it, or another error,
 * which will not go away. The second form returns whether the lock was taken. */
int journal_lock(struct journal *, int which);
bool journal_try_lock(struct journal *, int which);
void journal_unlock(struct journal *, int which);

/* Duplicate a descriptor to a high number that programs do not use; or -errno. */
int journal_high_fd(int fd);

/* Return true if another open file description holds the lock. */
bool journal_is_locked(struct journal *, int which);

#endif
