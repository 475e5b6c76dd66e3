/* SPDX-License-Identifier: MIT
 *
 * Journals: made, appended to, drained. journal.h says how they are laid out.
 *
 * Only raw system calls: the wrappers must not see these, and errno stays as it is.
 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "shim.h"
#include "stage_text.h"

/* Records that one step writes at most; they are consecutive in the file too. */
enum { BATCH_RECORDS = 64 };

static long call(long number, long a, long b, long c, long d)
{
    return raw_call(number, a, b, c, d, 0, 0);
}

/* --- Names ---------------------------------------------------------------------- */

bool journal_name(char name[JOURNAL_NAME_BYTES], const char *folder, uint64_t device,
                  uint64_t inode)
{
    const char *end = name + JOURNAL_NAME_BYTES;
    char *to = text_put(text_put(name, end, folder), end, "/");
    to = text_put_hex(text_put(text_put_hex(to, end, device), end, "-"), end, inode);
    return text_put(to, end, ".journal") != NULL;
}

static _Atomic uint64_t names_made;

static bool fresh_name(char name[JOURNAL_NAME_BYTES], const struct journal_terms *terms)
{
    const char *end = name + JOURNAL_NAME_BYTES;
    char *to = text_put(text_put(name, end, terms->folder), end, "/.new-");
    to = text_put(text_put_hex(to, end, terms->process), end, "-");
    return text_put_hex(to, end, ADD(names_made, 1)) != NULL;
}

/* Write a name for a part that no process on any node has used. */
static bool part_name(char name[PART_PATH_BYTES], const struct journal_terms *terms)
{
    const uint64_t numbers[] = {terms->boot[0], terms->process, terms->started,
                                ADD(names_made, 1)};
    const char *end = name + PART_PATH_BYTES;
    char *to = text_put(text_put(name, end, terms->part_folder), end, "/.penstock");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        to = text_put_hex(text_put(to, end, "-"), end, numbers[i]);
    return text_put(to, end, ".part") != NULL;
}

/* --- Locks ---------------------------------------------------------------------- */

static struct flock lock_of(int which, short type)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
}

int journal_lock(struct journal *journal, int which)
{
    struct flock lock = lock_of(which, F_WRLCK);
    long answer = call(SYS_fcntl, journal->fd, F_OFD_SETLK, (long)&lock, 0);
    return answer == -EACCES ? -EAGAIN : (int)answer;
}

bool journal_try_lock(struct journal *journal, int which)
{
    return journal_lock(journal, which) == 0;
}

void journal_unlock(struct journal *journal, int which)
{
    struct flock lock = lock_of(which, F_UNLCK);
    call(SYS_fcntl, journal->fd, F_OFD_SETLK, (long)&lock, 0);
}

bool journal_is_locked(struct journal *journal, int which)
{
    struct flock lock = lock_of(which, F_WRLCK);
    return call(SYS_fcntl, journal->fd, F_OFD_GETLK, (long)&lock, 0) == 0 &&
           lock.l_type != F_UNLCK;
}

/* --- Making and mapping --------------------------------------------------------- */

/* Programs do not use high numbers: the kernel hands out the lowest free one. */
static int lowest_descriptor(void)
{
    struct rlimit limit = {.rlim_cur = 256};
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0);
    uint64_t most = limit.rlim_cur < KNOWN_DESCRIPTORS ? limit.rlim_cur : 65536;
    return (int)(most - most / 4);
}

int journal_high_fd(int fd)
{
    return (int)call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest_descriptor(), 0);
}

static void *map(int fd, uint64_t size, int protection, uint64_t offset)
{
    long answer =
        raw_call(SYS_mmap, 0, (long)size, protection, MAP_SHARED, fd, (long)offset);
    return answer < 0 && answer > -4096 ? NULL : (void *)answer;
}

static void unmap(struct journal *journal)
{
    if (journal->ring != NULL)
        call(SYS_munmap, (long)journal->ring, (long)journal->capacity, 0, 0);
    if (journal->header != NULL)
        call(SYS_munmap, (long)journal->header, JOURNAL_HEADER_BYTES, 0, 0);
    journal->header = NULL;
    journal->ring = NULL;
}

void journal_close(struct journal *journal)
{
    unmap(journal);
    if (journal->part >= 0)
        call(SYS_close, journal->part, 0, 0, 0);
    if (journal->fd >= 0)
        call(SYS_close, journal->fd, 0, 0, 0);
    journal->fd = journal->part = -1;
}

static int ring_fd(const struct journal *journal)
{
    return journal->part >= 0 ? journal->part : journal->fd;
}

static int map_header(struct journal *journal)
{
    journal->header = map(journal->fd, JOURNAL_HEADER_BYTES, PROT_READ | PROT_WRITE, 0);
    return journal->header ? 0 : -ENOMEM;
}

static int map_ring(struct journal *journal)
{
    journal->ring =
        map(ring_fd(journal), journal->capacity, PROT_READ, JOURNAL_HEADER_BYTES);
    return journal->ring ? 0 : -ENOMEM;
}

/* Give a new journal its size, and allocate the header's block now: otherwise a full
 * file system would kill a process that has mapped it. */
static int allocate_header(int fd, uint64_t capacity)
{
    long answer = call(SYS_fallocate, fd, 0, 0, JOURNAL_HEADER_BYTES);
    if (answer == -EOPNOTSUPP) {
        static const char empty[JOURNAL_HEADER_BYTES];
        answer = call(SYS_pwrite64, fd, (long)empty, JOURNAL_HEADER_BYTES, 0);
        answer = answer == JOURNAL_HEADER_BYTES ? 0 : answer < 0 ? answer : -ENOSPC;
    }
    if (answer == 0)
        answer = call(SYS_ftruncate, fd, (long)(JOURNAL_HEADER_BYTES + capacity), 0, 0);
    return (int)answer;
}

static void fill_header(struct journal_header *header,
                        const struct journal_terms *terms,
                        const struct staged_file *file)
{
    header->version = JOURNAL_VERSION;
    header->capacity = terms->capacity;
    header->checked = terms->checked;
    header->durable = terms->durable;
    header->process = terms->process;
    header->started = terms->started;
    header->boot[0] = terms->boot[0];
    header->boot[1] = terms->boot[1];
    header->page[0] = terms->page[0];
    header->page[1] = terms->page[1];
    header->device = file->device;
    header->inode = file->inode;
    header->birth_ns = file->birth_ns;
    memcpy(header->path, file->path, strnlen(file->path, JOURNAL_PATH_BYTES - 1));
    header->magic = JOURNAL_MAGIC;
}

static int open_fresh(const char *name)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int low = (int)call(SYS_openat, AT_FDCWD, (long)name, flags, 0600);
    if (low < 0)
        return low;
    int fd = journal_high_fd(low);
    call(SYS_close, low, 0, 0, 0);
    if (fd < 0)
        call(SYS_unlinkat, AT_FDCWD, (long)name, 0, 0);
    return fd;
}

/* Make the part. Its path is in the header first: whoever finds an unfinished journal
 * can remove the part. */
static int make_part(struct journal *journal, const struct journal_terms *terms)
{
    struct journal_header *header = journal->header;
    struct stat status;
    if (!part_name(header->part, terms))
        return -ENAMETOOLONG;
    header->partition = terms->partition;
    journal->part = open_fresh(header->part);
    if (journal->part < 0)
        return journal->part;
    long answer = raw_call(SYS_fstat, journal->part, (long)&status, 0, 0, 0, 0);
    header->part_inode = status.st_ino;
    if (answer == 0)
        answer = call(SYS_ftruncate, journal->part,
                      (long)(JOURNAL_HEADER_BYTES + terms->capacity), 0, 0);
    return (int)answer;
}

/* Remove the part, if its path leads to it. */
static void remove_part(const struct journal *journal)
{
    const struct journal_header *header = journal->header;
    struct stat status;
    if (header != NULL && header->partition != 0 &&
        call(SYS_newfstatat, AT_FDCWD, (long)header->part, (long)&status,
             AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_ino == header->part_inode)
        call(SYS_unlinkat, AT_FDCWD, (long)header->part, 0, 0);
}

/* Give the journal its name unless that is taken: it appears complete, or not at
 * all. */
static int publish_journal(const char *fresh, const char *name)
{
    long answer = raw_call(SYS_renameat2, AT_FDCWD, (long)fresh, AT_FDCWD, (long)name,
                           RENAME_NOREPLACE, 0);
    if (answer != -EINVAL && answer != -ENOSYS)
        return (int)answer;
    answer = raw_call(SYS_linkat, AT_FDCWD, (long)fresh, AT_FDCWD, (long)name, 0, 0);
    if (answer == 0)
        call(SYS_unlinkat, AT_FDCWD, (long)fresh, 0, 0);
    return (int)answer;
}

static int fill(struct journal *journal, const struct journal_terms *terms,
                const struct staged_file *file)
{
    bool apart = terms->partition != 0;
    int answer = allocate_header(journal->fd, apart ? 0 : terms->capacity);
    if (answer == 0)
        answer = map_header(journal);
    if (answer != 0)
        return answer;
    fill_header(journal->header, terms, file);
    journal->capacity = terms->capacity;
    if (apart)
        answer = make_part(journal, terms);
    if (answer == 0)
        answer = map_ring(journal);
    if (answer == 0 && !journal_try_lock(journal, LOCK_LIFE))
        answer = -ENOLCK;
    return answer;
}

int journal_create(struct journal *journal, const struct journal_terms *terms,
                   const struct staged_file *file)
{
    char fresh[JOURNAL_NAME_BYTES], name[JOURNAL_NAME_BYTES];
    *journal = (struct journal){.fd = -1, .part = -1};
    if (!fresh_name(fresh, terms) ||
        !journal_name(name, terms->folder, file->device, file->inode))
        return -ENAMETOOLONG;
    journal->fd = open_fresh(fresh);
    int answer = journal->fd < 0 ? journal->fd : fill(journal, terms, file);
    if (answer == 0)
        answer = publish_journal(fresh, name);
    if (answer != 0) {
        remove_part(journal);
        journal_close(journal);
        call(SYS_unlinkat, AT_FDCWD, (long)fresh, 0, 0);
    }
    return answer;
}

static bool is_whole(const struct journal *journal)
{
    struct stat status;
    return raw_call(SYS_fstat, ring_fd(journal), (long)&status, 0, 0, 0, 0) == 0 &&
           journal->capacity >= RECORD_ALIGN_BYTES &&
           journal->capacity % RECORD_ALIGN_BYTES == 0 &&
           (uint64_t)status.st_size >= JOURNAL_HEADER_BYTES &&
           (uint64_t)status.st_size - JOURNAL_HEADER_BYTES >= journal->capacity;
}

/* A journal decides which file is written: journals of other users are refused. */
static int check_file(int fd)
{
    struct stat status;
    long answer = raw_call(SYS_fstat, fd, (long)&status, 0, 0, 0, 0);
    if (answer != 0)
        return (int)answer;
    if (!S_ISREG(status.st_mode) || status.st_size < JOURNAL_HEADER_BYTES)
        return -EPROTO;
    return status.st_uid == (uid_t)call(SYS_geteuid, 0, 0, 0, 0) ? 0 : -EPERM;
}

static bool is_part_of(int fd, const struct journal_header *header)
{
    struct stat status;
    return raw_call(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) == 0 &&
           S_ISREG(status.st_mode) && status.st_ino == header->part_inode &&
           status.st_uid == (uid_t)call(SYS_geteuid, 0, 0, 0, 0);
}

/* Open the part. A journal that is empty needs none: the process that removed the part
 * was killed before it removed the journal. */
static int open_part(struct journal *journal)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const struct journal_header *header = journal->header;
    if (memchr(header->part, '\0', PART_PATH_BYTES) == NULL)
        return -EPROTO;
    int fd = (int)call(SYS_openat, AT_FDCWD, (long)header->part, flags, 0);
    if (fd == -ENOENT && journal_is_empty(journal))
        return 0;
    if (fd < 0)
        return -EIO;
    journal->part = fd;
    return is_part_of(fd, header) && is_whole(journal) ? 0 : -EIO;
}

int journal_open_ring(struct journal *journal)
{
    bool apart = journal_has_part(journal);
    int answer = apart ? open_part(journal) : is_whole(journal) ? 0 : -EPROTO;
    if (answer != 0 || (apart && journal->part < 0))
        return answer;
    return map_ring(journal);
}

static int examine(struct journal *journal)
{
    int answer = check_file(journal->fd);
    if (answer == 0)
        answer = map_header(journal);
    if (answer != 0)
        return answer;
    const struct journal_header *header = journal->header;
    journal->capacity = *(const volatile uint64_t *)&header->capacity;
    if (header->magic != JOURNAL_MAGIC || header->version != JOURNAL_VERSION ||
        memchr(header->path, '\0', JOURNAL_PATH_BYTES) == NULL)
        return -EPROTO;
    return 0;
}

static bool is_failed_name(const char *name)
{
    const char *suffix = strrchr(name, '.');
    return suffix != NULL && strcmp(suffix, JOURNAL_FAILED) == 0;
}

int journal_open_header(struct journal *journal, const char *name)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    *journal =
        (struct journal){.fd = -1, .part = -1, .is_failed = is_failed_name(name)};
    journal->fd = (int)call(SYS_openat, AT_FDCWD, (long)name, flags, 0);
    if (journal->fd < 0)
        return journal->fd;
    int answer = examine(journal);
    if (answer != 0)
        journal_close(journal);
    return answer;
}

/* --- Checksums ------------------------------------------------------------------ */

/* CRC-32 as in zlib, eight bytes at a time. */
static uint32_t remainders[8][256];
static atomic_bool remainders_made;

static void make_remainders(void)
{
    if (atomic_load_explicit(&remainders_made, memory_order_acquire))
        return;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++)
            rest = rest & 1 ? rest >> 1 ^ 0xedb88320u : rest >> 1;
        remainders[0][i] = rest;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++)
            remainders[k][i] =
                remainders[k - 1][i] >> 8 ^ remainders[0][remainders[k - 1][i] & 255];
    atomic_store_explicit(&remainders_made, true, memory_order_release);
}

/* Continue the checksum `crc` of the bytes before `data`; their number is a multiple of
 * eight. */
static uint32_t add_to_crc(uint32_t crc, const char *data, uint64_t size)
{
    const uint32_t (*t)[256] = remainders;
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        word ^= crc;
        crc = t[7][word & 255] ^ t[6][word >> 8 & 255] ^ t[5][word >> 16 & 255] ^
              t[4][word >> 24 & 255] ^ t[3][word >> 32 & 255] ^ t[2][word >> 40 & 255] ^
              t[1][word >> 48 & 255] ^ t[0][word >> 56];
    }
    for (; size > 0; size--, data++)
        crc = crc >> 8 ^ t[0][(crc ^ (uint8_t)*data) & 255];
    return ~crc;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Read from the ring; 0 or -EIO. A read of mapped storage that fails, or that was
 * truncated, would kill the program. */
static int read_ring(const struct journal *journal, void *to, uint64_t size,
                     uint64_t place)
{
    long moved = call(SYS_pread64, ring_fd(journal), (long)to, (long)size,
                      (long)(JOURNAL_HEADER_BYTES + place));
    return moved == (long)size ? 0 : -EIO;
}

/* Compute the checksum of data in the ring; 0 or -EIO. */
static int crc_of_ring(const struct journal *journal, uint64_t place, uint64_t size,
                       uint64_t *checksum)
{
    char data[2048];
    uint32_t crc = 0;
    make_remainders();
    for (uint64_t done = 0; done < size; done += sizeof data) {
        uint64_t length = smaller(size - done, sizeof data);
        int answer = read_ring(journal, data, length, place + done);
        if (answer != 0)
            return answer;
        crc = add_to_crc(crc, data, length);
    }
    *checksum = crc;
    return 0;
}

/* --- The log -------------------------------------------------------------------- */

static uint64_t next_position(uint64_t position, uint64_t length)
{
    uint64_t end = position + sizeof(struct journal_record) + length;
    return (end + RECORD_ALIGN_BYTES - 1) / RECORD_ALIGN_BYTES * RECORD_ALIGN_BYTES;
}

static uint64_t place_of(const struct journal *journal, uint64_t position)
{
    return (position - LOAD(journal->header->base)) % journal->capacity;
}

static uint64_t appended_position(const struct journal *journal)
{
    return atomic_load_explicit(&journal->header->appended, memory_order_acquire);
}

bool journal_is_empty(const struct journal *journal)
{
    return atomic_load(&journal->header->drained) ==
           atomic_load(&journal->header->appended);
}

bool journal_has_part(const struct journal *journal)
{
    return journal->header->partition != 0;
}

int journal_sync(const struct journal *journal)
{
    long answer = journal->part >= 0 ? call(SYS_fdatasync, journal->part, 0, 0, 0) : 0;
    return (int)(answer == 0 ? call(SYS_fdatasync, journal->fd, 0, 0, 0) : answer);
}

/* Return the data bytes that fit into one record at the end of the log. */
static uint64_t room_for(const struct journal *journal, uint64_t size)
{
    uint64_t position = LOAD(journal->header->appended);
    uint64_t used = position - atomic_load(&journal->header->freed);
    uint64_t free = smaller(journal->capacity - used,
                            journal->capacity - place_of(journal, position));
    if (free < RECORD_ALIGN_BYTES)
        return 0;
    return smaller(smaller(free - sizeof(struct journal_record), RECORD_MAX_BYTES),
                   size);
}

static void rewind_if_empty(struct journal_header *header)
{
    uint64_t position = LOAD(header->appended);
    if (atomic_load(&header->freed) == position)
        STORE(header->base, position);
}

static long write_ring(int fd, const void *data, uint64_t size, uint64_t place)
{
    return call(SYS_pwrite64, fd, (long)data, (long)size,
                (long)(JOURNAL_HEADER_BYTES + place));
}

static int write_head(struct journal *journal, const struct journal_record *head,
                      uint64_t place)
{
    long answer = write_ring(ring_fd(journal), head, sizeof *head, place);
    return answer == (long)sizeof *head ? 0 : answer < 0 ? (int)answer : -ENOSPC;
}

/* Write the data first and read them back for the checksum: by then the kernel has
 * checked the pointer. */
static int64_t write_checked(struct journal *journal, struct journal_record *head,
                             const void *data, uint64_t place)
{
    long length =
        write_ring(ring_fd(journal), data, head->length, place + sizeof *head);
    if (length <= 0)
        return length < 0 ? length : -ENOSPC;
    head->length = (uint64_t)length;
    int answer =
        crc_of_ring(journal, place + sizeof *head, head->length, &head->checksum);
    if (answer == 0)
        answer = write_head(journal, head, place);
    return answer == 0 ? length : answer;
}

static int64_t write_record(struct journal *journal, struct journal_record *head,
                            const void *data, uint64_t place)
{
    if (journal->header->checked)
        return write_checked(journal, head, data, place);
    struct iovec parts[2] = {{head, sizeof *head},
                             {(void *)(uintptr_t)data, head->length}};
    long moved = raw_call(SYS_pwritev, ring_fd(journal), (long)parts, 2,
                          (long)(JOURNAL_HEADER_BYTES + place), 0, 0);
    if (moved <= (long)sizeof *head)
        return moved < 0                                         ? moved
               : head->length > 0 && moved == (long)sizeof *head ? -EFAULT
                                                                 : -ENOSPC;
    uint64_t length = (uint64_t)moved - sizeof *head;
    if (length < head->length) {
        head->length = length;
        int answer = write_head(journal, head, place);
        return answer == 0 ? (int64_t)length : answer;
    }
    return (int64_t)length;
}

static void commit(struct journal_header *header, const struct journal_record *head,
                   uint64_t position)
{
    uint64_t end = head->offset + head->length;
    if (end > LOAD(header->end))
        STORE(header->end, end);
    STORE(header->sequence, head->sequence);
    atomic_store(&header->appended, next_position(position, head->length));
}

int64_t journal_append(struct journal *journal, const void *data, uint64_t size,
                       uint64_t offset)
{
    struct journal_header *header = journal->header;
    rewind_if_empty(header);
    uint64_t position = LOAD(header->appended);
    struct journal_record head = {
        .mark = RECORD_MAGIC ^ position,
        .sequence = LOAD(header->sequence) + 1,
        .offset = offset,
        .length = room_for(journal, size),
    };
    if (head.length == 0)
        return 0;
    int64_t length = write_record(journal, &head, data, place_of(journal, position));
    if (length > 0)
        commit(header, &head, position);
    return length;
}

/* --- Draining ------------------------------------------------------------------- */

/* The records of one step: consecutive in the log and in the file. */
struct batch {
    struct iovec parts[BATCH_RECORDS];
    int count;
    uint64_t offset;
    uint64_t length;
    uint64_t end; /* position behind the records */
    int error;    /* of the next record: -EUCLEAN (it is damaged), -EIO, or 0 */
};

/* Read and check the head of the record of `position`, which is at `place` in the ring;
 * `thorough`: its checksum too, which is needed only before it is written. Returns 0,
 * -EUCLEAN if the record is damaged, or -EIO. */
static int read_head(const struct journal *journal, struct journal_record *head,
                     uint64_t place, uint64_t position, uint64_t end, bool thorough)
{
    uint64_t checksum;
    /* A head at such a place is inside the ring; others may cross its end. */
    if (journal->ring == NULL || place % RECORD_ALIGN_BYTES != 0)
        return -EUCLEAN;
    int answer = read_ring(journal, head, sizeof *head, place);
    if (answer != 0)
        return answer;
    uint64_t most = journal->capacity - place - sizeof *head;
    if (head->mark != (RECORD_MAGIC ^ position) || head->length == 0 ||
        head->length > smaller(most, RECORD_MAX_BYTES) ||
        next_position(position, head->length) > end)
        return -EUCLEAN;
    if (!thorough || !journal->header->checked)
        return 0;
    answer = crc_of_ring(journal, place + sizeof *head, head->length, &checksum);
    return answer == 0 && checksum != head->checksum ? -EUCLEAN : answer;
}

static bool fits_batch(const struct batch *batch, const struct journal_record *head,
                       uint64_t most)
{
    return batch->count == 0 ||
           (batch->count < BATCH_RECORDS &&
            head->offset == batch->offset + batch->length &&
            batch->length + head->length <= smaller(most, RECORD_MAX_BYTES));
}

static void collect_batch(const struct journal *journal, struct batch *batch,
                          uint64_t most, bool thorough)
{
    const struct journal_header *header = journal->header;
    uint64_t end = appended_position(journal);
    uint64_t position = atomic_load(&header->drained);
    batch->count = 0;
    batch->length = 0;
    batch->error = 0;
    while (position < end) {
        struct journal_record head;
        uint64_t place = place_of(journal, position);
        batch->error = read_head(journal, &head, place, position, end, thorough);
        if (batch->error != 0)
            break;
        if (!fits_batch(batch, &head, most))
            break;
        if (batch->count == 0)
            batch->offset = head.offset;
        const char *data = journal->ring + place + sizeof head;
        batch->parts[batch->count++] =
            (struct iovec){(void *)(uintptr_t)data, head.length};
        batch->length += head.length;
        position = next_position(position, head.length);
    }
    batch->end = position;
}

uint64_t journal_next(const struct journal *journal, uint64_t most)
{
    struct batch batch;
    collect_batch(journal, &batch, most, false);
    return batch.length + (batch.error != 0);
}

/* Skip the first `moved` bytes of a batch. */
static void skip_bytes(struct batch *batch, struct iovec **first, uint64_t moved)
{
    while (moved > 0 && moved >= (*first)->iov_len) {
        moved -= (*first)->iov_len;
        (*first)++;
        batch->count--;
    }
    if (moved > 0) {
        (*first)->iov_base = (char *)(*first)->iov_base + moved;
        (*first)->iov_len -= moved;
    }
}

static int write_batch(struct batch *batch, int file)
{
    struct iovec *first = batch->parts;
    uint64_t offset = batch->offset;
    while (batch->count > 0) {
        long moved =
            raw_call(SYS_pwritev, file, (long)first, batch->count, (long)offset, 0, 0);
        if (moved == -EINTR)
            continue;
        /* -EFAULT: the kernel cannot read the ring. */
        if (moved <= 0)
            return moved == 0 || moved == -EFAULT ? -EIO : (int)moved;
        offset += (uint64_t)moved;
        skip_bytes(batch, &first, (uint64_t)moved);
    }
    return 0;
}

int64_t journal_step(struct journal *journal, int file, uint64_t most)
{
    struct journal_header *header = journal->header;
    struct batch batch;
    if (atomic_load(&header->flags) & JOURNAL_PUT_ASIDE && !journal->is_failed)
        return -ECANCELED;
    collect_batch(journal, &batch, most, true);
    if (batch.count == 0)
        return batch.error;
    int answer = write_batch(&batch, file);
    STORE(header->error, (uint32_t)-answer);
    if (answer != 0)
        return answer;
    ADD(header->drained_bytes, batch.length);
    atomic_store(&header->drained, batch.end);
    if (!header->durable)
        atomic_store(&header->freed, batch.end);
    return (int64_t)batch.length;
}

int journal_free_drained(struct journal *journal, int file)
{
    struct journal_header *header = journal->header;
    uint64_t drained = atomic_load(&header->drained);
    if (atomic_load(&header->freed) == drained)
        return 0;
    long answer = header->durable ? call(SYS_fdatasync, file, 0, 0, 0) : 0;
    if (answer == 0)
        atomic_store(&header->freed, drained);
    return (int)answer;
}

static bool free_storage(struct journal *journal, uint64_t from, uint64_t to)
{
    const int flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return from < to &&
           call(SYS_fallocate, ring_fd(journal), flags,
                (long)(JOURNAL_HEADER_BYTES + from), (long)(to - from)) == 0;
}

bool journal_give_back(struct journal *journal)
{
    struct journal_header *header = journal->header;
    uint64_t freed = atomic_load(&header->freed), appended = appended_position(journal);
    if (appended - freed >= journal->capacity)
        return false;
    uint64_t first = place_of(journal, freed),
             behind_last = place_of(journal, appended);
    if (behind_last < first)
        return free_storage(journal, behind_last, first);
    bool before = free_storage(journal, 0, first);
    return free_storage(journal, behind_last, journal->capacity) || before;
}

/* --- The end -------------------------------------------------------------------- */

static bool has_name(const struct journal *journal, const char *name)
{
    struct stat named, opened;
    return call(SYS_newfstatat, AT_FDCWD, (long)name, (long)&named,
                AT_SYMLINK_NOFOLLOW) == 0 &&
           raw_call(SYS_fstat, journal->fd, (long)&opened, 0, 0, 0, 0) == 0 &&
           named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

void journal_retire(struct journal *journal, const char *name)
{
    if (journal->header->checked)
        call(SYS_fdatasync, journal->fd, 0, 0, 0);
    if (!has_name(journal, name))
        return;
    remove_part(journal);
    call(SYS_unlinkat, AT_FDCWD, (long)name, 0, 0);
}

void journal_put_aside(struct journal *journal, const char *name)
{
    char aside[JOURNAL_NAME_BYTES];
    const char *end = aside + JOURNAL_NAME_BYTES;
    char *to = text_put(text_put(aside, end, name), end, ".");
    to = text_put_hex(to, end, journal->header->process);
    to = text_put_hex(text_put(to, end, "-"), end, ADD(names_made, 1));
    if (text_put(to, end, JOURNAL_FAILED) != NULL && has_name(journal, name))
        raw_call(SYS_renameat2, AT_FDCWD, (long)name, AT_FDCWD, (long)aside, 0, 0);
    /* After the renaming: a program that is killed in between was not told of the
     * error. */
    atomic_fetch_or(&journal->header->flags, JOURNAL_PUT_ASIDE);
}
