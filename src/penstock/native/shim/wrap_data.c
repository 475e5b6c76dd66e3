/* SPDX-License-Identifier: MIT
 *
 * Calls that read or write a descriptor.
 *
 * A plain write is charged before it is made, since its size is known. A gathering
 * write is charged afterwards: its vector is not read here, because a bad pointer must
 * come back from the kernel as EFAULT.
 */
#include "shim.h"

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
    struct paced_call call;
    ssize_t staged;
    if (wrap_begin_write(&call, fd, data, size, HERE, &staged))
        return staged;
    return wrap_end_write(&call, fd, REAL(write)(fd, data, size));
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    struct paced_call call;
    ssize_t staged;
    if (wrap_begin_write(&call, fd, data, size, offset, &staged))
        return staged;
    return wrap_end_write(&call, fd, REAL(pwrite)(fd, data, size, offset));
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    struct paced_call call;
    ssize_t staged;
    if (wrap_begin_write(&call, fd, data, size, offset, &staged))
        return staged;
    return wrap_end_write(&call, fd, REAL(pwrite64)(fd, data, size, offset));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    struct paced_call call;
    ssize_t staged;
    if (wrap_begin_gather(&call, fd, parts, count, HERE, &staged))
        return staged;
    return wrap_end_write(&call, fd, REAL(writev)(fd, parts, count));
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    struct paced_call call;
    ssize_t staged;
    if (wrap_begin_gather(&call, fd, parts, count, offset, &staged))
        return staged;
    return wrap_end_write(&call, fd, REAL(pwritev)(fd, parts, count, offset));
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    struct paced_call call;
    ssize_t staged;
    if (wrap_begin_gather(&call, fd, parts, count, offset, &staged))
        return staged;
    return wrap_end_write(&call, fd, REAL(pwritev64)(fd, parts, count, offset));
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset,
                        int flags)
{
    struct paced_call call;
    ssize_t staged;
    if (flags != 0 && !wrap_begin(&call, fd, CLASS_WRITE))
        return -1;
    if (flags == 0 && wrap_begin_gather(&call, fd, parts, count,
                                        offset == -1 ? HERE : offset, &staged))
        return staged;
    return wrap_end_write(&call, fd, REAL(pwritev2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset,
                           int flags)
{
    struct paced_call call;
    ssize_t staged;
    if (flags != 0 && !wrap_begin(&call, fd, CLASS_WRITE))
        return -1;
    if (flags == 0 && wrap_begin_gather(&call, fd, parts, count,
                                        offset == -1 ? HERE : offset, &staged))
        return staged;
    return wrap_end_write(&call, fd,
                          REAL(pwritev64v2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t read(int fd, void *data, size_t size)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, size);
    return wrap_end(&call, REAL(read)(fd, data, size));
}

EXPORT ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, size);
    return wrap_end(&call, REAL(pread)(fd, data, size, offset));
}

EXPORT ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, size);
    return wrap_end(&call, REAL(pread64)(fd, data, size, offset));
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, 0);
    return wrap_end(&call, REAL(readv)(fd, parts, count));
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, 0);
    return wrap_end(&call, REAL(preadv)(fd, parts, count, offset));
}

EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, 0);
    return wrap_end(&call, REAL(preadv64)(fd, parts, count, offset));
}

EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset,
                       int flags)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, 0);
    return wrap_end(&call, REAL(preadv2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset,
                          int flags)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, 0);
    return wrap_end(&call, REAL(preadv64v2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, size);
    return wrap_end(&call, REAL(__read_chk)(fd, data, size, room));
}

EXPORT ssize_t __pread_chk(int fd, void *data, size_t size, off_t offset, size_t room)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, size);
    return wrap_end(&call, REAL(__pread_chk)(fd, data, size, offset, room));
}

EXPORT ssize_t __pread64_chk(int fd, void *data, size_t size, off64_t offset,
                             size_t room)
{
    struct paced_call call;
    wrap_begin_read(&call, fd, size);
    return wrap_end(&call, REAL(__pread64_chk)(fd, data, size, offset, room));
}
