/* SPDX-License-Identifier: MIT
 *
 * bbio FOLDER: use the calls of bbio.h (burst-buffer coordination, section IV-B); print
 * how often a drain was announced, and the size of the file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bbio.h"

static int drains;

static void count(int fd)
{
    drains += fd >= 0;
}

int main(int number, char **words)
{
    static char data[5000];
    struct stat status;
    memset(data, 'x', sizeof data);
    if (number != 2 || BBIO_Init(words[1], 1 << 20) != 0)
        return 2;
    int fd = open("a", O_WRONLY | O_CREAT, 0600);
    BBIO_On_flush(fd, count);
    write(fd, data, sizeof data);
    if (BBIO_Flush(fd) != 0 || BBIO_Flush(fd) != 0)
        return 3;
    write(fd, "y", 1);
    if (BBIO_Disable(fd) != 0 || BBIO_Enable(fd) != 0)
        return 4;
    write(fd, "z", 1);
    if (BBIO_Finalize() != 0 || stat("a", &status) != 0)
        return 5;
    printf("%d %ld\n", drains, (long)status.st_size);
    return 0;
}
