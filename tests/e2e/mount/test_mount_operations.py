# SPDX-License-Identifier: MIT
"""Limits of metadata requests on a real mount; the tests compare counts."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.mounts import Mounted
from support.waiting import until

Mounting = Callable[..., Mounted]

SLO_FILE = """
default = "free"
[applications.slow]
throughput = "1 MB/s"
latency = "1 s"
operations = "40/s"
[applications.free]
throughput = "1 MB/s"
latency = "1 s"
[[rules]]
application = "slow"
program = "slow-program"
"""
#: Creates and removes files until it is killed; counts them in a file.
CREATOR = """
import os, sys
folder, log = sys.argv[1], os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
count = 0
while True:
    path = f"{folder}/{os.getpid()}-{count}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    os.unlink(path)
    count += 1
    os.pwrite(log, b"%10d" % count, 0)
"""
#: Renames files between two folders until it is killed: each thread its own file.
RENAMER = """
import os, sys
from threading import Thread

def rename(number):
    folders = [f"{sys.argv[1]}/{name}" for name in "ab"]
    os.close(os.open(f"{folders[0]}/{number}", os.O_CREAT))
    while True:
        os.rename(f"{folders[0]}/{number}", f"{folders[1]}/{number}")
        folders.reverse()
        done.write(b".")

done = open(sys.argv[2], "ab", buffering=0)
for n in range(int(sys.argv[3])):
    Thread(target=rename, args=[n]).start()
"""


def limited(mount: Mounting, tmp_path: Path, rate: str = "40/s") -> Mounted:
    (tmp_path / "slo.toml").write_text(SLO_FILE.replace("40/s", rate))
    return mount("--slo", str(tmp_path / "slo.toml"))


@contextmanager
def creator(folder: Path, log: Path, *, slow: bool) -> Iterator[None]:
    """Run a program that creates files; its name decides its application."""
    with program(CREATOR, str(folder), str(log), slow=slow):
        until(lambda: count(log) > 0)
        yield


@contextmanager
def renamer(folder: Path, log: Path, *, slow: bool, threads: int = 1) -> Iterator[None]:
    """Run a program that renames files; it writes a byte for each renaming."""
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
    with program(RENAMER, str(folder), str(log), str(threads), slow=slow):
        until(lambda: log.exists() and log.stat().st_size > 0)
        yield


@contextmanager
def program(text: str, *arguments: str, slow: bool) -> Iterator[None]:
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, b'slow-program', 0, 0, 0)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", (rename if slow else "") + text, *arguments],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait(120)


def count(log: Path) -> int:
    return int(log.read_bytes() or b"0") if log.exists() else 0


def test_an_application_makes_as_many_requests_as_its_limit_allows(
    mount: Mounting, tmp_path: Path
) -> None:
    mounted = limited(mount, tmp_path)
    (mounted.point / "own").mkdir()
    log = tmp_path / "log"
    with creator(mounted.point / "own", log, slow=True):
        before, begin_s = operations(mounted, "slow"), time.monotonic()
        until(lambda: operations(mounted, "slow") >= before + 120)
        took_s = time.monotonic() - begin_s
    assert took_s >= 0.8 * 120 / 40


def test_a_folder_that_others_use_does_not_make_them_wait(
    mount: Mounting, tmp_path: Path
) -> None:
    mounted = limited(mount, tmp_path)
    shared = mounted.point / "shared"
    shared.mkdir()
    logs = tmp_path / "slow.log", tmp_path / "free.log"
    with creator(shared, logs[0], slow=True), creator(shared, logs[1], slow=False):
        before, begin_s = count(logs[1]), time.monotonic()
        until(lambda: count(logs[1]) >= before + 400)
        took_s = time.monotonic() - begin_s
    # If it waited for the other, it would create at most one file per turn of 1/40 s.
    assert took_s < 400 / 40


def test_renamings_between_folders_do_not_make_those_of_others_wait(
    mount: Mounting, tmp_path: Path
) -> None:
    """The kernel lets one of them at a mount go at a time."""
    mounted = limited(mount, tmp_path, rate="20/s")
    logs = tmp_path / "slow.log", tmp_path / "free.log"
    with (
        renamer(mounted.point / "one", logs[0], slow=True, threads=10),
        renamer(mounted.point / "two", logs[1], slow=False),
    ):
        # If it waited, almost each would wait for seconds.
        until(lambda: logs[1].stat().st_size >= 1000, 100.0)


def operations(mounted: Mounted, name: str) -> int:
    lines = mounted.status()["order"]["applications"]
    number: int = next(a["operations"] for a in lines if a["name"] == name)
    return number
