/* SPDX-License-Identifier: MIT
 *
 * Drain journals that their owner has damaged, and goes on damaging meanwhile.
 *
 *     fuzz_journal FOLDER SEED COUNT
 *
 * Every input is a valid journal with a few words or bytes changed. It is opened,
 * drained, appended to and closed. At any system call the owner may change further
 * words. Compiled with sanitizers; beyond what these see, mappings lie between pages
 * that cannot be accessed, only whole mappings may be unmapped, and only bytes of the
 * journal may be written to the file. The program prints how many journals could be
 * opened and how many bytes were drained, and aborts if a rule is broken.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "journal.h"
#include "real.h"

enum { CAPACITY = 8192, GUARD = 4096, SIZE = JOURNAL_HEADER_BYTES + CAPACITY };
/* Words of the header in front of its padding and path. */
enum { HEADER_WORDS = 32, MOST_MAPPINGS = 4, MOST_STEPS = 50 };

static uint64_t random_state;
static int owner = -1; /* the owner's descriptor of the journal; -1: no changes now */
static int drained_file = -1;

static struct mapping {
    char *start;
    size_t size;
} mappings[MOST_MAPPINGS];

static void fail(const char *rule)
{
    fprintf(stderr, "broken: %s\n", rule);
    abort();
}

/* --- Random numbers (splitmix64) -------------------------------------------------- */

static uint64_t draw(uint64_t below)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return below ? z % below : z;
}

static uint64_t draw_word(void)
{
    static const uint64_t CORNERS[] = {
        0,         1,
        40,        63,
        64,        65,
        CAPACITY,  CAPACITY - 64,
        4096,      CAPACITY + 64,
        1u << 31,  UINT64_C(1) << 40,
        INT64_MAX, UINT64_MAX,
    };
    switch (draw(3)) {
    case 0:
        return CORNERS[draw(sizeof CORNERS / sizeof *CORNERS)];
    case 1:
        return draw(4 * CAPACITY);
    default:
        return draw(0);
    }
}

/* --- System calls ----------------------------------------------------------------- */

static long map_guarded(long size, long protection, long fd, long offset)
{
    size_t room = ((size_t)size + GUARD - 1) / GUARD * GUARD;
    char *place =
        mmap(NULL, room + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return -ENOMEM;
    void *start = mmap(place + GUARD, (size_t)size, (int)protection,
                       MAP_SHARED | MAP_FIXED, (int)fd, offset);
    if (start == MAP_FAILED) {
        munmap(place, room + 2 * GUARD);
        return -ENOMEM;
    }
    for (int i = 0; i < MOST_MAPPINGS; i++) {
        if (mappings[i].start == NULL) {
            mappings[i] = (struct mapping){start, (size_t)size};
            return (long)start;
        }
    }
    fail("mappings are unmapped");
    return 0;
}

static long unmap_guarded(char *start, size_t size)
{
    for (int i = 0; i < MOST_MAPPINGS; i++) {
        if (mappings[i].start != start)
            continue;
        if (mappings[i].size != size)
            fail("a mapping is unmapped as it was mapped");
        mappings[i].start = NULL;
        size_t room = (size + GUARD - 1) / GUARD * GUARD;
        return munmap(start - GUARD, room + 2 * GUARD);
    }
    fail("only mappings of the journal are unmapped");
    return 0;
}

static bool is_mapped(const char *from, size_t size)
{
    for (int i = 0; i < MOST_MAPPINGS; i++) {
        const char *start = mappings[i].start;
        if (start != NULL && from >= start && size <= mappings[i].size &&
            (size_t)(from - start) <= mappings[i].size - size)
            return true;
    }
    return false;
}

static void check_parts(const struct iovec *parts, long count)
{
    for (long i = 0; i < count; i++)
        if (!is_mapped(parts[i].iov_base, parts[i].iov_len))
            fail("only bytes of the journal are written to the file");
}

static void interfere(void)
{
    if (owner < 0 || draw(4) != 0)
        return;
    uint64_t word = draw_word();
    uint64_t place = 8 * draw(draw(4) == 0 ? SIZE / 8 : HEADER_WORDS);
    if (syscall(SYS_pwrite64, owner, &word, sizeof word, (long)place) < 0)
        fail("the owner can write");
}

long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
    interfere();
    if (number == SYS_mmap)
        return map_guarded(b, c, e, f);
    if (number == SYS_munmap)
        return unmap_guarded((char *)a, (size_t)b);
    if (number == SYS_fdatasync) /* it takes long */
        return 0;
    if (number == SYS_pwritev && a == drained_file)
        check_parts((const struct iovec *)b, c);
    long answer = syscall(number, a, b, c, d, e, f);
    return answer == -1 ? -errno : answer;
}

/* --- Inputs ----------------------------------------------------------------------- */

static void make_valid(const char *folder, char content[SIZE], bool checked)
{
    struct staged_file file = {.device = 1, .inode = 2, .path = "/file"};
    struct journal_terms terms = {
        .folder = folder, .capacity = CAPACITY, .process = 1, .checked = checked};
    struct journal journal;
    char data[900], name[JOURNAL_NAME_BYTES];
    memset(data, 'x', sizeof data);
    if (journal_create(&journal, &terms, &file) != 0)
        fail("a journal can be made");
    for (uint64_t i = 0; i < 6; i++)
        journal_append(&journal, data, 100 + 150 * i, 1000 * i);
    if (pread(journal.fd, content, SIZE, 0) != SIZE)
        fail("a journal has its size");
    journal_close(&journal);
    journal_name(name, folder, file.device, file.inode);
    unlink(name);
}

static void write_damaged(int fd, const char valid[SIZE])
{
    char content[SIZE];
    memcpy(content, valid, SIZE);
    for (uint64_t changes = draw(5); changes > 0; changes--) {
        uint64_t word = draw_word();
        if (draw(2) == 0)
            memcpy(content + 8 * draw(HEADER_WORDS), &word, sizeof word);
        else
            content[draw(SIZE)] = (char)word;
    }
    size_t size = draw(20) == 0 ? draw(SIZE + 1) : SIZE;
    if (ftruncate(fd, 0) != 0 || pwrite(fd, content, size, 0) != (ssize_t)size)
        fail("an input can be written");
}

/* Use a journal as drainers and writers do; return the bytes drained. */
static uint64_t use(struct journal *journal)
{
    uint64_t drained = 0;
    char data[300] = {0};
    for (int step = 0; step < MOST_STEPS; step++) {
        journal_next(journal, draw_word());
        int64_t moved = journal_step(journal, drained_file, draw_word());
        if (moved <= 0)
            break;
        drained += (uint64_t)moved;
    }
    journal_free_drained(journal, drained_file);
    journal_give_back(journal);
    for (int i = 0; i < 3; i++)
        journal_append(journal, data, draw(sizeof data), draw_word());
    journal_is_empty(journal);
    return drained;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    char name[4096], path[4096], valid[2][SIZE];
    snprintf(name, sizeof name, "%s/1-2.journal", words[1]);
    snprintf(path, sizeof path, "%s/file", words[1]);
    random_state = strtoull(words[2], NULL, 10);
    uint64_t inputs = strtoull(words[3], NULL, 10), opened = 0, drained = 0;
    /* Offsets in records may be anything: do not fill the storage. */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20});
    make_valid(words[1], valid[0], false);
    make_valid(words[1], valid[1], true);
    drained_file = open(path, O_RDWR | O_CREAT, 0600);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    for (uint64_t input = 0; input < inputs; input++) {
        struct journal journal;
        write_damaged(fd, valid[input % 2]);
        owner = draw(2) == 0 ? fd : -1;
        if (journal_open_header(&journal, name) == 0) {
            if (journal_open_ring(&journal) == 0) {
                opened++;
                drained += use(&journal);
            }
            journal_close(&journal);
        }
        owner = -1;
    }
    printf("%llu %llu\n", (unsigned long long)opened, (unsigned long long)drained);
    return 0;
}
