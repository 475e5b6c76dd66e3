/* SPDX-License-Identifier: MIT
 *
 * Opening, closing, flushing and positioning stdio streams.
 *
 * libc would write to a staged file directly. A stream that only writes and whose file
 * is staged is therefore made here, with fopencookie: libc keeps the buffer, and the
 * wrapped write() empties it. Other streams end the staging of their file.
 */
#include <errno.h>
#include <stdio_ext.h>
#include <string.h>

#include "stream.h"

_Atomic uint8_t stdio_own_streams[KNOWN_DESCRIPTORS];

static bool may_open(const char *path, const char *mode)
{
    if (LIKELY(!LOAD(stage_enabled)))
        return true;
    bool reads = mode[0] == 'r' && strchr(mode, '+') == NULL;
    return wrap_may_open(AT_FDCWD, path, reads ? O_RDONLY : O_RDWR);
}

/* --- Opening and closing -------------------------------------------------------- */

static FILE *note_opened_stream(FILE *file)
{
    if (file != NULL)
        identity_note_opened(file->_fileno, AT_FDCWD, "", 0);
    return file;
}

static ssize_t cookie_write(void *of, const char *data, size_t size)
{
    int fd = (int)(intptr_t)of;
    size_t done = 0;
    while (done < size) {
        ssize_t moved = write(fd, data + done, size - done);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            break;
        done += (size_t)moved;
    }
    return (ssize_t)done;
}

static int cookie_seek(void *of, off64_t *offset, int whence)
{
    off64_t reached = lseek64((int)(intptr_t)of, *offset, whence);
    if (reached < 0)
        return -1;
    *offset = reached;
    return 0;
}

static int cookie_close(void *of)
{
    int fd = (int)(intptr_t)of;
    stdio_end_own_stream(fd);
    return close(fd);
}

/* Return the flags of open for a mode that our own streams support; -1 for others. */
static int writing_flags(const char *mode)
{
    int flags = O_WRONLY | O_CREAT | O_TRUNC;
    if (LIKELY(!LOAD(stage_enabled)) || mode[0] != 'w')
        return -1;
    for (const char *sign = mode + 1; *sign != '\0'; sign++) {
        if (*sign == 'x')
            flags |= O_EXCL;
        else if (*sign == 'e')
            flags |= O_CLOEXEC;
        else if (*sign != 'b')
            return -1;
    }
    return flags;
}

/* Make a stream that empties its buffer through the wrapped write(). */
static FILE *cookie_stream(int fd)
{
    const cookie_io_functions_t calls = {
        .write = cookie_write, .seek = cookie_seek, .close = cookie_close};
    FILE *file = fopencookie((void *)(intptr_t)fd, "w", calls);
    if (file == NULL)
        return NULL;
    file->_fileno = fd;
    STORE(stdio_own_streams[fd], STREAM_UNUSED);
    return file;
}

static FILE *open_to_write(const char *path, const char *mode, int flags)
{
    int fd = open(path, flags, 0666);
    if (fd < 0)
        return NULL;
    bool staged = identity_is_controlled(fd) && identity_is_stageable(fd);
    FILE *file = staged ? cookie_stream(fd) : fdopen(fd, mode);
    if (file == NULL)
        close(fd);
    return file;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    int flags = writing_flags(mode);
    if (flags >= 0)
        return open_to_write(path, mode, flags);
    if (!may_open(path, mode))
        return NULL;
    return note_opened_stream(REAL(fopen)(path, mode));
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    int flags = writing_flags(mode);
    if (flags >= 0)
        return open_to_write(path, mode, flags);
    if (!may_open(path, mode))
        return NULL;
    return note_opened_stream(REAL(fopen64)(path, mode));
}

/* libc is about to close the descriptor internally. Returns 0 or a drain's error. */
static int note_closed_by_libc(int fd)
{
    bool known = RARELY(LOAD(stage_enabled)) && (unsigned)fd < KNOWN_DESCRIPTORS;
    return known ? stage_close(fd) : 0;
}

/* At least the size of struct _IO_wide_data of libc. */
enum { WIDE_DATA_ROOM = 1024 };

/* Prepare a stream for freopen, which closes its file internally. */
static void prepare_reopen(FILE *file)
{
    stream_charge_pending(file);
    int fd = file->_fileno;
    if (stream_is_own(fd)) {
        REAL(fflush)(file);
        stdio_end_own_stream(fd);
        /* fopencookie made it without wide data, which freopen initialises. */
        file->_wide_data = calloc(1, WIDE_DATA_ROOM);
    }
    note_closed_by_libc(fd);
}

static FILE *note_adopted(FILE *file, int fd)
{
    if (file != NULL && RARELY(LOAD(stage_enabled)) && identity_is_controlled(fd))
        stream_drain(fd);
    return file;
}

EXPORT FILE *fdopen(int fd, const char *mode)
{
    return note_adopted(REAL(fdopen)(fd, mode), fd);
}

/* As freopen does, close a stream whose new file cannot be opened. */
static FILE *close_unopened(FILE *file)
{
    int error = errno;
    fclose(file);
    errno = error;
    return NULL;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *file)
{
    int fd = file->_fileno;
    prepare_reopen(file);
    if (!may_open(path, mode))
        return close_unopened(file);
    FILE *reopened = REAL(freopen)(path, mode, file);
    identity_forget(fd);
    return note_opened_stream(reopened);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *file)
{
    int fd = file->_fileno;
    prepare_reopen(file);
    if (!may_open(path, mode))
        return close_unopened(file);
    FILE *reopened = REAL(freopen64)(path, mode, file);
    identity_forget(fd);
    return note_opened_stream(reopened);
}

EXPORT int fclose(FILE *file)
{
    int fd = file->_fileno;
    stream_charge_pending(file);
    int late_error = stream_is_own(fd) ? 0 : note_closed_by_libc(fd);
    struct paced_call call;
    wrap_begin_sync(&call, stream_is_own(fd) ? -1 : fd);
    int answer = wrap_end_sync(&call, REAL(fclose)(file));
    identity_forget(fd);
    if (RARELY(late_error != 0) && answer == 0) {
        errno = late_error;
        return EOF;
    }
    return answer;
}

EXPORT int fcloseall(void)
{
    stage_write_through_all();
    int answer = REAL(fcloseall)();
    identity_forget_range(0, UINT32_MAX);
    return answer;
}

/* --- Flushing and positioning --------------------------------------------------- */

/* Begin a call that writes what is pending. A stream that has nothing pending, e.g. one
 * that reads, has nothing to charge. */
static void flush_begin(struct stream *stream, FILE *file)
{
    stream->file = NULL;
    if (__fpending(file) > 0 || RARELY(LOAD(stage_enabled)))
        stream_begin(stream, file, CLASS_WRITE, 0);
}

EXPORT int fflush(FILE *file)
{
    if (file == NULL) {
        stream_charge_pending(stdout);
        return REAL(fflush)(file);
    }
    struct stream stream;
    flush_begin(&stream, file);
    int answer = REAL(fflush)(file);
    stream_end(&stream, 0);
    return answer;
}

EXPORT int fflush_unlocked(FILE *file)
{
    return fflush(file);
}

#define MOVES(name, parameters, arguments) \
    EXPORT int name parameters \
    { \
        struct stream stream; \
        flush_begin(&stream, file); \
        int answer = REAL(name) arguments; \
        stream_end(&stream, 0); \
        return answer; \
    }

MOVES(fseek, (FILE * file, long offset, int whence), (file, offset, whence))
MOVES(fseeko, (FILE * file, off_t offset, int whence), (file, offset, whence))
MOVES(fseeko64, (FILE * file, off64_t offset, int whence), (file, offset, whence))
MOVES(fsetpos, (FILE * file, const fpos_t *position), (file, position))
MOVES(fsetpos64, (FILE * file, const fpos64_t *position), (file, position))

EXPORT void rewind(FILE *file)
{
    struct stream stream;
    flush_begin(&stream, file);
    REAL(rewind)(file);
    stream_end(&stream, 0);
}

__attribute__((destructor)) static void finish_library(void)
{
    if (stdout != NULL)
        stream_charge_pending(stdout);
    stage_finish();
}
