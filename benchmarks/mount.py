# SPDX-License-Identifier: MIT
"""Accuracy of the limit of a mount, and its speed beside bindfs and a plain mount.

``python benchmarks/mount.py [--json FILE] [--rate RATE] [--seconds S] [--only PART]``;
needs root, ``/dev/fuse``, libfuse3-dev, and fio for the speed.

``limit``: bandwidth achieved divided by the limit, for 1, 2 and 4 writers with requests
of 64 KiB to 1 MiB, and the difference between the writers' shares. Writers overwrite
the same few MB, because allocating new memory is slow on some machines.

``speed``: requests or MB per second of six mounts of a folder in memory. Unlimited,
limited (to more than is possible), with the two-level scheduler, and the same with an
``[exchange]`` (a controller gets reports), each divided by the better of bindfs and a
pass-through in C that does nothing else (``src/penstock/bench/programs/plain.c``; like
the others, it lets the kernel check permissions). Rounds are interleaved and the best
counts. Where one program waits for each answer, program and mount run on one processor:
they alternate, and where the kernel happens to place them changes the speed by a factor
of two.

The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from penstock.bench.slo.mounts import plain_mount
from penstock.live.wire.curve import make_keys
from penstock.units import format_volume, parse_bandwidth

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
        print(f"{name:44} {value:8.3f}{'' if reached else '   not reached'}")


def measure_limit(report: Report, home: Path, rate: float, seconds: float) -> None:
    """Measure achieved bandwidth divided by the limit, and the spread of the shares."""
    with mounted(home, "--limit", f"{rate} B/s") as point:
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


# --- Speed ------------------------------------------------------------------------

#: Goal: least speed of a mount relative to the better of bindfs and a plain mount.
LEAST_SPEED = {"unlimited": 0.8, "limited": 0.8, "two-level": 0.65, "exchange": 0.65}
#: Files that are created, looked at and removed in one round.
FILES = 1000
METADATA_ROUNDS = 5
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in memory
SLO_FILE = """
[applications.one]
throughput = "1 GB/s"
latency = "50 ms"
[applications.two]
throughput = "1 GB/s"
latency = "50 ms"
[[rules]]
application = "one"
path = "/"
"""
EXCHANGE = """
[exchange]
controller = "{address}"
keys = "{keys}"
storage = "memory"
"""


@contextmanager
def controller(home: Path) -> Iterator[str]:
    """Run a controller during the block; yield what names it in a rule file."""
    folder, keys = home / "controller", home / "keys"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    make_keys(str(keys))
    command = [sys.executable, "-m", "penstock", "serve", "--mode=off"]
    options = [f"--folder={folder}", f"--listen={address}", f"--keys={keys}"]
    daemon = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
    try:
        end_s = time.monotonic() + TIMEOUT_S
        while not (folder / "agent.sock").exists() and time.monotonic() < end_s:
            time.sleep(0.1)
        yield EXCHANGE.format(address=address, keys=keys)
    finally:
        daemon.terminate()
        daemon.wait(TIMEOUT_S)


@contextmanager
def bindfs(home: Path) -> Iterator[Path]:
    """Mount a folder with bindfs during the block; yield the mount point."""
    for name in ("backing", "mount"):
        (home / name).mkdir(parents=True)
    point = home / "mount"
    subprocess.run(["bindfs", home / "backing", point], check=True, timeout=TIMEOUT_S)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True, timeout=TIMEOUT_S)


def threads_of(point: Path) -> list[int]:
    """Return the threads of the process that has mounted something at a folder."""
    threads: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(point) in words:
                threads += [int(thread.name) for thread in (process / "task").iterdir()]
    return threads


@contextmanager
def on_one_processor(point: Path) -> Iterator[None]:
    """Run this program, and the process of a mount, on one processor."""
    all_processors = os.sched_getaffinity(0)
    threads = [0, *threads_of(point)]
    _bind(threads, {max(all_processors)})
    try:
        yield
    finally:
        _bind([*threads, *threads_of(point)], all_processors)


def _bind(threads: list[int], processors: set[int]) -> None:
    for thread in threads:
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, processors)


def fio(rw: str, size: str, jobs: int, folder: Path, seconds: float) -> float:
    """Return requests/s of 4 KiB, or MB/s of larger requests."""
    command = [
        *("fio", "--name=speed", f"--directory={folder}", f"--rw={rw}"),
        *(f"--bs={size}", f"--numjobs={jobs}", "--size=16m", "--time_based"),
        # Reads bypass the cache of the kernel; writes always reach the mount.
        *(f"--runtime={seconds}", f"--direct={int(size == '4k' or rw == 'read')}"),
        *("--ioengine=psync", "--fallocate=none", "--group_reporting"),
        "--output-format=json",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    figures = job["read" if "read" in rw else "write"]
    return float(figures["iops"] if size == "4k" else figures["bw_bytes"] / 1e6)


def per_second(action: Callable[[str], object], folder: Path) -> float:
    """Return how many files per second an action handles."""
    begin_s = time.perf_counter()
    for number in range(FILES):
        action(f"{folder}/c{number}")
    return FILES / (time.perf_counter() - begin_s)


def create(path: str) -> None:
    """Create an empty file."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def metadata(folder: Path) -> dict[str, float]:
    """Return the best of several rounds of creation, look-ups and removal."""
    actions: dict[str, Callable[[str], object]] = {
        "create": create,
        "stat": os.stat,
        "unlink": os.unlink,
    }
    rounds = [
        {name: per_second(action, folder) for name, action in actions.items()}
        for _ in range(METADATA_ROUNDS)
    ]
    return {name: max(each[name] for each in rounds) for name in actions}


def round_of(folder: Path, seconds: float) -> dict[str, float]:
    """Return one measurement of each row."""
    run = partial(fio, folder=folder, seconds=seconds)
    with on_one_processor(folder):
        alone = {
            **metadata(folder),
            "1 MiB writes, 1 job": run("write", "1m", 1),
            "1 MiB reads, 1 job": run("read", "1m", 1),
        }
    return {
        "4 KiB random reads, 4 jobs": run("randread", "4k", 4),
        "4 KiB random writes, 4 jobs": run("randwrite", "4k", 4),
        **alone,
        "1 MiB writes, 4 jobs": run("write", "1m", 4),
        "1 MiB reads, 4 jobs": run("read", "1m", 4),
    }


def speed_mounts(stack: ExitStack, home: Path) -> dict[str, Path]:
    """Mount the folders to compare; return the mount points by name."""
    (home / "slo.toml").write_text(SLO_FILE)
    exchange = stack.enter_context(controller(home))
    (home / "exchange.toml").write_text(SLO_FILE + exchange)
    options = {
        "unlimited": (),
        "limited": ("--limit", "1 TB/s"),
        "two-level": ("--slo", str(home / "slo.toml")),
        "exchange": ("--slo", str(home / "exchange.toml")),
    }
    points = {}
    for name, words in options.items():
        (home / name).mkdir()
        points[name] = stack.enter_context(mounted(home / name, *words))
    if shutil.which("bindfs"):
        points["bindfs"] = stack.enter_context(bindfs(home / "bindfs"))
    points["plain"] = stack.enter_context(plain_mount(home / "plain"))
    return points


def measure_speed(report: Report, home: Path, seconds: float, rounds: int) -> None:
    """Measure the speed of mounts divided by the better of bindfs and plain."""
    best: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        points = speed_mounts(stack, home)
        for _ in range(rounds):
            for name, point in points.items():
                for row, value in round_of(point, seconds).items():
                    speeds = best.setdefault(row, {})
                    speeds[name] = max(speeds.get(name, 0.0), value)
    print(f"{'per second':30}" + "".join(f"{name:>12}" for name in points))
    for row, speeds in best.items():
        print(f"{row:30}" + "".join(f"{speeds[name]:12,.0f}" for name in points))
    for row, speeds in best.items():
        reference = max(speeds["plain"], speeds.get("bindfs", 0.0))
        for name, least in LEAST_SPEED.items():
            ratio = speeds[name] / reference
            report.record(f"speed {row}, {name}", ratio, reached=ratio >= least)


def main() -> int:
    """Run all measurements; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the measurements")
    parser.add_argument("--rate", type=parse_bandwidth, default=50e6)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("limit", "speed"), help="one part only")
    arguments = parser.parse_args()
    report = Report()
    memory = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        home = Path(os.path.realpath(folder))
        if arguments.only != "speed":
            measure_limit(report, home, arguments.rate, arguments.seconds)
        if arguments.only != "limit" and shutil.which("fio"):
            measure_speed(report, home, arguments.seconds / 3, arguments.rounds)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report.figures, indent=2) + "\n")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
