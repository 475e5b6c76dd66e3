# SPDX-License-Identifier: MIT
"""Limits on real mounts. The tests count bytes; times have wide margins."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.mounts import Mounted
from support.waiting import until

Mounting = Callable[..., Mounted]
MB = 10**6


def writer(path: Path, size: int) -> subprocess.Popen[bytes]:
    """Start a program that writes `size` bytes at a time until it is killed."""
    text = (
        "import os, sys\n"
        f"fd = os.open({str(path)!r}, os.O_CREAT | os.O_WRONLY)\n"
        f"while True: os.pwrite(fd, bytes({size}), 0)\n"
    )
    return subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL)


def timed(action: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    action()
    return time.monotonic() - begin_s


def test_programs_are_not_faster_than_the_limit(mount: Mounting) -> None:
    mounted = mount("--limit", "10 MB/s")
    # Touched memory, which the kernel does not split into requests of one page: then
    # each request exceeds the slack of the limit and is held up.
    data = b"x" * (5 * MB)
    took = timed(lambda: (mounted.point / "a").write_bytes(data))
    assert took > 0.45
    took = timed((mounted.point / "a").read_bytes)
    assert took > 0.45
    status = mounted.status()
    assert status["write"]["bytes"] == status["read"]["bytes"] == 5 * MB
    assert status["write"]["waited_s"] > 0


def test_reads_and_writes_can_have_separate_limits(mount: Mounting) -> None:
    mounted = mount("--read-limit", "5 MB/s", "--write-limit", "100 GB/s")
    (mounted.point / "a").write_bytes(bytes(2 * MB))
    status = mounted.status()
    assert status["limits"] == {"total": None, "read": 5e6, "write": 100e9}
    assert status["write"]["waited_s"] < 0.1
    assert timed((mounted.point / "a").read_bytes) > 0.35


@pytest.mark.parametrize("writers", [2, 4])
def test_writers_get_equal_shares_whatever_the_file(
    mount: Mounting, writers: int
) -> None:
    # Slow enough that, even on a busy machine, each writer is back before its turn.
    mounted = mount("--limit", "5 MB/s")
    logs = [mounted.home / f"log-{number}" for number in range(writers)]
    text = (
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\n"
        "log = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "data = b'x' * (1 << 18)\n"
        "while True: os.pwrite(fd, data, 0), os.write(log, b'x')\n"
    )
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", text, mounted.point / f"f{number}", log]
        )
        for number, log in enumerate(logs)
    ]
    try:
        until(lambda: all(log.exists() for log in logs))
        before = [log.stat().st_size for log in logs]
        until(lambda: min(_sizes(logs)) >= 30 + max(before))
        moved = [now - then for now, then in zip(_sizes(logs), before, strict=True)]
    finally:
        for program in programs:
            program.kill()
            program.wait(120)
    # First come, first served: each writer gets one turn per round.
    assert max(moved) - min(moved) <= 3


def test_the_limit_can_be_changed_while_programs_wait(mount: Mounting) -> None:
    mounted = mount("--limit", "1 kB/s")
    program = writer(mounted.point / "a", 1 << 20)
    try:
        until(lambda: mounted.status()["waiting"] == 1)
        assert mounted.status()["write"]["bytes"] == 0
        assert "limits: total 50 MB/s" in mounted.ask("--set-limit", "50 MB/s")
        until(lambda: mounted.status()["write"]["bytes"] > 5 * MB)
        assert "limits: none" in mounted.ask("--set-limit", "none")
    finally:
        program.kill()
        program.wait(120)


def test_requests_that_wait_do_not_hold_up_other_requests(mount: Mounting) -> None:
    mounted = mount("--write-limit", "1 kB/s")
    (mounted.backing / "b").write_bytes(b"b")
    programs = [writer(mounted.point / f"f{number}", 1 << 20) for number in range(150)]
    try:
        until(lambda: mounted.status()["waiting"] == 150)
        assert (mounted.point / "b").read_bytes() == b"b"
        assert len(list(mounted.point.iterdir())) == 151
    finally:
        mounted.ask("--set-limit", "none", "--set-write-limit", "none")
        for program in programs:
            program.kill()
        for program in programs:
            program.wait(120)


def test_metadata_is_counted(mount: Mounting) -> None:
    mounted = mount("--limit", "1 kB/s")
    for index in range(10):
        (mounted.point / f"d{index}").mkdir()
    metadata = mounted.status()["metadata"]
    assert metadata["mkdir"] == 10
    assert not {"read", "write"} & set(metadata)


def _sizes(paths: list[Path]) -> list[int]:
    return [path.stat().st_size for path in paths]


def test_a_mount_reads_what_programs_ask_for_and_nothing_ahead(mount: Mounting) -> None:
    """Else the storage below serves reads that no limit and no scheduler has seen."""
    below = mount()
    above = mount(backing=below.point)
    block_bytes, blocks, asked = 4096, 1024, 500
    (below.backing / "a").write_bytes(bytes(blocks * block_bytes))
    data = mmap.mmap(-1, block_bytes)
    file = os.open(above.point / "a", os.O_RDONLY | os.O_DIRECT)
    try:
        for number in range(asked):
            # Scattered; but blocks before many of them were read earlier.
            os.preadv(file, [data], number * 567 % blocks * block_bytes)
    finally:
        os.close(file)
    assert above.status()["read"]["bytes"] == asked * block_bytes
    assert below.status()["read"]["bytes"] == asked * block_bytes
