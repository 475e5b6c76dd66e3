/* SPDX-License-Identifier: MIT
 *
 * crasher SEED COUNT FILE...: make COUNT random calls on the files, drawn from SEED.
 * Write the result of each call, as eight bytes, to standard output at once; then wait
 * for the end of standard input. A test that kills this program knows from the output
 * which calls were acknowledged. test_crash.py draws the same calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

enum { FILES = 2, DATA = 40000 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

static unsigned char data[DATA];

static const unsigned char *data_of(uint64_t turn, size_t size)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)(turn * 31 + i * 7 + 1);
    return data;
}

static int reopen(int fd, const char *path)
{
    if (fd >= 0 && close(fd) != 0)
        return -2;
    return open(path, O_WRONLY | O_CREAT, 0600);
}

static int64_t act(uint64_t turn, int *fd, const char *path)
{
    uint64_t kind = draw(16), size = 1 + draw(DATA - 1), place = draw(200000);
    if (*fd < 0)
        kind = 15;
    if (kind < 8)
        return write(*fd, data_of(turn, size), size);
    if (kind < 12)
        return pwrite(*fd, data_of(turn, size), size, (off_t)place);
    if (kind == 12)
        return lseek(*fd, (off_t)place, SEEK_SET);
    if (kind == 13)
        return ftruncate(*fd, (off_t)place);
    if (kind == 14)
        return fsync(*fd);
    *fd = reopen(*fd, path);
    return *fd >= 0 ? 0 : *fd;
}

int main(int count, char **words)
{
    int fds[FILES] = {-1, -1};
    if (count < 4 || count > 3 + FILES)
        return 2;
    state = strtoull(words[1], NULL, 10) * UINT64_C(2654435761) + 88172645463325252u;
    uint64_t turns = strtoull(words[2], NULL, 10);
    for (uint64_t turn = 0; turn < turns; turn++) {
        uint64_t which = draw((uint64_t)count - 3);
        int64_t answer = act(turn, &fds[which], words[3 + which]);
        if (write(1, &answer, sizeof answer) != sizeof answer)
            return 3;
    }
    char end;
    return read(0, &end, 1) != 0;
}
