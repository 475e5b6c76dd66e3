/* SPDX-License-Identifier: MIT
 *
 * Streams of stdio. libc fills and empties their buffers by internal calls that cannot
 * be wrapped, so a call is charged by what it does to the buffer:
 *
 *     bytes written to the kernel = bytes given + pending before - pending after,
 *     bytes read from the kernel  = bytes taken + unread after - unread before.
 *
 * A call that stays within the buffer costs nothing. At the end of the program, bytes
 * that are still pending are charged for stdout only: other streams are not known.
 *
 * libc would also write to a staged file directly. A stream that only writes and whose
 * file is staged is therefore made here, with fopencookie: libc keeps the buffer, and
 * the wrapped write() empties it. Other streams end the staging of their file.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <string.h>

#include "shim.h"

/* Macros of the header, which would expand in the definitions below. */
#undef fread_unlocked
#undef fwrite_unlocked

/* Calls of at least this size are paced like a call on the descriptor, from begin to
 * end; smaller ones move at most a buffer and are charged afterwards. */
enum { LARGE_BYTES = 4096 };

struct stream {
    FILE *file; /* NULL: not controlled */
    struct paced_call call;
    size_t before;     /* buffered bytes when the call began */
    uint64_t begin_ns; /* 0: not known */
    enum io_class class;
};

static size_t buffered(const struct stream *stream)
{
    FILE *file = stream->file;
    if (stream->class == CLASS_WRITE)
        return __fpending(file);
    return file->_IO_read_end > file->_IO_read_ptr
               ? (size_t)(file->_IO_read_end - file->_IO_read_ptr)
               : 0;
}

/* Return true if a call of `size` bytes (0: not known) may leave the buffer. Its time
 * is taken then; a long line may leave the buffer without it. */
static bool may_leave_buffer(const struct stream *stream, size_t size)
{
    const size_t LINE_BYTES = 512;
    FILE *file = stream->file;
    size_t room = stream->before;
    if (stream->class == CLASS_WRITE)
        room = file->_IO_buf_end > file->_IO_write_ptr
                   ? (size_t)(file->_IO_buf_end - file->_IO_write_ptr)
                   : 0;
    return room < (size > LINE_BYTES ? size : LINE_BYTES);
}

/* The lock of the stream keeps its buffer unchanged between the two looks at it; no
 * wait for a grant happens under this lock. */
static void stream_enter(struct stream *stream, FILE *file, enum io_class class,
                         size_t size)
{
    stream->file = file;
    stream->class = class;
    stream->call.class = NULL;
    if (size >= LARGE_BYTES)
        wrap_begin_call(&stream->call, file->_fileno, class, size);
    flockfile(file);
    stream->before = buffered(stream);
    bool timed = stream->call.class == NULL && may_leave_buffer(stream, size);
    stream->begin_ns = timed ? pace_now_ns() : 0;
}

/* Return the bytes that went to or came from the kernel in a call of `size` bytes. */
static size_t bytes_through(const struct stream *stream, size_t size, size_t after)
{
    size_t plus = stream->class == CLASS_WRITE ? stream->before : after;
    size_t minus = stream->class == CLASS_WRITE ? after : stream->before;
    return size + plus > minus ? size + plus - minus : 0;
}

static void stream_charge(struct stream *stream, int fd, size_t moved)
{
    if (stream->call.class != NULL)
        pace_end(&stream->call, moved);
    else if (moved > 0)
        wrap_charge_past(fd, stream->class, moved,
                         stream->begin_ns != 0 ? pace_now_ns() - stream->begin_ns : 0);
}

static void stream_leave(struct stream *stream, size_t size)
{
    size_t moved = bytes_through(stream, size, buffered(stream));
    int fd = stream->file->_fileno;
    funlockfile(stream->file);
    stream_charge(stream, fd, moved);
}

/* libc is about to access the file directly: drain it first. */
static inline void drain_for_libc(int fd)
{
    if (identity_is_stageable(fd))
        stage_write_through(fd);
}

static bool stream_may_open(const char *path, const char *mode)
{
    bool reads = mode[0] == 'r' && strchr(mode, '+') == NULL;
    return wrap_may_open(AT_FDCWD, path, reads ? O_RDONLY : O_RDWR);
}

_Atomic uint8_t stdio_own_streams[KNOWN_DESCRIPTORS];

static inline bool stdio_is_own_stream(int fd)
{
    return RARELY(LOAD(stage_enabled)) && (unsigned)fd < KNOWN_DESCRIPTORS &&
           LOAD(stdio_own_streams[fd]) != STREAM_OF_LIBC;
}

static inline struct stream stream_begin(FILE *file, enum io_class class, size_t size)
{
    struct stream stream;
    stream.file = NULL;
    if (LIKELY(!identity_is_controlled(file->_fileno)) ||
        stdio_is_own_stream(file->_fileno))
        return stream;
    drain_for_libc(file->_fileno);
    stream_enter(&stream, file, class, size);
    return stream;
}

static inline struct stream stream_begin_write(FILE *file, size_t size)
{
    if (stdio_is_own_stream(file->_fileno))
        stdio_note_bytes(file->_fileno);
    return stream_begin(file, CLASS_WRITE, size);
}

static inline void stream_end(struct stream *stream, size_t size)
{
    if (RARELY(stream->file != NULL))
        stream_leave(stream, size);
}

/* --- Opening and closing -------------------------------------------------------- */

static FILE *note_opened_stream(FILE *file, const char *path)
{
    wrap_count_path(file != NULL ? 0 : -1, AT_FDCWD, path);
    if (file != NULL)
        identity_forget(file->_fileno);
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
    if (!stream_may_open(path, mode))
        return NULL;
    return note_opened_stream(REAL(fopen)(path, mode), path);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    int flags = writing_flags(mode);
    if (flags >= 0)
        return open_to_write(path, mode, flags);
    if (!stream_may_open(path, mode))
        return NULL;
    return note_opened_stream(REAL(fopen64)(path, mode), path);
}

/* Charge the pending bytes of a stream that libc is about to flush. */
static void charge_pending(FILE *file)
{
    int fd = file->_fileno;
    /* Our own streams are charged by the wrapped write(). */
    bool charged = identity_is_controlled(fd) && !stdio_is_own_stream(fd);
    size_t pending = charged ? __fpending(file) : 0;
    if (pending == 0)
        return;
    drain_for_libc(fd);
    wrap_charge_past(fd, CLASS_WRITE, pending, 0);
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
    charge_pending(file);
    int fd = file->_fileno;
    if (stdio_is_own_stream(fd)) {
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
        drain_for_libc(fd);
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
    if (!stream_may_open(path, mode))
        return close_unopened(file);
    FILE *reopened = REAL(freopen)(path, mode, file);
    identity_forget(fd);
    return note_opened_stream(reopened, path);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *file)
{
    int fd = file->_fileno;
    prepare_reopen(file);
    if (!stream_may_open(path, mode))
        return close_unopened(file);
    FILE *reopened = REAL(freopen64)(path, mode, file);
    identity_forget(fd);
    return note_opened_stream(reopened, path);
}

EXPORT int fclose(FILE *file)
{
    int fd = file->_fileno;
    charge_pending(file);
    int late_error = stdio_is_own_stream(fd) ? 0 : note_closed_by_libc(fd);
    struct paced_call call;
    wrap_begin_sync(&call, stdio_is_own_stream(fd) ? -1 : fd);
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

/* --- Flushing ------------------------------------------------------------------- */

EXPORT int fflush(FILE *file)
{
    if (file == NULL) {
        charge_pending(stdout);
        return REAL(fflush)(file);
    }
    struct stream stream = stream_begin(file, CLASS_WRITE, 0);
    int answer = REAL(fflush)(file);
    stream_end(&stream, 0);
    return answer;
}

EXPORT int fflush_unlocked(FILE *file)
{
    return fflush(file);
}

EXPORT int fseek(FILE *file, long offset, int whence)
{
    struct stream stream = stream_begin(file, CLASS_WRITE, 0);
    int answer = REAL(fseek)(file, offset, whence);
    stream_end(&stream, 0);
    return answer;
}

EXPORT int fseeko(FILE *file, off_t offset, int whence)
{
    struct stream stream = stream_begin(file, CLASS_WRITE, 0);
    int answer = REAL(fseeko)(file, offset, whence);
    stream_end(&stream, 0);
    return answer;
}

EXPORT int fseeko64(FILE *file, off64_t offset, int whence)
{
    struct stream stream = stream_begin(file, CLASS_WRITE, 0);
    int answer = REAL(fseeko64)(file, offset, whence);
    stream_end(&stream, 0);
    return answer;
}

EXPORT void rewind(FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_WRITE, 0);
    REAL(rewind)(file);
    stream_end(&stream, 0);
}

EXPORT int fsetpos(FILE *file, const fpos_t *position)
{
    struct stream stream = stream_begin(file, CLASS_WRITE, 0);
    int answer = REAL(fsetpos)(file, position);
    stream_end(&stream, 0);
    return answer;
}

EXPORT int fsetpos64(FILE *file, const fpos64_t *position)
{
    struct stream stream = stream_begin(file, CLASS_WRITE, 0);
    int answer = REAL(fsetpos64)(file, position);
    stream_end(&stream, 0);
    return answer;
}

__attribute__((destructor)) static void finish_library(void)
{
    if (stdout != NULL)
        charge_pending(stdout);
    stage_finish();
}

/* --- Writing -------------------------------------------------------------------- */

EXPORT size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    struct stream stream = stream_begin_write(file, size * count);
    size_t written = REAL(fwrite)(data, size, count, file);
    stream_end(&stream, size * written);
    return written;
}

EXPORT size_t fwrite_unlocked(const void *data, size_t size, size_t count, FILE *file)
{
    struct stream stream = stream_begin_write(file, size * count);
    size_t written = REAL(fwrite_unlocked)(data, size, count, file);
    stream_end(&stream, size * written);
    return written;
}

/* Return the bytes moved by a call that returns EOF on failure. */
static size_t bytes_moved(int answer, size_t size)
{
    return answer == EOF ? 0 : size;
}

EXPORT int fputs(const char *text, FILE *file)
{
    struct stream stream = stream_begin_write(file, 0);
    int answer = REAL(fputs)(text, file);
    if (stream.file != NULL)
        stream_end(&stream, bytes_moved(answer, strlen(text)));
    return answer;
}

EXPORT int fputs_unlocked(const char *text, FILE *file)
{
    struct stream stream = stream_begin_write(file, 0);
    int answer = REAL(fputs_unlocked)(text, file);
    if (stream.file != NULL)
        stream_end(&stream, bytes_moved(answer, strlen(text)));
    return answer;
}

EXPORT int puts(const char *text)
{
    struct stream stream = stream_begin_write(stdout, 0);
    int answer = REAL(puts)(text);
    if (stream.file != NULL)
        stream_end(&stream, bytes_moved(answer, strlen(text) + 1));
    return answer;
}

#define PUTS_ONE(name, parameters, arguments, file) \
    EXPORT int name parameters \
    { \
        struct stream stream = stream_begin_write(file, 0); \
        int answer = REAL(name) arguments; \
        stream_end(&stream, bytes_moved(answer, 1)); \
        return answer; \
    }

PUTS_ONE(fputc, (int c, FILE *file), (c, file), file)
PUTS_ONE(fputc_unlocked, (int c, FILE *file), (c, file), file)
PUTS_ONE(putc, (int c, FILE *file), (c, file), file)
PUTS_ONE(putc_unlocked, (int c, FILE *file), (c, file), file)
PUTS_ONE(_IO_putc, (int c, FILE *file), (c, file), file)
PUTS_ONE(putchar, (int c), (c), stdout)
PUTS_ONE(putchar_unlocked, (int c), (c), stdout)
PUTS_ONE(__overflow, (FILE * file, int c), (file, c), file)

static int stream_print(FILE *file, const char *format, va_list rest)
{
    struct stream stream = stream_begin_write(file, 0);
    int count = REAL(vfprintf)(file, format, rest);
    stream_end(&stream, count > 0 ? (size_t)count : 0);
    return count;
}

static int stream_print_checked(FILE *file, int flag, const char *format, va_list rest)
{
    struct stream stream = stream_begin_write(file, 0);
    int count = REAL(__vfprintf_chk)(file, flag, format, rest);
    stream_end(&stream, count > 0 ? (size_t)count : 0);
    return count;
}

EXPORT int vfprintf(FILE *file, const char *format, va_list rest)
{
    return stream_print(file, format, rest);
}

EXPORT int vprintf(const char *format, va_list rest)
{
    return stream_print(stdout, format, rest);
}

EXPORT int fprintf(FILE *file, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = stream_print(file, format, rest);
    va_end(rest);
    return count;
}

EXPORT int printf(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = stream_print(stdout, format, rest);
    va_end(rest);
    return count;
}

EXPORT int __vfprintf_chk(FILE *file, int flag, const char *format, va_list rest)
{
    return stream_print_checked(file, flag, format, rest);
}

EXPORT int __vprintf_chk(int flag, const char *format, va_list rest)
{
    return stream_print_checked(stdout, flag, format, rest);
}

EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = stream_print_checked(file, flag, format, rest);
    va_end(rest);
    return count;
}

EXPORT int __printf_chk(int flag, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = stream_print_checked(stdout, flag, format, rest);
    va_end(rest);
    return count;
}

/* dprintf: libc makes a temporary stream for the descriptor. */
#define PRINTS_TO(name, parameters, printing) \
    EXPORT int name parameters \
    { \
        struct paced_call call; \
        wrap_begin(&call, fd, CLASS_WRITE); \
        return (int)wrap_end_write(&call, fd, printing); \
    }

#define PRINTS_REST(name, parameters, printing) \
    EXPORT int name parameters \
    { \
        va_list rest; \
        va_start(rest, format); \
        int count = printing; \
        va_end(rest); \
        return count; \
    }

PRINTS_TO(vdprintf, (int fd, const char *format, va_list rest),
          REAL(vdprintf)(fd, format, rest))
PRINTS_TO(__vdprintf_chk, (int fd, int flag, const char *format, va_list rest),
          REAL(__vdprintf_chk)(fd, flag, format, rest))
PRINTS_REST(dprintf, (int fd, const char *format, ...), vdprintf(fd, format, rest))
PRINTS_REST(__dprintf_chk, (int fd, int flag, const char *format, ...),
            __vdprintf_chk(fd, flag, format, rest))

/* --- Reading -------------------------------------------------------------------- */

EXPORT size_t fread(void *data, size_t size, size_t count, FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, size * count);
    size_t taken = REAL(fread)(data, size, count, file);
    stream_end(&stream, size * taken);
    return taken;
}

EXPORT size_t fread_unlocked(void *data, size_t size, size_t count, FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, size * count);
    size_t taken = REAL(fread_unlocked)(data, size, count, file);
    stream_end(&stream, size * taken);
    return taken;
}

EXPORT size_t __fread_chk(void *data, size_t room, size_t size, size_t count,
                          FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, size * count);
    size_t taken = REAL(__fread_chk)(data, room, size, count, file);
    stream_end(&stream, size * taken);
    return taken;
}

EXPORT size_t __fread_unlocked_chk(void *data, size_t room, size_t size, size_t count,
                                   FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, size * count);
    size_t taken = REAL(__fread_unlocked_chk)(data, room, size, count, file);
    stream_end(&stream, size * taken);
    return taken;
}

static char *end_line(struct stream *stream, char *line)
{
    if (stream->file != NULL)
        stream_end(stream, line != NULL ? strlen(line) : 0);
    return line;
}

EXPORT char *fgets(char *line, int room, FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, 0);
    return end_line(&stream, REAL(fgets)(line, room, file));
}

EXPORT char *fgets_unlocked(char *line, int room, FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, 0);
    return end_line(&stream, REAL(fgets_unlocked)(line, room, file));
}

EXPORT char *__fgets_chk(char *line, size_t real_room, int room, FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, 0);
    return end_line(&stream, REAL(__fgets_chk)(line, real_room, room, file));
}

EXPORT char *__fgets_unlocked_chk(char *line, size_t real_room, int room, FILE *file)
{
    struct stream stream = stream_begin(file, CLASS_READ, 0);
    return end_line(&stream, REAL(__fgets_unlocked_chk)(line, real_room, room, file));
}

#define GETS_ONE(name, parameters, arguments, file, taken) \
    EXPORT int name parameters \
    { \
        struct stream stream = stream_begin(file, CLASS_READ, 0); \
        int answer = REAL(name) arguments; \
        stream_end(&stream, bytes_moved(answer, taken)); \
        return answer; \
    }

GETS_ONE(fgetc, (FILE * file), (file), file, 1)
GETS_ONE(fgetc_unlocked, (FILE * file), (file), file, 1)
GETS_ONE(getc, (FILE * file), (file), file, 1)
GETS_ONE(getc_unlocked, (FILE * file), (file), file, 1)
GETS_ONE(_IO_getc, (FILE * file), (file), file, 1)
GETS_ONE(getchar, (void), (), stdin, 1)
GETS_ONE(getchar_unlocked, (void), (), stdin, 1)
GETS_ONE(__uflow, (FILE * file), (file), file, 1)
GETS_ONE(__underflow, (FILE * file), (file), file, 0)

#define GETS_LINE(name, parameters, arguments) \
    EXPORT ssize_t name parameters \
    { \
        struct stream stream = stream_begin(file, CLASS_READ, 0); \
        ssize_t length = REAL(name) arguments; \
        stream_end(&stream, length > 0 ? (size_t)length : 0); \
        return length; \
    }

GETS_LINE(getline, (char **line, size_t *room, FILE *file), (line, room, file))
GETS_LINE(getdelim, (char **line, size_t *room, int mark, FILE *file),
          (line, room, mark, file))
GETS_LINE(__getdelim, (char **line, size_t *room, int mark, FILE *file),
          (line, room, mark, file))
