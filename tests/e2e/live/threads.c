/* SPDX-License-Identifier: MIT
 *
 * threads: four threads write their own quarters of two files, sync, read sizes, open
 * and close; a signal handler writes, too. The exit status is 1 if a byte is wrong at
 * the end.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { THREADS = 4, PIECES = 60, PIECE = 5000, QUARTER = PIECES * PIECE };

static int files[2], signalled;

static void on_signal(int number)
{
    (void)number;
    pwrite(signalled, "signal", 6, 0);
}

static unsigned char byte_of(long quarter, int file)
{
    return (unsigned char)(1 + quarter * 2 + file);
}

static void *work(void *of)
{
    long quarter = (long)of;
    unsigned char data[PIECE];
    struct stat status;
    for (int i = 0; i < PIECES; i++) {
        int file = i % 2, piece = i * PIECE;
        for (int part = 0; part < 2; part++) {
            memset(data, byte_of(quarter, part), sizeof data);
            if (pwrite(files[part], data, PIECE, quarter * QUARTER + piece) != PIECE)
                exit(2);
        }
        if (i % 13 == 0 && fsync(files[file]) != 0)
            exit(3);
        if (i % 7 == 0 && (fstat(files[file], &status) != 0 ||
                           status.st_size < quarter * QUARTER + piece + PIECE))
            exit(4);
        if (i % 29 == 28)
            close(dup(files[file]));
        if (i % 31 == 30) {
            char name[] = "tXXXXXX";
            int own = mkstemp(name);
            if (write(own, data, PIECE) != PIECE || unlink(name) != 0 ||
                close(own) != 0)
                exit(5);
        }
    }
    return NULL;
}

static int is_right(int file, const char *name)
{
    static unsigned char data[THREADS * QUARTER];
    int fd = open(name, O_RDONLY);
    if (read(fd, data, sizeof data) != (ssize_t)sizeof data)
        return 0;
    for (long i = 0; i < (long)sizeof data; i++)
        if (data[i] != byte_of(i / QUARTER, file))
            return 0;
    return close(fd) == 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    files[0] = open("a", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    files[1] = open("b", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    signalled = open("c", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    if (close(files[0]) != 0 || close(files[1]) != 0)
        return 6;
    return is_right(0, "a") && is_right(1, "b") ? 0 : 1;
}
