# SPDX-License-Identifier: MIT
"""Reads that memory serves are free, and reads from the storage are charged.

How fast this machine is decides nothing here: a file is made cold and checked to be so,
and a call that waits for the storage waits at a gate (``slow.c``) or at a mount with a
limit.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import Counters, IoClass, Page
from support.jobs import Job, compiled
from support.mounts import Mounted, why_no_mounts
from support.waiting import until

MIB = 1 << 20
#: Arguments: size of a call, number of passes through the file, sleep after each call
#: (us; may be missing).
READS = (
    "import os, sys, time\n"
    "size, passes, pause_us = map(int, (sys.argv[1:] + [0])[:3])\n"
    "fd = os.open('slow', os.O_RDONLY)\n"
    "for _ in range(passes):\n"
    "    os.lseek(fd, 0, os.SEEK_SET)\n"
    "    while os.read(fd, size):\n"
    "        if pause_us: time.sleep(pause_us * 1e-6)\n"
)
#: The first read waits at the gate, 1 MiB follow, and the last read waits again.
READS_AFTER_WINDOW = (
    "import os\n"
    "fd = os.open('slow', os.O_RDONLY)\n"
    "for _ in range(17): os.read(fd, 65536)\n"
    "open(os.environ['SLOW_GATE'], 'w').close()\n"
    "os.read(fd, 65536)\n"
)
WRITES = (
    "import os, sys\n"
    "size, count = map(int, sys.argv[1:])\n"
    "fd = os.open('slow', os.O_WRONLY | os.O_CREAT, 0o600)\n"
    "for _ in range(count): os.write(fd, bytes(size))\n"
)


@pytest.fixture
def free_job(job: Job) -> Job:
    """Return a job whose cached reads are free."""
    job.page.free_memory(cached_reads=True, absorbed_writes=False)
    return job


@pytest.fixture
def memory_job() -> Iterator[Job]:
    """Return a job with free memory whose files are in memory, on no block device."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - where memory is
        pytest.skip("needs /dev/shm")
    root = Path("/dev/shm") / f"penstock-cache-{os.getpid()}-{time.monotonic_ns()}"  # noqa: S108
    (root / "controlled").mkdir(parents=True)
    page = Page.create(root / "page")
    page.renew(60.0)
    page.free_memory(cached_reads=True, absorbed_writes=True)
    made = Job(root, page)
    yield made
    made.close()
    shutil.rmtree(root)


@pytest.fixture
def gate(
    memory_job: Job,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Return a gate that is shut: calls named SLOW_CALL wait at it."""
    target = tmp_path_factory.mktemp("slow") / "slow.so"
    path = memory_job.root / "gate"
    path.touch()
    compiled(target, "slow.c", ("-shared", "-fPIC", "-ldl"))
    monkeypatch.setenv("LD_PRELOAD", str(target))
    monkeypatch.setenv("SLOW_GATE", str(path))
    return path


def _reads(job: Job) -> Counters:
    return job.page.counters(IoClass.READ)


def _fill(job: Job, size: int) -> Path:
    """Write the file to read; it is in memory afterwards."""
    path = job.folder / "slow"
    path.write_bytes(os.urandom(size))
    return path


def _on_block_device(path: Path) -> None:
    if os.major(path.stat().st_dev) == 0:
        pytest.skip("needs a file system on a block device")


def _make_cold(path: Path) -> None:
    """Drop the file from memory, or skip the test if the kernel keeps it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return
        except OSError:
            pass
    finally:
        os.close(descriptor)
    pytest.skip("the kernel keeps the file in memory")


@pytest.mark.parametrize("size", [4096, 1 << 16, 2 * MIB])
@pytest.mark.parametrize("rate", [0.0, 10.0], ids=["paused", "crawling"])
def test_cached_reads_are_neither_charged_nor_held_up(
    free_job: Job, python: str, size: int, rate: float
) -> None:
    """Charged, the file would take days."""
    _on_block_device(_fill(free_job, 4 * MIB))
    free_job.page.grant(rate)
    assert free_job.run(python, "-c", READS, size, 2).returncode == 0
    reads = _reads(free_job)
    assert (reads.moved_bytes, reads.held_up_s, reads.busy_s) == (0, 0.0, 0.0)
    assert reads.memory_bytes > 3 * MIB
    assert reads.begun_calls == reads.ended_calls


def test_small_cached_reads_begin_no_operation(free_job: Job, python: str) -> None:
    _on_block_device(_fill(free_job, 4 * MIB))
    assert free_job.run(python, "-c", READS, 4096, 2).returncode == 0
    assert free_job.page.operations_begun == 0
    assert _reads(free_job).begun_calls == 0


@pytest.mark.parametrize("size", [4096, 1 << 16, 8 * MIB])
def test_cold_reads_are_charged_at_what_the_storage_moved(
    free_job: Job, python: str, size: int
) -> None:
    path = _fill(free_job, 8 * MIB)
    _on_block_device(path)
    _make_cold(path)
    assert free_job.run(python, "-c", READS, size, 3).returncode == 0
    reads = _reads(free_job)
    # The first pass, but for what fast calls got after the kernel was asked last.
    assert 7.9 * MIB <= reads.moved_bytes <= 8 * MIB
    assert reads.memory_bytes >= 8 * MIB
    assert reads.busy_s > 0.0
    assert free_job.page.operations_begun >= 1


def test_small_cold_files_are_charged(free_job: Job, python: str) -> None:
    """A descriptor is looked up only after a read that was slow."""
    paths = [free_job.folder / f"small{number}" for number in range(20)]
    for path in paths:
        path.write_bytes(os.urandom(1 << 16))
        _on_block_device(path)
        _make_cold(path)
    code = (
        "import os, sys\n"
        "for path in sys.argv[1:]:\n"
        "    fd = os.open(path, os.O_RDONLY)\n"
        "    while os.read(fd, 1 << 14): pass\n"
        "    os.close(fd)\n"
    )
    assert free_job.run(python, "-c", code, *paths).returncode == 0
    # The look at whether a file is cold may have brought its first 16 KiB.
    assert 0.9 * 20 * 48 * 1024 <= _reads(free_job).moved_bytes <= 20 * (1 << 16)


def test_cold_reads_are_paced(free_job: Job, python: str) -> None:
    path = _fill(free_job, 4 * MIB)
    _on_block_device(path)
    _make_cold(path)
    free_job.page.grant(8.0 * MIB)
    begun = time.monotonic()
    assert free_job.run(python, "-c", READS, 4096, 1).returncode == 0
    assert time.monotonic() - begun >= 0.45


def test_a_paused_cold_reader_waits(free_job: Job, python: str) -> None:
    path = _fill(free_job, 4 * MIB)
    _on_block_device(path)
    _make_cold(path)
    free_job.page.grant(0.0)
    reader = free_job.start(python, "-c", READS, "65536", "1")
    until(lambda: _reads(free_job).waiting_calls == 1)
    # One call had begun before anything was known of the file.
    assert _reads(free_job).moved_bytes <= 65536
    free_job.page.grant(1e12)
    assert reader.wait(timeout=120) == 0


@pytest.mark.parametrize("pause_us", [0, 20])
def test_without_a_block_device_the_calls_after_a_sleep_are_charged(
    memory_job: Job,
    python: str,
    gate: Path,
    monkeypatch: pytest.MonkeyPatch,
    pause_us: int,
) -> None:
    _fill(memory_job, 8 * MIB)
    monkeypatch.setenv("SLOW_CALL", "read")
    reader = memory_job.start(python, "-c", READS, "65536", "1", str(pause_us))
    until(lambda: gate.stat().st_size == 1)
    gate.unlink()
    assert reader.wait(timeout=120) == 0
    reads = _reads(memory_job)
    assert 65536 + MIB <= reads.moved_bytes < 8 * MIB
    assert reads.moved_bytes + reads.memory_bytes == 8 * MIB
    assert reads.busy_s > 0.0


def test_a_read_after_the_window_is_announced_when_it_begins(
    memory_job: Job, python: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long call that nobody knows of would end the operation."""
    _fill(memory_job, 4 * MIB)
    monkeypatch.setenv("SLOW_CALL", "read")
    reader = memory_job.start(python, "-c", READS_AFTER_WINDOW)
    until(lambda: gate.stat().st_size == 1)
    gate.unlink()
    until(lambda: gate.exists() and gate.stat().st_size == 1)
    reads = _reads(memory_job)
    gate.unlink()
    assert reads.begun_calls == reads.ended_calls + 1
    assert reader.wait(timeout=120) == 0


def test_a_read_of_a_file_system_in_memory_is_free(
    memory_job: Job, python: str
) -> None:
    _fill(memory_job, 4 * MIB)
    assert memory_job.run(python, "-c", READS, 65536, 2).returncode == 0
    reads = _reads(memory_job)
    assert reads.moved_bytes == 0
    # The first MiB may be read before the descriptor is looked up.
    assert 7 * MIB <= reads.memory_bytes <= 8 * MIB


@pytest.mark.parametrize("size", [1 << 16, MIB])
def test_a_sleep_between_two_reads_is_not_charged(
    memory_job: Job, python: str, size: int
) -> None:
    """A read that is slow, because it copies much, did not sleep itself."""
    _fill(memory_job, 16 * MIB)
    passes = 4 * size // (1 << 16)
    assert memory_job.run(python, "-c", READS, size, passes, 20).returncode == 0
    # A page fault of the buffer may sleep, which costs one window.
    assert _reads(memory_job).moved_bytes <= 0.1 * passes * 16 * MIB


def test_absorbed_writes_are_free_if_the_page_says_so(
    memory_job: Job, python: str
) -> None:
    assert memory_job.run(python, "-c", WRITES, 65536, 16).returncode == 0
    writes = memory_job.page.counters(IoClass.WRITE)
    assert (writes.moved_bytes, writes.memory_bytes) == (0, MIB)
    memory_job.page.free_memory(cached_reads=True, absorbed_writes=False)
    assert memory_job.run(python, "-c", WRITES, 65536, 16).returncode == 0
    assert memory_job.volume(IoClass.WRITE) == MIB


def test_a_write_that_waits_for_the_storage_is_charged(
    memory_job: Job, python: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW_CALL", "write")
    writer = memory_job.start(python, "-c", WRITES, "65536", "4")
    until(lambda: gate.stat().st_size == 1)
    gate.unlink()
    assert writer.wait(timeout=120) == 0
    assert memory_job.volume(IoClass.WRITE) == 4 * 65536


@pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())
@pytest.mark.parametrize("size", [4096, 1 << 17])
def test_cold_reads_through_a_mount_are_charged(
    free_job: Job, python: str, size: int
) -> None:
    """FUSE: the kernel does not count its reads, but they sleep."""
    mount = Mounted(free_job.root / "home")
    (mount.backing / "slow").write_bytes(os.urandom(16 * MIB))
    environment = shim_environment(free_job.page.path, [mount.point])
    try:
        mount.start("--limit", "100 MB/s")
        for passes, most in ((1, 16 * MIB), (8, 5 * 16 * MIB)):
            done = free_job.run(
                *(python, "-c", READS, size, passes),
                environment=environment,
                folder=mount.point,
            )
            assert done.returncode == 0
            # Readahead may serve a call between two windows. Seven of the eight passes
            # find the file in memory.
            assert 0.8 * 16 * MIB <= _reads(free_job).moved_bytes <= most
    finally:
        mount.end()
