/* SPDX-License-Identifier: MIT
 *
 * Tell calls that reach the storage from calls that memory serves.
 *
 * The device of the file decides which of two rules holds:
 *
 *   - A file on a block device (ext4, xfs ...): the kernel counts the bytes that each
 *     thread causes to be read, readahead included (ru_inblock of getrusage). Bytes
 *     that were counted and not delivered yet are owed: readahead brings them before
 *     the program asks for them. A read comes from the storage as far as it takes bytes
 *     that are owed.
 *   - Any other file (FUSE, NFS, overlay, tmpfs ...), and writes to all files: a call
 *     that sleeps in the kernel waits for the storage (ru_nvcsw). The calls that follow
 *     find what readahead has brought meanwhile, or fill what was freed, so a window of
 *     WINDOW_BYTES on the same descriptor is taken for storage as well. If a call
 *     sleeps soon after the window, all calls since the window are, too: until then,
 *     calls are announced when they begin, since they may take long. A sleep for
 *     another reason, such as a look at the attributes of the file, costs one window.
 *
 * getrusage costs 0.3 us. It is called after a slow call, and after every HOT_ASK_BYTES
 * that fast calls delivered. So a cached read pays for two looks at the clock. Sleeps
 * between two calls prove nothing: by the second rule, getrusage is also called before
 * a call that begins more than PAUSE_NS after the last one has ended, but only for
 * EXACT_NS after a call that slept. The call that begins this time is taken for one
 * that slept if it is slow and the thread has slept since the kernel was asked.
 */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "shim.h"

/* Fast calls of a thread deliver at most so many bytes until the kernel is asked: on a
 * descriptor whose last bytes came from memory, and on others. */
static const size_t HOT_ASK_BYTES = 4 << 20, ASK_BYTES = 64 << 10;
/* More than the readahead of any device. */
static const int64_t MOST_OWED_BYTES = 16 << 20;
enum { WINDOW_BYTES = 1 << 20, SOON_BYTES = 4 << 20 };
/* Calls with shorter pauses follow each other: the thread did not sleep in between. */
static const uint64_t PAUSE_NS = 4000;
static const uint64_t EXACT_NS = 1000000000;
/* A read of an unknown file that is at least so large is announced when it begins. */
static const size_t LARGE_BYTES = 1 << 20;

/* Of each descriptor. Positive: rest of the window, taken for cold; 0: not known; HOT:
 * served by memory; else: the window is over, -1 - bytes of fast calls since. */
enum { HOT = -1 - SOON_BYTES };
static _Atomic int32_t cold_bytes[KNOWN_DESCRIPTORS];
static _Atomic uint8_t on_block_device[KNOWN_DESCRIPTORS];

/* Bytes that threads of this process caused to be read and did not get yet. */
static _Atomic int64_t owed_bytes;

/* What this thread has used, as far as the kernel was asked. */
static __thread struct {
    bool known;
    uint64_t blocks;         /* ru_inblock, 512 bytes each */
    uint64_t sleeps;         /* ru_nvcsw */
    size_t fetched_bytes;    /* from the storage, not attributed to calls yet */
    size_t unasked_bytes;    /* delivered since the kernel was asked */
    uint64_t end_ns;         /* when the last call ended that was judged by its sleep */
    uint64_t exact_until_ns; /* sleeps between two calls are told from those inside */
    int unknown_fd;          /* the last that was read without a look-up, */
    size_t unknown_bytes;    /* and what fast reads got from it */
} use;

/* Ask the kernel what the thread has used; return true if it has slept since it was
 * asked last. */
static bool ask(void)
{
    struct rusage usage;
    if (raw_call(SYS_getrusage, RUSAGE_THREAD, (long)&usage, 0, 0, 0, 0) != 0)
        return false;
    uint64_t blocks = (uint64_t)usage.ru_inblock, sleeps = (uint64_t)usage.ru_nvcsw;
    bool slept = use.known && sleeps > use.sleeps;
    if (use.known && blocks > use.blocks)
        use.fetched_bytes += (blocks - use.blocks) * 512;
    use.known = true;
    use.blocks = blocks;
    use.sleeps = sleeps;
    return slept;
}

void cache_forget_thread(void)
{
    use.known = false;
    use.fetched_bytes = use.unasked_bytes = use.unknown_bytes = 0;
}

void cache_note_wait(void)
{
    ask();
}

void cache_note_file(int fd, bool block_device)
{
    STORE(cold_bytes[fd], 0);
    STORE(on_block_device[fd], block_device);
}

static bool is_counted(int fd, enum io_class class)
{
    return class == CLASS_READ && LOAD(on_block_device[fd]);
}

enum cache_expectation cache_expect(int fd, enum io_class class, size_t size,
                                    uint64_t now_ns)
{
    if (RARELY(!use.known) ||
        (now_ns < use.exact_until_ns && now_ns - use.end_ns > PAUSE_NS &&
         !is_counted(fd, class)))
        ask(); /* what the thread did before this call proves nothing */
    int32_t cold = LOAD(cold_bytes[fd]);
    if (cold != 0)
        return cold == HOT ? EXPECT_MEMORY : EXPECT_STORAGE;
    return size >= LARGE_BYTES ? EXPECT_EITHER : EXPECT_MEMORY;
}

/* A call that copies 8 bytes per nanosecond, and 10 us more, is not slow. */
static bool is_slow(size_t moved_bytes, uint64_t duration_ns)
{
    return duration_ns >= 10000 + moved_bytes / 8;
}

void cache_begin_unknown(void)
{
    if (RARELY(!use.known))
        ask();
}

bool cache_must_look_up(int fd, size_t moved_bytes, uint64_t duration_ns)
{
    const size_t UNKNOWN_BYTES = 1 << 20;
    if (fd != use.unknown_fd)
        use.unknown_bytes = 0;
    use.unknown_fd = fd;
    if (is_slow(moved_bytes, duration_ns) || use.unknown_bytes >= UNKNOWN_BYTES)
        return true;
    use.unknown_bytes += moved_bytes;
    return false;
}

void cache_note_opened(int fd)
{
    if (fd == use.unknown_fd)
        use.unknown_bytes = 0;
}

void cache_add_unknown(int fd)
{
    if (is_counted(fd, CLASS_READ))
        use.unasked_bytes += use.unknown_bytes;
    use.unknown_bytes = 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Take at most `bytes` of the bytes that are owed. */
static size_t take_owed(size_t bytes)
{
    int64_t owed = LOAD(owed_bytes);
    if (LIKELY(owed <= 0))
        return 0;
    size_t taken = least(bytes, (size_t)owed);
    SUBTRACT(owed_bytes, (int64_t)taken);
    return taken;
}

static void add_owed(size_t bytes)
{
    int64_t room = MOST_OWED_BYTES - LOAD(owed_bytes);
    if (bytes > 0 && room > 0)
        ADD(owed_bytes, (int64_t)least(bytes, (size_t)room));
}

/* The rule of block devices. */
static struct cache_split split_counted(int fd, size_t moved_bytes, bool slow)
{
    size_t ask_bytes = LOAD(cold_bytes[fd]) == HOT ? HOT_ASK_BYTES : ASK_BYTES;
    size_t storage_bytes = take_owed(moved_bytes), memory_bytes = 0;
    use.unasked_bytes += moved_bytes - storage_bytes;
    if (slow || use.unasked_bytes >= ask_bytes) {
        ask();
        size_t fetched = least(use.fetched_bytes, use.unasked_bytes);
        add_owed(use.fetched_bytes - fetched);
        storage_bytes += fetched;
        memory_bytes = use.unasked_bytes - fetched;
        use.fetched_bytes = use.unasked_bytes = 0;
        STORE(cold_bytes[fd], storage_bytes > 0 ? 1 : HOT);
    }
    return (struct cache_split){storage_bytes, memory_bytes};
}

/* Split a call that slept. Calls since the last window are charged with it. */
static struct cache_split split_slept(int fd, int32_t cold, size_t moved_bytes)
{
    use.exact_until_ns = use.end_ns + EXACT_NS;
    size_t pending = cold < 0 && cold != HOT ? (size_t)(-1 - cold) : 0;
    STORE(cold_bytes[fd], WINDOW_BYTES);
    return (struct cache_split){.storage_bytes = moved_bytes + pending};
}

/* Split a call inside the window. */
static struct cache_split split_in_window(int fd, int32_t cold, size_t moved_bytes)
{
    bool inside = moved_bytes < (size_t)cold;
    STORE(cold_bytes[fd], inside ? cold - (int32_t)moved_bytes : -1);
    if (!inside)
        ask(); /* sleeps inside the window prove nothing */
    return (struct cache_split){.storage_bytes = moved_bytes};
}

/* Split a call that did not sleep, after the window or without one. */
static struct cache_split split_fast(int fd, int32_t cold, size_t moved_bytes)
{
    size_t pending = cold < 0 && cold != HOT ? (size_t)(-1 - cold) : 0;
    bool soon = cold != 0 && cold != HOT && pending + moved_bytes < SOON_BYTES;
    int32_t left = soon ? cold - (int32_t)moved_bytes : HOT;
    if (left != cold)
        STORE(cold_bytes[fd], left);
    return (struct cache_split){.memory_bytes = soon ? 0 : pending + moved_bytes};
}

/* The rule of all other files, and of writes. */
static struct cache_split split_by_sleep(int fd, size_t moved_bytes, bool slow)
{
    int32_t cold = LOAD(cold_bytes[fd]);
    if (cold > 0)
        return split_in_window(fd, cold, moved_bytes);
    if (slow && ask())
        return split_slept(fd, cold, moved_bytes);
    return split_fast(fd, cold, moved_bytes);
}

struct cache_split cache_split(int fd, enum io_class class, size_t moved_bytes,
                               uint64_t begin_ns, uint64_t end_ns)
{
    bool slow = is_slow(moved_bytes, end_ns - begin_ns);
    if (is_counted(fd, class))
        return split_counted(fd, moved_bytes, slow);
    use.end_ns = end_ns;
    return split_by_sleep(fd, moved_bytes, slow);
}
