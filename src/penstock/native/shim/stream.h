/* SPDX-License-Identifier: MIT
 *
 * The internal interface of stream.c, for the wrappers of stdio.
 */
#ifndef PENSTOCK_STREAM_H
#define PENSTOCK_STREAM_H

#include "shim.h"

/* True while the process has one thread; older versions of libc do not have it. */
extern char __libc_single_threaded __attribute__((weak));

/* True: the library has started, and no file is staged. */
extern atomic_bool stream_quick;

/* The time of a call is taken if less is left in the buffer, unless its size is known.
 * A longer line may leave the buffer without that. */
enum { STREAM_LINE_BYTES = 256 };

/* A call on a stream, from its begin to its end. */
struct stream {
    FILE *file; /* NULL: not controlled */
    struct paced_call call;
    size_t before;     /* buffered bytes when the call began */
    uint64_t begin_ns; /* 0: not known */
    enum io_class class;
    bool large;  /* `call` is under way */
    bool locked; /* by us */
};

/* Begin and end a call on a stream that may have to be charged. */
void stream_enter(struct stream *, FILE *, enum io_class, size_t size);
void stream_leave(struct stream *, size_t size);

/* Return true if the stream was made by this library, for a staged file. */
static inline bool stream_is_own(int fd)
{
    return RARELY(LOAD(stage_enabled)) && (unsigned)fd < KNOWN_DESCRIPTORS &&
           LOAD(stdio_own_streams[fd]) != STREAM_OF_LIBC;
}

/* Return true if a call may have to be charged. The file of a stream that reads is
 * looked up only when the stream fills its buffer. */
static inline bool stream_is_charged(int fd, enum io_class class)
{
    if (class == CLASS_READ && identity_is_unknown(fd) && LIKELY(!LOAD(stage_enabled)))
        return attached_page != NULL;
    return identity_is_controlled(fd) && !stream_is_own(fd);
}

/* Return true if no other thread can change a buffer between two looks at it. */
static inline bool stream_is_ours_alone(void)
{
    return &__libc_single_threaded != NULL && LIKELY(__libc_single_threaded);
}

static inline size_t stream_span(const char *from, const char *to)
{
    return to > from ? (size_t)(to - from) : 0;
}

static inline size_t stream_unread(const FILE *file)
{
    return stream_span(file->_IO_read_ptr, file->_IO_read_end);
}

/* Return true if libc serves a call of `size` bytes from the buffer alone, and this
 * library has started: the wrapper may call it as real.name. */
static inline bool stream_stays_in_buffer(const FILE *file, enum io_class class,
                                          size_t size)
{
    size_t room = class == CLASS_WRITE
                      ? stream_span(file->_IO_write_ptr, file->_IO_write_end)
                      : stream_unread(file);
    return size <= room && size > 0 && stream_is_ours_alone() && LOAD(stream_quick);
}

/* Begin a call that gives or takes `size` bytes; 0: not known. */
static inline void stream_begin(struct stream *stream, FILE *file, enum io_class class,
                                size_t size)
{
    stream->file = NULL;
    if (!stream_stays_in_buffer(file, class, size) &&
        stream_is_charged(file->_fileno, class))
        stream_enter(stream, file, class, size);
}

static inline void stream_begin_write(struct stream *stream, FILE *file, size_t size)
{
    if (stream_is_own(file->_fileno))
        stdio_note_bytes(file->_fileno);
    stream_begin(stream, file, CLASS_WRITE, size);
}

/* End a call that has given or taken `size` bytes. */
static inline void stream_end(struct stream *stream, size_t size)
{
    if (RARELY(stream->file != NULL))
        stream_leave(stream, size);
}

/* Charge a call that has read a line of `length` bytes, more than the `unread` ones
 * that were in the buffer. */
void stream_charge_line(FILE *, size_t unread, size_t length);

/* Charge the pending bytes of a stream that libc is about to flush. */
void stream_charge_pending(FILE *);

/* libc is about to access the file of a controlled descriptor directly: drain it. */
static inline void stream_drain(int fd)
{
    if (identity_is_stageable(fd))
        stage_write_through(fd);
}

#endif
