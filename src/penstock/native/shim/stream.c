/* SPDX-License-Identifier: MIT
 *
 * Charging of stdio streams. libc fills and empties their buffers by internal calls
 * that cannot be wrapped, so a call is charged by what it does to the buffer:
 *
 *     bytes written to the kernel = bytes given + pending before - pending after,
 *     bytes read from the kernel  = bytes taken + unread after - unread before.
 *
 * A call that stays within the buffer costs two looks at it, some nanoseconds. At the
 * end of the program, bytes that are still pending are charged for stdout only: other
 * streams are not known.
 */
#include <stdio_ext.h>

#include "stream.h"

atomic_bool stream_quick;

/* Calls of at least this size are paced like a call on the descriptor, from begin to
 * end; smaller ones move at most a buffer and are charged afterwards. */
enum { LARGE_BYTES = 4096 };

static size_t buffered(const FILE *file, enum io_class class)
{
    return class == CLASS_WRITE ? stream_span(file->_IO_write_base, file->_IO_write_ptr)
                                : stream_unread(file);
}

/* Return true if a call of `size` bytes (0: not known) may leave the buffer. */
static bool may_leave_buffer(const struct stream *stream, size_t size)
{
    const FILE *file = stream->file;
    size_t room = stream->class == CLASS_WRITE
                      ? stream_span(file->_IO_write_ptr, file->_IO_buf_end)
                      : stream->before;
    return room < (size > STREAM_LINE_BYTES ? size : STREAM_LINE_BYTES);
}

static bool begin_large(struct stream *stream, int fd, size_t size)
{
    if (stream->class == CLASS_READ)
        wrap_begin_read(&stream->call, fd, size);
    else
        wrap_begin_call(&stream->call, fd, stream->class, size);
    return stream->call.class != NULL;
}

/* The lock of the stream keeps other threads from its buffer between the two looks at
 * it. No wait for a grant happens under this lock. A process with one thread does
 * without: a lock also makes all later calls of libc on this stream slower. */
void stream_enter(struct stream *stream, FILE *file, enum io_class class, size_t size)
{
    int fd = file->_fileno;
    stream->file = file;
    stream->class = class;
    stream->large = false;
    stream_drain(fd);
    if (RARELY(size >= LARGE_BYTES))
        stream->large = begin_large(stream, fd, size);
    stream->locked = !stream_is_ours_alone();
    if (RARELY(stream->locked))
        flockfile(file);
    stream->before = buffered(file, class);
    bool timed = !stream->large && may_leave_buffer(stream, size);
    stream->begin_ns = RARELY(timed) ? pace_now_ns() : 0;
}

static SLOW void charge(struct stream *stream, int fd, size_t moved)
{
    if (stream->large)
        pace_end(&stream->call, moved);
    else
        wrap_charge_past(fd, stream->class, moved,
                         stream->begin_ns != 0 ? pace_now_ns() - stream->begin_ns : 0);
}

void stream_charge_line(FILE *file, size_t unread, size_t length)
{
    struct stream stream;
    if (!stream_is_charged(file->_fileno, CLASS_READ))
        return;
    stream.file = file;
    stream.class = CLASS_READ;
    stream.before = unread;
    stream.begin_ns = 0;
    stream.large = stream.locked = false;
    stream_leave(&stream, length);
}

void stream_leave(struct stream *stream, size_t size)
{
    int fd = stream->file->_fileno;
    size_t after = buffered(stream->file, stream->class);
    size_t plus = stream->class == CLASS_WRITE ? stream->before : after;
    size_t minus = stream->class == CLASS_WRITE ? after : stream->before;
    if (RARELY(stream->locked))
        funlockfile(stream->file);
    size_t moved = size + plus > minus ? size + plus - minus : 0;
    if (RARELY(stream->large || moved > 0))
        charge(stream, fd, moved);
}

void stream_charge_pending(FILE *file)
{
    size_t pending = __fpending(file);
    int fd = file->_fileno;
    /* Our own streams are charged by the wrapped write(). */
    if (pending == 0 || !identity_is_controlled(fd) || stream_is_own(fd))
        return;
    stream_drain(fd);
    wrap_charge_past(fd, CLASS_WRITE, pending, 0);
}
