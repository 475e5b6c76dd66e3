# SPDX-License-Identifier: MIT
"""Accuracy of the limit of a mount, and throughput of a mount without a limit.

``python benchmarks/mount.py [--json FILE] [--rate RATE] [--seconds S]``; needs root,
``/dev/fuse`` and libfuse3-dev.

``limit``: bandwidth achieved divided by the limit, for 1, 2 and 4 writers with requests
of 64 KiB to 1 MiB, and the difference between the writers' shares. ``pass``: bandwidth
without a limit divided by that of the backing folder; rounds are interleaved and the
best counts. Writers overwrite the same few MB, because allocating new memory is slow on
some machines.

The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.units import format_bandwidth, format_volume, parse_bandwidth

SIZES = (64 << 10, 256 << 10, 1 << 20)
WRITERS = (1, 2, 4)
#: Goal: largest relative difference between achieved bandwidth and limit.
LIMIT_ERROR = 0.05
#: Goal: largest difference between the shares of two writers, relative to the mean.
SHARE_ERROR = 0.10
#: Size of the file that a writer overwrites.
FILE_BYTES = 8 << 20
TIMEOUT_S = 120.0

#: Writes until it is killed; keeps the number of bytes in a second file.
WRITER = """
import os, sys
path, count, size, span = *sys.argv[1:3], *map(int, sys.argv[3:])
data, moved = bytes(size), 0
fd = os.open(path, os.O_CREAT | os.O_WRONLY)
log = os.open(count, os.O_CREAT | os.O_WRONLY)
while True:
    moved += os.pwrite(fd, data, moved % span)
    os.pwrite(log, moved.to_bytes(8, "big"), 0)
"""


@contextmanager
def mounted(home: Path, *options: str) -> Iterator[Path]:
    """Mount a folder during the block; yield the mount point."""
    backing, point = home / "backing", home / "mnt"
    for folder in (backing, point):
        folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "penstock", "mount", "--folder", str(home / "run")]
    start = [*command, "--background", *options, str(backing), str(point)]
    subprocess.run(start, check=True, timeout=TIMEOUT_S)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True, timeout=TIMEOUT_S)


def write(folder: Path, size: int, writers: int, seconds: float) -> list[float]:
    """Return the bandwidth (bytes/s) of each of several writers."""
    with tempfile.TemporaryDirectory() as counts:
        logs = [Path(counts) / str(number) for number in range(writers)]
        numbers = str(size), str(FILE_BYTES)
        programs = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, folder / f"f{number}", log, *numbers]
            )
            for number, log in enumerate(logs)
        ]
        try:
            while not all(log.exists() and log.stat().st_size for log in logs):
                time.sleep(0.01)
            return _rates(logs, seconds)
        finally:
            for program in programs:
                program.kill()
                program.wait(TIMEOUT_S)


def _rates(logs: list[Path], seconds: float) -> list[float]:
    """Return the growth of each count per second."""
    begin_s, before = time.monotonic(), _counts(logs)
    time.sleep(seconds)
    after, took_s = _counts(logs), time.monotonic() - begin_s
    return [(now - then) / took_s for then, now in zip(before, after, strict=True)]


def _counts(logs: list[Path]) -> list[int]:
    return [int.from_bytes(log.read_bytes(), "big") for log in logs]


class Report:
    """Prints and keeps measurements, and those that miss their goal."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self.missed: list[str] = []

    def record(self, name: str, value: float, *, reached: bool = True) -> None:
        """Print and keep a measurement."""
        self.figures[name] = value
        if not reached:
            self.missed.append(name)
        print(f"{name:40} {value:8.3f}{'' if reached else '   not reached'}")


def measure_limit(report: Report, home: Path, rate: float, seconds: float) -> None:
    """Measure achieved bandwidth divided by the limit, and the spread of the shares."""
    with mounted(home, "--limit", str(rate)) as point:
        for size in SIZES:
            for writers in WRITERS:
                name = f"limit {format_volume(size)} x {writers}"
                shares = write(point, size, writers, seconds)
                ratio = sum(shares) / rate
                report.record(name, ratio, reached=abs(ratio - 1.0) <= LIMIT_ERROR)
                spread = (max(shares) - min(shares)) * writers / sum(shares)
                if writers > 1:
                    report.record(
                        f"{name} spread", spread, reached=spread <= SHARE_ERROR
                    )


def measure_passing(report: Report, home: Path, seconds: float, rounds: int) -> None:
    """Measure bandwidth of a mount without a limit divided by the folder's own."""
    with mounted(home) as point:
        for size in (4 << 10, *SIZES):
            best = {"mount": 0.0, "folder": 0.0}
            for _ in range(rounds):
                for key, folder in (("mount", point), ("folder", home / "backing")):
                    reached = sum(write(folder, size, 1, seconds))
                    best[key] = max(best[key], reached)
            name = f"pass {format_volume(size)} of {format_bandwidth(best['folder'])}"
            report.record(name, best["mount"] / best["folder"])


def main() -> int:
    """Run all measurements; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the measurements")
    parser.add_argument("--rate", type=parse_bandwidth, default=50e6)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(os.path.realpath(folder))
        measure_limit(report, home, arguments.rate, arguments.seconds)
        measure_passing(report, home, arguments.seconds / 3, arguments.rounds)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report.figures, indent=2) + "\n")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
