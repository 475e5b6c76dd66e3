# SPDX-License-Identifier: MIT
"""How exactly a mount keeps its limit, and what it passes without one.

``python benchmarks/mount.py [--json FILE] [--rate RATE] [--seconds S]``; needs root,
``/dev/fuse`` and pyfuse3.

``limit``: bandwidth reached over that asked for, by 1, 2 and 4 writers, in requests
of 64 KiB to 1 MiB; how far the writers' shares lie apart. ``pass``: bandwidth without a
limit over that of the backing folder, interleaved, the best of several rounds. Writers
write the same few MB again and again: fresh memory is slow on some machines.

Exit status 1 if a figure is not reached.
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
#: Most that the bandwidth reached may differ from the one asked for.
LIMIT_ERROR = 0.05
#: Most that the shares of two writers may differ, over their mean.
SHARE_ERROR = 0.10
#: Bytes of the file that a writer writes again and again.
SPAN = 8 << 20
LIMIT_S = 120.0

#: Writes until it is ended; keeps the count of its bytes in a second file.
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
    """Mount for a while."""
    backing, point = home / "backing", home / "mnt"
    for folder in (backing, point):
        folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "penstock", "mount", "--folder", str(home / "run")]
    start = [*command, "--background", *options, str(backing), str(point)]
    subprocess.run(start, check=True, timeout=LIMIT_S)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True, timeout=LIMIT_S)


def write(folder: Path, size: int, writers: int, seconds: float) -> list[float]:
    """Return the bandwidth (bytes/s) that each of several writers reaches."""
    with tempfile.TemporaryDirectory() as counts:
        logs = [Path(counts) / str(who) for who in range(writers)]
        numbers = str(size), str(SPAN)
        programs = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, folder / f"f{who}", log, *numbers]
            )
            for who, log in enumerate(logs)
        ]
        try:
            while not all(log.exists() and log.stat().st_size for log in logs):
                time.sleep(0.01)
            return _rates(logs, seconds)
        finally:
            for program in programs:
                program.kill()
                program.wait(LIMIT_S)


def _rates(logs: list[Path], seconds: float) -> list[float]:
    """Return by how much counts grow per second."""
    began, before = time.monotonic(), _counts(logs)
    time.sleep(seconds)
    after, took = _counts(logs), time.monotonic() - began
    return [(now - then) / took for then, now in zip(before, after, strict=True)]


def _counts(logs: list[Path]) -> list[int]:
    return [int.from_bytes(log.read_bytes(), "big") for log in logs]


class Report:
    """Figures, printed as they come, and whether all are reached."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self.missed: list[str] = []

    def note(self, name: str, value: float, *, reached: bool = True) -> None:
        """Print a figure and keep it."""
        self.figures[name] = value
        if not reached:
            self.missed.append(name)
        print(f"{name:40} {value:8.3f}{'' if reached else '   not reached'}")


def measure_limit(report: Report, home: Path, rate: float, seconds: float) -> None:
    """Note bandwidth reached over bandwidth asked for, and how equal the shares are."""
    with mounted(home, "--limit", str(rate)) as point:
        for size in SIZES:
            for writers in WRITERS:
                name = f"limit {format_volume(size)} x {writers}"
                shares = write(point, size, writers, seconds)
                ratio = sum(shares) / rate
                report.note(name, ratio, reached=abs(ratio - 1.0) <= LIMIT_ERROR)
                spread = (max(shares) - min(shares)) * writers / sum(shares)
                if writers > 1:
                    report.note(f"{name} spread", spread, reached=spread <= SHARE_ERROR)


def measure_passing(report: Report, home: Path, seconds: float, rounds: int) -> None:
    """Note bandwidth through an unlimited mount over that of the folder below."""
    with mounted(home) as point:
        for size in (4 << 10, *SIZES):
            best = {"mount": 0.0, "folder": 0.0}
            for _ in range(rounds):
                for key, folder in (("mount", point), ("folder", home / "backing")):
                    reached = sum(write(folder, size, 1, seconds))
                    best[key] = max(best[key], reached)
            name = f"pass {format_volume(size)} of {format_bandwidth(best['folder'])}"
            report.note(name, best["mount"] / best["folder"])


def main() -> int:
    """Run all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures")
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
