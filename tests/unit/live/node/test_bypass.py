# SPDX-License-Identifier: MIT
"""The bytes that the kernel counts for processes and their descendants."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.live.node import bypass
from penstock.live.node.bypass import ProcessIo, WrittenBytes
from support.waiting import until

SIZE = 4_000_000


def kernel_counts(folder: Path) -> bool:
    """Return True if the kernel counts writes to this folder."""
    before = WrittenBytes().measure([os.getpid()])
    with (folder / "probe").open("wb", buffering=0) as stream:
        stream.write(bytes(SIZE))
    return WrittenBytes().measure([os.getpid()]) - before >= SIZE


def test_a_process_and_its_child(tmp_path: Path) -> None:
    if not kernel_counts(tmp_path):
        pytest.skip("the kernel does not count writes to this file system")
    script = f"head -c {SIZE} /dev/zero > one; (head -c {SIZE} /dev/zero; read x) > two"
    with subprocess.Popen(
        ["sh", "-c", f"{script}; read y"], cwd=tmp_path, stdin=subprocess.PIPE
    ) as process:
        written = WrittenBytes()
        until((tmp_path / "two").exists)
        until(
            lambda: written.measure([process.pid]) >= SIZE or process.poll() is not None
        )
        process.kill()
    # A process that has ended counts with its last value.
    assert written.measure([process.pid]) >= SIZE


def test_a_process_that_has_ended_before_is_not_counted() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert WrittenBytes().measure([process.pid]) == 0


def test_what_a_process_wrote_before_it_was_added_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`penstock run` writes, e.g. a library; then it becomes the program."""
    counts = {os.getpid(): ProcessIo(3000)}
    monkeypatch.setattr(bypass, "_process_io", counts.get)
    written = WrittenBytes()
    written.add(os.getpid())
    assert written.measure([os.getpid()]) == 0
    counts[os.getpid()] = ProcessIo(10_000)
    assert written.measure([os.getpid()]) == 7000
    # A process that attaches again was controlled before.
    written.add(os.getpid())
    assert written.measure([os.getpid()]) == 7000
