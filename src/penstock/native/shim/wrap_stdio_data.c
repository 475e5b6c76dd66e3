/* SPDX-License-Identifier: MIT
 *
 * Calls that write to or read from a stdio stream. Most stay within its buffer: they go
 * straight to libc.
 */
#include <stdarg.h>
#include <string.h>

#include "stream.h"

/* Macros of the header, which would expand in the definitions below. */
#undef fread_unlocked
#undef fwrite_unlocked

/* --- Writing -------------------------------------------------------------------- */

/* Write by `call`, a function of libc, and charge what leaves the buffer. */
static APART size_t write_items(__typeof__(fwrite) *call, const void *data, size_t size,
                                size_t count, FILE *file)
{
    struct stream stream;
    stream_begin_write(&stream, file, size * count);
    size_t written = call(data, size, count, file);
    stream_end(&stream, size * written);
    return written;
}

static APART int put_text(__typeof__(fputs) *call, const char *text, FILE *file)
{
    struct stream stream;
    size_t length = strlen(text);
    stream_begin_write(&stream, file, length);
    int answer = call(text, file);
    stream_end(&stream, answer == EOF ? 0 : length);
    return answer;
}

static APART int put_one(__typeof__(putc) *call, int c, FILE *file)
{
    struct stream stream;
    stream_begin_write(&stream, file, 1);
    int answer = call(c, file);
    stream_end(&stream, answer == EOF ? 0 : 1);
    return answer;
}

EXPORT size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    if (LIKELY(stream_stays_in_buffer(file, CLASS_WRITE, size * count)))
        return real.fwrite(data, size, count, file);
    return write_items(REAL(fwrite), data, size, count, file);
}

EXPORT size_t fwrite_unlocked(const void *data, size_t size, size_t count, FILE *file)
{
    if (LIKELY(stream_stays_in_buffer(file, CLASS_WRITE, size * count)))
        return real.fwrite_unlocked(data, size, count, file);
    return write_items(REAL(fwrite_unlocked), data, size, count, file);
}

EXPORT int fputs(const char *text, FILE *file)
{
    return put_text(REAL(fputs), text, file);
}

EXPORT int fputs_unlocked(const char *text, FILE *file)
{
    return put_text(REAL(fputs_unlocked), text, file);
}

EXPORT int puts(const char *text)
{
    struct stream stream;
    size_t length = strlen(text) + 1;
    stream_begin_write(&stream, stdout, length);
    int answer = REAL(puts)(text);
    stream_end(&stream, answer == EOF ? 0 : length);
    return answer;
}

/* `served_by` of libc does the same as `name`. */
#define PUTS_ONE(name, parameters, served_by, c, file) \
    EXPORT int name parameters \
    { \
        if (LIKELY(stream_stays_in_buffer(file, CLASS_WRITE, 1))) \
            return real.served_by(c, file); \
        return put_one(REAL(served_by), c, file); \
    }

PUTS_ONE(fputc, (int c, FILE *file), putc, c, file)
PUTS_ONE(putc, (int c, FILE *file), putc, c, file)
PUTS_ONE(_IO_putc, (int c, FILE *file), putc, c, file)
PUTS_ONE(putchar, (int c), putc, c, stdout)
PUTS_ONE(fputc_unlocked, (int c, FILE *file), putc_unlocked, c, file)
PUTS_ONE(putc_unlocked, (int c, FILE *file), putc_unlocked, c, file)
PUTS_ONE(putchar_unlocked, (int c), putc_unlocked, c, stdout)

EXPORT int __overflow(FILE *file, int c)
{
    struct stream stream;
    stream_begin_write(&stream, file, 1);
    int answer = REAL(__overflow)(file, c);
    stream_end(&stream, answer == EOF ? 0 : 1);
    return answer;
}

static int print(FILE *file, const char *format, va_list rest)
{
    struct stream stream;
    stream_begin_write(&stream, file, 0);
    int count = REAL(vfprintf)(file, format, rest);
    stream_end(&stream, count > 0 ? (size_t)count : 0);
    return count;
}

static int print_checked(FILE *file, int flag, const char *format, va_list rest)
{
    struct stream stream;
    stream_begin_write(&stream, file, 0);
    int count = REAL(__vfprintf_chk)(file, flag, format, rest);
    stream_end(&stream, count > 0 ? (size_t)count : 0);
    return count;
}

EXPORT int vfprintf(FILE *file, const char *format, va_list rest)
{
    return print(file, format, rest);
}

EXPORT int vprintf(const char *format, va_list rest)
{
    return print(stdout, format, rest);
}

EXPORT int fprintf(FILE *file, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = print(file, format, rest);
    va_end(rest);
    return count;
}

EXPORT int printf(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = print(stdout, format, rest);
    va_end(rest);
    return count;
}

EXPORT int __vfprintf_chk(FILE *file, int flag, const char *format, va_list rest)
{
    return print_checked(file, flag, format, rest);
}

EXPORT int __vprintf_chk(int flag, const char *format, va_list rest)
{
    return print_checked(stdout, flag, format, rest);
}

EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = print_checked(file, flag, format, rest);
    va_end(rest);
    return count;
}

EXPORT int __printf_chk(int flag, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int count = print_checked(stdout, flag, format, rest);
    va_end(rest);
    return count;
}

/* dprintf: libc makes a temporary stream for the descriptor. */
#define PRINTS_TO(name, parameters, printing) \
    EXPORT int name parameters \
    { \
        struct paced_call call; \
        if (!wrap_begin(&call, fd, CLASS_WRITE)) \
            return -1; \
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

static APART size_t read_items(__typeof__(fread) *call, void *data, size_t size,
                               size_t count, FILE *file)
{
    struct stream stream;
    stream_begin(&stream, file, CLASS_READ, size * count);
    size_t taken = call(data, size, count, file);
    stream_end(&stream, size * taken);
    return taken;
}

EXPORT size_t fread(void *data, size_t size, size_t count, FILE *file)
{
    if (stream_stays_in_buffer(file, CLASS_READ, size * count))
        return real.fread(data, size, count, file);
    return read_items(REAL(fread), data, size, count, file);
}

EXPORT size_t fread_unlocked(void *data, size_t size, size_t count, FILE *file)
{
    if (stream_stays_in_buffer(file, CLASS_READ, size * count))
        return real.fread_unlocked(data, size, count, file);
    return read_items(REAL(fread_unlocked), data, size, count, file);
}

EXPORT size_t __fread_chk(void *data, size_t room, size_t size, size_t count,
                          FILE *file)
{
    struct stream stream;
    stream_begin(&stream, file, CLASS_READ, size * count);
    size_t taken = REAL(__fread_chk)(data, room, size, count, file);
    stream_end(&stream, size * taken);
    return taken;
}

EXPORT size_t __fread_unlocked_chk(void *data, size_t room, size_t size, size_t count,
                                   FILE *file)
{
    struct stream stream;
    stream_begin(&stream, file, CLASS_READ, size * count);
    size_t taken = REAL(__fread_unlocked_chk)(data, room, size, count, file);
    stream_end(&stream, size * taken);
    return taken;
}

static APART int get_one(__typeof__(getc) *call, FILE *file, size_t taken)
{
    struct stream stream;
    stream_begin(&stream, file, CLASS_READ, taken);
    int answer = call(file);
    stream_end(&stream, answer == EOF ? 0 : taken);
    return answer;
}

#define GETS_ONE(name, parameters, served_by, file) \
    EXPORT int name parameters \
    { \
        if (LIKELY(stream_stays_in_buffer(file, CLASS_READ, 1))) \
            return real.served_by(file); \
        return get_one(REAL(served_by), file, 1); \
    }

GETS_ONE(fgetc, (FILE * file), getc, file)
GETS_ONE(getc, (FILE * file), getc, file)
GETS_ONE(_IO_getc, (FILE * file), getc, file)
GETS_ONE(getchar, (void), getc, stdin)
GETS_ONE(fgetc_unlocked, (FILE * file), getc_unlocked, file)
GETS_ONE(getc_unlocked, (FILE * file), getc_unlocked, file)
GETS_ONE(getchar_unlocked, (void), getc_unlocked, stdin)

EXPORT int __uflow(FILE *file)
{
    return get_one(REAL(__uflow), file, 1);
}

EXPORT int __underflow(FILE *file)
{
    return get_one(REAL(__underflow), file, 0);
}

/* The length of a line is known only afterwards: a line that is not longer than what
 * was unread came from the buffer. */
static inline bool line_stays_in_buffer(const FILE *file)
{
    return stream_stays_in_buffer(file, CLASS_READ, STREAM_LINE_BYTES);
}

#define GETS_TEXT(name, parameters, arguments) \
    EXPORT char *name parameters \
    { \
        size_t unread = stream_unread(file); \
        if (LIKELY(line_stays_in_buffer(file))) { \
            char *text = real.name arguments; \
            size_t length = text != NULL ? strlen(text) : 0; \
            if (RARELY(length > unread)) \
                stream_charge_line(file, unread, length); \
            return text; \
        } \
        struct stream stream; \
        stream_begin(&stream, file, CLASS_READ, 0); \
        char *text = REAL(name) arguments; \
        stream_end(&stream, text != NULL ? strlen(text) : 0); \
        return text; \
    }

GETS_TEXT(fgets, (char *line, int room, FILE *file), (line, room, file))
GETS_TEXT(fgets_unlocked, (char *line, int room, FILE *file), (line, room, file))
GETS_TEXT(__fgets_chk, (char *line, size_t real_room, int room, FILE *file),
          (line, real_room, room, file))
GETS_TEXT(__fgets_unlocked_chk, (char *line, size_t real_room, int room, FILE *file),
          (line, real_room, room, file))

static APART ssize_t get_line(char **line, size_t *room, int mark, FILE *file)
{
    struct stream stream;
    stream_begin(&stream, file, CLASS_READ, 0);
    ssize_t length = REAL(getdelim)(line, room, mark, file);
    stream_end(&stream, length > 0 ? (size_t)length : 0);
    return length;
}

EXPORT ssize_t getdelim(char **line, size_t *room, int mark, FILE *file)
{
    if (RARELY(!line_stays_in_buffer(file)))
        return get_line(line, room, mark, file);
    size_t unread = stream_unread(file);
    ssize_t length = real.getdelim(line, room, mark, file);
    if (RARELY(length > (ssize_t)unread))
        stream_charge_line(file, unread, (size_t)length);
    return length;
}

EXPORT ssize_t __getdelim(char **line, size_t *room, int mark, FILE *file)
{
    return getdelim(line, room, mark, file);
}

EXPORT ssize_t getline(char **line, size_t *room, FILE *file)
{
    return getdelim(line, room, '\n', file);
}
