/* SPDX-License-Identifier: MIT
 *
 * For programs: the interface of burst-buffer coordination, section IV-B, to staged
 * writes.
 *
 *     #include <bbio.h>
 *
 *     BBIO_Init("/local/ssd", 1 << 30);    folder (NULL: memory), bytes for each file
 *     ... write, pwrite, fwrite ...        into the buffer
 *     BBIO_Flush(fd);                      into the file
 *     BBIO_Finalize();
 *
 * Link with libbbio.a, and preload libbbio_posix.so to buffer:
 *
 *     cc program.c -lbbio                  (before glibc 2.34: -lbbio -ldl)
 *     LD_PRELOAD=libbbio_posix.so ./a.out
 *
 * Without the preload library nothing is buffered: each function does nothing and
 * returns 0. With it, each returns 0, or -1 and sets errno. `penstock run` preloads the
 * same code under its own name; `penstock run --stage` stages the writes of any program
 * without a call.
 */
#ifndef PENSTOCK_BBIO_H
#define PENSTOCK_BBIO_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*BBIO_Callback)(int fd);

/* Buffer what is written from now on to files that are opened from now on, outside of
 * system directories (/proc, /sys, /dev). Under `penstock run`, a file must be in a
 * controlled folder to be buffered: those of the setting `prefixes`, by default the
 * working directory of the program. Writes to other files, and to files in `path`, go
 * to the file. `path` is a folder that exists, belongs to this user, and that no other
 * user can write to (else EACCES; NULL: memory). The buffer of one file grows up to
 * `size` bytes (0: 256 MiB; at least 64 KiB; rounded down to pages of 4 KiB). A full
 * buffer is flushed as far as there must be room. A write that is larger than `size`
 * flushes the buffer and goes to the file. */
int BBIO_Init(const char *path, size_t size);

/* Buffer what is written to this descriptor, also if it was opened before BBIO_Init,
 * inherited, or disabled. Its file must be in a folder as BBIO_Init says; for another
 * file this does nothing. EBADF: it is not open. */
int BBIO_Enable(int fd);

/* Flush, and write to the file directly from now on. A read does the same. */
int BBIO_Disable(int fd);

/* Flush now. */
int BBIO_Flush(int fd);

/* Flush everything, and buffer no more. */
int BBIO_Finalize(void);

/* Have `callback` called with `fd` before every flush of data: by BBIO_Flush,
 * BBIO_Disable and BBIO_Finalize, by fsync and close, and when the buffer is full; not
 * if the buffer is empty. It may wait. A flush that it makes itself does not call it
 * again. It stays until `fd` is closed, also while buffering is disabled; NULL removes
 * it. When the program returns from main or calls exit, buffers are flushed as by
 * BBIO_Finalize. EBADF: `fd` is not open; EINVAL: BBIO_Init was not called. */
int BBIO_On_flush(int fd, BBIO_Callback callback);

#ifdef __cplusplus
}
#endif

#endif
