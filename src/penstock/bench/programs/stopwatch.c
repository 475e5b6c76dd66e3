/* SPDX-License-Identifier: MIT
 *
 * stopwatch REPORT PROGRAM [ARGUMENT ...]: run the program and write its wall-clock
 * time and the processor time of its processes (ns) to the file REPORT. The exit status
 * is that of the program, or 127 if it cannot be started or is ended by a signal.
 */
#define _GNU_SOURCE
#include "clock.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Return the processor time of all processes that have ended. */
static long long processor_ns(void)
{
    struct rusage use;
    getrusage(RUSAGE_CHILDREN, &use);
    long long seconds = use.ru_utime.tv_sec + use.ru_stime.tv_sec;
    return seconds * 1000000000LL +
           (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000;
}

int main(int count, char **words)
{
    if (count < 3)
        return 127;
    pid_t child;
    int status;
    long long begun = now_ns();
    if (posix_spawnp(&child, words[2], NULL, NULL, words + 2, environ) != 0 ||
        waitpid(child, &status, 0) != child)
        return 127;
    long long ended = now_ns();
    int report = open(words[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (report < 0 || dprintf(report, "%lld %lld\n", ended - begun, processor_ns()) < 0)
        return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}
