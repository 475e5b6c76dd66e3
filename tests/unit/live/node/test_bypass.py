# SPDX-License-Identifier: MIT
"""The bytes that the kernel counts for processes and their descendants."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.live.node import bypass
from penstock.live.node.bypass import (
    ProcessIo,
    WrittenBytes,
    _process_io,
    with_descendants,
)
from penstock.live.wire.identity import process_start_ticks
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


def test_what_a_parent_has_waited_for_counts_once() -> None:
    """The kernel adds the counts of a child to its parent; also over generations."""
    child = f"sh -c 'head -c {SIZE} /dev/zero; read x; exit 0' > /dev/null"
    with subprocess.Popen(
        ["sh", "-c", f"{child}; {child}; echo; read y"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        written = WrittenBytes()

        def moved_bytes() -> int:
            written.measure([process.pid])
            return written.called_bytes

        for done in (1, 2):
            # head has read and written so much, and its shell has waited for it.
            until(lambda done=done: moved_bytes() >= 2 * SIZE * done)  # type: ignore[misc]
            process.stdin.write(b"\n")
            process.stdin.flush()
        process.stdout.readline()
        assert 4 * SIZE <= moved_bytes() < 5 * SIZE
        process.stdin.write(b"\n")
        process.stdin.close()
    assert 4 * SIZE <= moved_bytes() < 5 * SIZE


class FakeKernel:
    """Processes with their children and counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.children: dict[int, list[int]] = {}
        self.counts: dict[int, int] = {}
        #: Process id -> start; 1 if it is not here.
        self.starts: dict[int, int] = {}
        monkeypatch.setattr(bypass, "_children", lambda pid: self.children.get(pid, []))
        monkeypatch.setattr(bypass, "_process_io", self.process_io)
        monkeypatch.setattr(bypass, "_start_of", self.start_of)

    def start_of(self, pid: int) -> int | None:
        """Return the start of a process."""
        return self.starts.get(pid, 1) if pid in self.counts else None

    def process_io(self, pid: int) -> ProcessIo | None:
        """Return the counts of a process."""
        moved_bytes = self.counts.get(pid)
        return None if moved_bytes is None else ProcessIo(moved_bytes, moved_bytes)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """Return processes that are not those of the machine."""
    return FakeKernel(monkeypatch)


def test_processes_that_cannot_be_listed_for_a_while_count_once(
    kernel: FakeKernel,
) -> None:
    kernel.children, kernel.counts = {1: [2], 2: [3]}, {1: 10, 2: 200, 3: 3000}
    written = WrittenBytes()
    assert written.measure([1]) == 3210
    kernel.children = {}
    assert written.measure([1]) == 3210
    kernel.children = {1: [2], 2: [3]}
    assert written.measure([1]) == 3210


def test_a_process_counts_on_when_its_parent_has_ended(kernel: FakeKernel) -> None:
    kernel.children, kernel.counts = {1: [2], 2: [3]}, {1: 10, 2: 200, 3: 3000}
    written = WrittenBytes()
    written.measure([1])
    # 1 has waited for 2; init is the parent of 3 now.
    kernel.children, kernel.counts = {}, {1: 210, 3: 3500}
    assert written.measure([1]) == 3710
    # Nobody of the job has waited for 3.
    kernel.counts = {1: 210}
    assert written.measure([1]) == 3710


def test_a_process_and_its_child_that_end_together_count_in_the_grandparent(
    kernel: FakeKernel,
) -> None:
    kernel.children, kernel.counts = {1: [2], 2: [3]}, {1: 10, 2: 200, 3: 3000}
    written = WrittenBytes()
    written.measure([1])
    kernel.children, kernel.counts = {}, {1: 3210}
    assert written.measure([1]) == 3210
    assert written.is_complete


def test_a_process_with_the_number_of_an_ended_one_inherits_nothing(
    kernel: FakeKernel,
) -> None:
    """What was known of the number counted for another process, however much it did."""
    kernel.counts = {1: 10, 2: 500}
    written = WrittenBytes()
    written.add(2, 1)
    kernel.counts[2] = 700
    assert written.measure([1, 2]) == 210
    kernel.starts[2], kernel.counts[2] = 5, 30
    assert written.measure([1, 2]) == 240
    kernel.starts[2], kernel.counts[2] = 6, 90_000
    written.add(2, 6)
    assert written.measure([1, 2]) == 240
    kernel.counts[2] += 7
    assert written.measure([1, 2]) == 247


@pytest.mark.parametrize("moved_bytes", [30, 9000])
def test_a_process_of_another_job_does_not_count(
    kernel: FakeKernel, moved_bytes: int
) -> None:
    """It has the number of a descendant that has ended, and is none itself."""
    kernel.children, kernel.counts = {1: [2]}, {1: 10, 2: 200}
    written = WrittenBytes()
    assert written.measure([1]) == 210
    kernel.children, kernel.starts[2], kernel.counts[2] = {}, 5, moved_bytes
    # 1 has not waited for 2 here: its count would contain that of 2.
    assert written.measure([1]) == 10
    assert written.measure([]) == 10


def test_what_is_known_of_processes_ends_with_them(kernel: FakeKernel) -> None:
    written = WrittenBytes()
    for pid in range(1, 100):
        kernel.counts = {pid: 1000}
        written.add(pid, 1)
        if pid % 2:
            written.measure([pid], most=0)
    written.measure([])
    assert not written._by_process
    assert set(written._before) <= {99}


def test_processes_beyond_the_limit_keep_their_last_values(kernel: FakeKernel) -> None:
    kernel.children, kernel.counts = {1: [2, 3]}, {1: 10, 2: 200, 3: 3000}
    written = WrittenBytes()
    assert written.measure([1]) == 3210
    kernel.counts = {1: 20, 2: 300}
    assert written.measure([1], most=1) == 220
    assert not written.is_complete


def test_a_thread_that_ends_hides_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        tasks = os.listdir("/proc/self/task")  # noqa: PTH208
        monkeypatch.setattr(os, "listdir", lambda _: ["999999999", *tasks])
        assert process.pid in with_descendants([os.getpid()])


def test_a_byte_that_a_call_moves_to_storage_is_one_byte(tmp_path: Path) -> None:
    calls = "rchar: 7\nwchar: 500\nsyscr: 1\nsyscw: 2\n"
    storage = "read_bytes: 90\nwrite_bytes: 500\ncancelled_write_bytes: 100\n"
    (tmp_path / "io").write_text(calls + storage)
    assert _process_io(f"../{tmp_path}") == ProcessIo(400, 590)  # type: ignore[arg-type]


def test_processes_that_wait_for_their_children_are_not_counted() -> None:
    """A shell that has started two programs: two processes do the work."""
    written = WrittenBytes()
    script = "exec 3<&0; cat <&3 & cat <&3 & wait"

    def count(pid: int) -> int:
        written.measure([pid])
        return written.process_count

    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE) as process:
        until(lambda: count(process.pid) == 2)
    assert count(process.pid) == 0


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
    start = process_start_ticks(os.getpid())
    assert start is not None
    written.add(os.getpid(), start)
    assert written.measure([os.getpid()]) == 0
    counts[os.getpid()] = ProcessIo(10_000)
    assert written.measure([os.getpid()]) == 7000
    # A process that attaches again was controlled before.
    written.add(os.getpid(), start)
    assert written.measure([os.getpid()]) == 7000
