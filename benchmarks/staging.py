# SPDX-License-Identifier: MIT
"""Speed at which a journal absorbs writes, and accuracy of the drain rate.

Absorbing: in every round, writes of 1 MiB go to a file in memory, first directly and
then through a journal in memory; the result is the median ratio of the speeds.
Draining: the rate at which close() drains the journal, divided by the granted rate.

    python benchmarks/staging.py [ROUNDS]
"""

from __future__ import annotations

import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import Page
from penstock.live.staging.rules import Staging

MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory
VOLUME_BYTES = 200 << 20

#: Prints the times of writing and of closing (s).
WRITER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(int count, char **words)
{
    size_t size = 1 << 20, left = strtoul(words[count - 1], NULL, 10);
    char *data = memset(malloc(size), 7, size);
    int fd = open("file", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    double began = now();
    for (; left > 0; left -= size)
        if (write(fd, data, size) != (ssize_t)size)
            return 1;
    double written = now();
    if (close(fd) != 0)
        return 2;
    printf("%.6f %.6f\n", written - began, now() - written);
    return 0;
}
"""


def _times(
    program: Path, folder: Path, environment: Mapping[str, str], size: int
) -> tuple[float, float]:
    """Return the times of writing and of closing (s)."""
    (folder / "file").unlink(missing_ok=True)
    done = subprocess.run(
        [program, str(size)],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    writing_s, closing_s = map(float, done.stdout.split())
    return writing_s, closing_s


def main(rounds: int) -> None:
    """Measure and print."""
    root = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=MEMORY))
    try:
        program, folder, page = root / "writer", root / "files", root / "page"
        (root / "writer.c").write_text(WRITER)
        subprocess.run(
            ["gcc", "-O2", "-o", program, root / "writer.c"], check=True, timeout=60
        )
        folder.mkdir()
        with Page.create(page) as job_page:
            job_page.renew(60.0)
            staging = Staging(root / "journals", 2 * VOLUME_BYTES)
            environment = shim_environment(page, [folder], {}, staging=staging)
            ratios = []
            for _ in range(rounds):
                direct_s, _ = _times(program, folder, {}, VOLUME_BYTES)
                staged_s, _ = _times(program, folder, environment, VOLUME_BYTES)
                ratios.append(direct_s / staged_s)
            print(f"absorbing: {statistics.median(ratios):.2f} of the plain speed")
            for rate in (50e6, 200e6):
                job_page.grant(rate)
                job_page.renew(60.0)
                size = int(rate) >> 20 << 20
                _, closing_s = _times(program, folder, environment, size)
                job_page.grant(math.inf)
                print(f"draining: {size / closing_s / rate:.3f} of {rate / 1e6:g} MB/s")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
