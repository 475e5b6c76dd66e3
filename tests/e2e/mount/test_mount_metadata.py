# SPDX-License-Identifier: MIT
"""Metadata requests of a real mount are shared fairly; the tests compare counts.

The storage of the mounts under test is itself a mount: its limit of metadata requests
makes it slow, and stopping its process makes it hang.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.mounts import Mounted
from support.waiting import until

Mounting = Callable[..., Mounted]

#: A storage that executes so many metadata requests per second.
SLOW_FILE = """
default = "all"
[applications.all]
throughput = "1 MB/s"
latency = "1 s"
operations = "400/s"
"""
#: Two applications; the folder of a file says which one it belongs to.
SLO_FILE = """
metadata_depth = {depth}
[applications.one]
throughput = "{share} MB/s"
latency = "1 s"
[applications.two]
throughput = "1 MB/s"
latency = "1 s"
[[rules]]
application = "one"
path = "/one"
[[rules]]
application = "two"
path = "/two"
"""
#: Creates files until it is killed: every thread in a folder of its own.
CREATOR = """
import os, sys
from threading import Thread

def create(folder):
    os.makedirs(folder, exist_ok=True)
    for number in range(1_000_000):
        os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_EXCL))

for n in range(int(sys.argv[2])):
    Thread(target=create, args=[f"{sys.argv[1]}/{n}"]).start()
"""


@pytest.fixture
def storage(mount: Mounting, tmp_path: Path) -> Mounted:
    """Return a slow storage with a folder for each application."""
    (tmp_path / "slow.toml").write_text(SLOW_FILE)
    slow = mount("--slo", str(tmp_path / "slow.toml"))
    for name in ("one", "two"):
        (slow.backing / name).mkdir()
    return slow


@pytest.fixture
def fair(mount: Mounting, tmp_path: Path) -> Callable[..., Mounted]:
    """Return a function that mounts a folder for two applications."""

    def make(backing: Path, *, depth: int, share: int = 1) -> Mounted:
        (tmp_path / "fair.toml").write_text(SLO_FILE.format(depth=depth, share=share))
        return mount("--slo", str(tmp_path / "fair.toml"), backing=backing)

    return make


@contextmanager
def creator(folder: Path, threads: int) -> Iterator[None]:
    """Create files in `folder` during the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", CREATOR, str(folder), str(threads)],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait(120)


def files(storage: Mounted, name: str) -> int:
    """Return how many files an application has created."""
    return sum(len(names) for _, _, names in os.walk(storage.backing / name))


def created(fair: Mounted, storage: Mounted, *, one: int, two: int) -> list[int]:
    """Return what two applications with so many threads create in the same time."""
    point = fair.point
    with creator(point / "one", one), creator(point / "two", two):
        until(lambda: min(files(storage, "one"), files(storage, "two")) > 0)
        before = [files(storage, name) for name in ("one", "two")]
        until(lambda: files(storage, "one") + files(storage, "two") > sum(before) + 150)
        after = [files(storage, name) for name in ("one", "two")]
    return [now - then for now, then in zip(after, before, strict=True)]


def test_one_thread_creates_as_many_files_as_32(
    storage: Mounted, fair: Mounting
) -> None:
    mounted = fair(storage.point, depth=1)
    many, few = created(mounted, storage, one=32, two=1)
    # Without a scheduler it would create about 1 file in 33.
    assert few >= many / 2.5


def test_files_are_created_in_the_ratio_of_the_shares(
    storage: Mounted, fair: Mounting
) -> None:
    mounted = fair(storage.point, depth=1, share=3)
    more, less = created(mounted, storage, one=8, two=8)
    assert 2.0 <= more / less <= 4.5


def test_an_application_whose_folder_hangs_does_not_hold_up_another(
    mount: Mounting, fair: Mounting, tmp_path: Path
) -> None:
    backing = tmp_path / "backing"
    for name in ("one", "two"):
        (backing / name).mkdir(parents=True)
    hanging = mount(point=backing / "one")
    folders = [hanging.backing / str(n) for n in range(16)]
    for folder in folders:
        folder.mkdir()
    mounted = fair(backing, depth=4)
    with creator(mounted.point / "one", 16), creator(mounted.point / "two", 1):
        until(lambda: all(any(folder.iterdir()) for folder in folders))
        os.kill(hanging.pid, signal.SIGSTOP)
        try:
            until(lambda: queued(mounted, "one") > 0)
            before = len(list((backing / "two").rglob("*")))
            until(lambda: len(list((backing / "two").rglob("*"))) > before + 100)
            assert queued(mounted, "one") > 0
            assert mounted.status()["order"]["metadata_outstanding"] >= 3
        finally:
            os.kill(hanging.pid, signal.SIGCONT)
        until(lambda: queued(mounted, "one") == 0)


def queued(mounted: Mounted, name: str) -> int:
    lines = mounted.status()["order"]["applications"]
    number: int = next(a["queued_operations"] for a in lines if a["name"] == name)
    return number
