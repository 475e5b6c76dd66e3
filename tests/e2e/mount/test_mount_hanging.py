# SPDX-License-Identifier: MIT
"""Metadata requests that hang at the storage leave threads for reads and writes.

The folder that hangs is itself a mount, whose process is stopped.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.mounts import Mounted
from support.waiting import LIMIT_S, until

Mounting = Callable[..., Mounted]

#: More than there are threads that read requests (MAX_THREADS in session.c).
HANGING = 150
#: Two applications in one folder: their requests go to the storage at once.
SLO_FILE = """
default = "rest"
[applications.asker]
throughput = "1 MB/s"
latency = "1 s"
[applications.rest]
throughput = "1 MB/s"
latency = "1 s"
[[rules]]
application = "asker"
program = "asker"
"""
#: Asks for many names at the same time, when it gets a line.
ASKER = """
import ctypes, os, sys
from threading import Thread

ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    Thread(target=os.path.exists, args=[f"{sys.argv[2]}/{sys.argv[1]}{number}"]).start()
"""
#: Opens a file, and when it gets a line, overwrites and reads its last byte.
READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
print("open", flush=True)
sys.stdin.readline()
os.pwrite(fd, b"z", 1 << 20)
print(os.pread(fd, 1, 1 << 20).decode(), flush=True)
"""


@contextmanager
def program(text: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", text, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def tell(process: subprocess.Popen[str]) -> None:
    """Send a line to a program."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def under_way(mounted: Mounted) -> int:
    number: int = mounted.status()["order"]["metadata_outstanding"]
    return number


def lookups(mounted: Mounted) -> int:
    number: int = mounted.status()["metadata"]["lookup"]
    return number


@contextmanager
def folders(
    mount: Mounting, tmp_path: Path, *options: str
) -> Iterator[tuple[Mounted, Mounted, subprocess.Popen[str]]]:
    """Mount a folder with one inside that can hang; open a file beside it."""
    backing = tmp_path / "backing"
    (backing / "hanging").mkdir(parents=True)
    (backing / "file").write_bytes(bytes((1 << 20) + 1))
    hanging = mount(point=backing / "hanging")
    mounted = mount(*options, backing=backing)
    # The kernel must know the folder: only one thread looks it up for the first time.
    assert (mounted.point / "hanging").is_dir()
    with program(READER, str(mounted.point / "file")) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        yield hanging, mounted, reader


def test_requests_that_hang_leave_threads_for_reads_and_writes(
    mount: Mounting, tmp_path: Path
) -> None:
    (tmp_path / "slo.toml").write_text(SLO_FILE)
    options = "--slo", str(tmp_path / "slo.toml")
    with folders(mount, tmp_path, *options) as (hanging, mounted, reader):
        folder = str(mounted.point / "hanging")
        with (
            program(ASKER, "other", folder, "1") as other,
            program(ASKER, "asker", folder, str(HANGING)) as asker,
        ):
            with stopped(hanging.pid):
                tell(other)
                until(lambda: under_way(mounted) >= 1)
                tell(asker)
                until(lambda: under_way(mounted) >= HANGING)
                output, _ = reader.communicate("go\n", timeout=LIMIT_S)
                assert output == "z\n"
                assert under_way(mounted) >= HANGING
            until(lambda: under_way(mounted) == 0)


def test_they_do_so_without_a_scheduler(mount: Mounting, tmp_path: Path) -> None:
    with folders(mount, tmp_path) as (hanging, mounted, reader):
        folder = str(mounted.point / "hanging")
        with program(ASKER, "asker", folder, str(HANGING)) as asker:
            before = lookups(mounted)
            with stopped(hanging.pid):
                tell(asker)
                until(lambda: lookups(mounted) >= before + HANGING)
                output, _ = reader.communicate("go\n", timeout=LIMIT_S)
                assert output == "z\n"
            # All are answered: their program ends.
            assert asker.wait(LIMIT_S) == 0
