/* SPDX-License-Identifier: MIT
 *
 * Output of wide characters. Streams of libc handle it themselves, after the file was
 * drained. Our own streams of staged files (wrap_stdio.c) take bytes only: text for
 * them is converted here as libc does it, to the locale of the first wide call, with
 * transliteration.
 */
#include <errno.h>
#include <iconv.h>
#include <langinfo.h>
#include <stdarg.h>
#include <wchar.h>

#include "shim.h"

static iconv_t converters[KNOWN_DESCRIPTORS]; /* for our own wide streams */

/* Return true if this is one of our own streams; drain the file of any other. */
static bool is_own_stream(const FILE *file)
{
    int fd = file->_fileno;
    if ((unsigned)fd >= KNOWN_DESCRIPTORS)
        return false;
    if (RARELY(LOAD(stdio_own_streams[fd]) != STREAM_OF_LIBC))
        return true;
    if (RARELY(LOAD(stage_enabled)) && identity_is_controlled(fd) &&
        identity_is_stageable(fd))
        stage_write_through(fd);
    return false;
}

static iconv_t converter_of_locale(void)
{
    char name[128];
    snprintf(name, sizeof name, "%s//TRANSLIT", nl_langinfo(CODESET));
    return iconv_open(name, "WCHAR_T");
}

/* Make an unused stream wide; return whether it is wide now. Its lock is held. */
static bool turn_wide(const FILE *file)
{
    int fd = file->_fileno;
    if (LOAD(stdio_own_streams[fd]) == STREAM_UNUSED) {
        converters[fd] = converter_of_locale();
        STORE(stdio_own_streams[fd], STREAM_WIDE);
    }
    return LOAD(stdio_own_streams[fd]) == STREAM_WIDE && converters[fd] != (iconv_t)-1;
}

void stdio_end_own_stream(int fd)
{
    bool wide = LOAD(stdio_own_streams[fd]) == STREAM_WIDE;
    STORE(stdio_own_streams[fd], STREAM_OF_LIBC);
    if (wide && converters[fd] != (iconv_t)-1)
        iconv_close(converters[fd]);
}

/* Convert and write; false, with errno: a character does not exist in the locale, or
 * the write failed. */
static bool convert(FILE *file, const wchar_t *text, size_t count)
{
    char *from = (char *)(uintptr_t)text;
    size_t left = count * sizeof *text;
    while (left > 0) {
        char bytes[1024], *to = bytes;
        size_t room = sizeof bytes;
        size_t answer = iconv(converters[file->_fileno], &from, &left, &to, &room);
        bool unknown = answer == (size_t)-1 && errno != E2BIG;
        size_t size = (size_t)(to - bytes);
        if (REAL(fwrite)(bytes, 1, size, file) != size)
            return false;
        if (unknown) {
            file->_flags |= _IO_ERR_SEEN;
            errno = EILSEQ;
            return false;
        }
    }
    return true;
}

static bool write_wide(FILE *file, const wchar_t *text, size_t count)
{
    int kept_errno = errno;
    flockfile(file);
    bool done = turn_wide(file) && convert(file, text, count);
    funlockfile(file);
    if (done)
        errno = kept_errno;
    return done;
}

EXPORT int fwide(FILE *file, int mode)
{
    if (!is_own_stream(file))
        return REAL(fwide)(file, mode);
    flockfile(file);
    if (mode > 0)
        turn_wide(file);
    else if (mode < 0)
        stdio_note_bytes(file->_fileno);
    uint8_t use = LOAD(stdio_own_streams[file->_fileno]);
    funlockfile(file);
    return use == STREAM_WIDE ? 1 : use == STREAM_OF_BYTES ? -1 : 0;
}

#define PUTS_CHARACTER(name, parameters, arguments, file) \
    EXPORT wint_t name parameters \
    { \
        if (LIKELY(!is_own_stream(file))) \
            return REAL(name) arguments; \
        return write_wide(file, &c, 1) ? (wint_t)c : WEOF; \
    }

PUTS_CHARACTER(fputwc, (wchar_t c, FILE *file), (c, file), file)
PUTS_CHARACTER(fputwc_unlocked, (wchar_t c, FILE *file), (c, file), file)
PUTS_CHARACTER(putwc, (wchar_t c, FILE *file), (c, file), file)
PUTS_CHARACTER(putwc_unlocked, (wchar_t c, FILE *file), (c, file), file)
PUTS_CHARACTER(putwchar, (wchar_t c), (c), stdout)
PUTS_CHARACTER(putwchar_unlocked, (wchar_t c), (c), stdout)

#define PUTS_TEXT(name) \
    EXPORT int name(const wchar_t *text, FILE *file) \
    { \
        if (LIKELY(!is_own_stream(file))) \
            return REAL(name)(text, file); \
        return write_wide(file, text, wcslen(text)) ? 1 : -1; \
    }

PUTS_TEXT(fputws)
PUTS_TEXT(fputws_unlocked)

/* The flag of the __*_chk functions of _FORTIFY_SOURCE, or none. */
enum { UNCHECKED = -1 };

static int print_as_is(FILE *file, int flag, const wchar_t *format, va_list rest)
{
    if (flag == UNCHECKED)
        return REAL(vfwprintf)(file, format, rest);
    return REAL(__vfwprintf_chk)(file, flag, format, rest);
}

static int print_wide(FILE *file, int flag, const wchar_t *format, va_list rest)
{
    wchar_t *text = NULL;
    size_t size = 0;
    if (LIKELY(!is_own_stream(file)))
        return print_as_is(file, flag, format, rest);
    FILE *memory = open_wmemstream(&text, &size);
    if (memory == NULL)
        return -1;
    int count = print_as_is(memory, flag, format, rest);
    int kept_errno = errno;
    REAL(fclose)(memory);
    errno = kept_errno;
    if (!write_wide(file, text, size))
        count = -1;
    free(text);
    return count;
}

EXPORT int vfwprintf(FILE *file, const wchar_t *format, va_list rest)
{
    return print_wide(file, UNCHECKED, format, rest);
}

EXPORT int vwprintf(const wchar_t *format, va_list rest)
{
    return print_wide(stdout, UNCHECKED, format, rest);
}

EXPORT int __vfwprintf_chk(FILE *file, int flag, const wchar_t *format, va_list rest)
{
    return print_wide(file, flag, format, rest);
}

EXPORT int __vwprintf_chk(int flag, const wchar_t *format, va_list rest)
{
    return print_wide(stdout, flag, format, rest);
}

#define PRINTS(name, parameters, file, flag) \
    EXPORT int name parameters \
    { \
        va_list rest; \
        va_start(rest, format); \
        int count = print_wide(file, flag, format, rest); \
        va_end(rest); \
        return count; \
    }

PRINTS(fwprintf, (FILE * file, const wchar_t *format, ...), file, UNCHECKED)
PRINTS(wprintf, (const wchar_t *format, ...), stdout, UNCHECKED)
PRINTS(__fwprintf_chk, (FILE * file, int flag, const wchar_t *format, ...), file, flag)
PRINTS(__wprintf_chk, (int flag, const wchar_t *format, ...), stdout, flag)
