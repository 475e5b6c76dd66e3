# SPDX-License-Identifier: MIT
"""How fast a journal absorbs writes, and how well drains keep to their grant.

Absorbing: writes of 1 MiB to a file in memory, plain and through a journal in memory,
one after the other in every round; the figure is the median of the rounds' ratios.
Draining: what close needs for what was absorbed, at a granted rate.

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

from penstock.live.node.page import Page
from penstock.live.node.shim import shim_environment
from penstock.live.staging.rules import Staging

MEMORY = Path("/dev/shm")  # noqa: S108 - where memory is
VOLUME_BYTES = 200 << 20

#: Prints the seconds that writing took, and closing.
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
    """Return the seconds that writing and closing took."""
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
    writing, closing = map(float, done.stdout.split())
    return writing, closing


def main(rounds: int) -> None:
    """Measure, and print."""
    root = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=MEMORY))
    try:
        program, folder, page = root / "writer", root / "files", root / "page"
        (root / "writer.c").write_text(WRITER)
        subprocess.run(
            ["gcc", "-O2", "-o", program, root / "writer.c"], check=True, timeout=60
        )
        folder.mkdir()
        with Page.create(page) as served:
            served.renew(60.0)
            staging = Staging(root / "journals", 2 * VOLUME_BYTES)
            staged = shim_environment(page, [folder], {}, staging=staging)
            ratios = []
            for _ in range(rounds):
                plain, _ = _times(program, folder, {}, VOLUME_BYTES)
                absorbed, _ = _times(program, folder, staged, VOLUME_BYTES)
                ratios.append(plain / absorbed)
            print(f"absorbing: {statistics.median(ratios):.2f} of the plain speed")
            for rate in (50e6, 200e6):
                served.grant(rate)
                served.renew(60.0)
                size = int(rate) >> 20 << 20
                _, closing = _times(program, folder, staged, size)
                served.grant(math.inf)
                print(f"draining: {size / closing / rate:.3f} of {rate / 1e6:g} MB/s")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
