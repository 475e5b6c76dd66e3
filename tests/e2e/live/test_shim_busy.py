# SPDX-License-Identifier: MIT
"""Time inside calls: syncs and closes of written files are calls in flight.

A library preloaded behind penstock's (``slow.c``) makes one call wait at a gate, as a
slow storage would, until the test opens the gate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.live.node.pages.page import Counters, IoClass
from support.jobs import Job, compiled
from support.waiting import until

#: Time for which the gate stays shut after the call has been seen in flight (s).
SHUT_S = 0.2
#: Name of the call at the gate -> the Python statement that makes it on a file that was
#: written.
CALLS = {
    "fsync": "os.fsync(fd)",
    "fdatasync": "os.fdatasync(fd)",
    "close": "os.close(fd)",
    "dup2": "os.dup2(0, fd)",
    "sync_file_range": "libc.sync_file_range(fd, 0, 0, 7)",
}
WRITES = (
    "import ctypes, os\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "fd = os.open('slow', os.O_RDWR | os.O_CREAT, 0o600)\n"
    "os.write(fd, bytes(1000))\n"
)
READS = "import os\nfd = os.open('slow', os.O_RDONLY)\nassert os.read(fd, 1000)\n"


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("slow") / "slow.so"
    return compiled(target, "slow.c", ("-shared", "-fPIC", "-ldl"))


@pytest.fixture
def gate(job: Job, slow: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the gate, which is shut: programs of the job wait at it."""
    path = job.root / "gate"
    path.touch()
    monkeypatch.setenv("LD_PRELOAD", str(slow))
    monkeypatch.setenv("SLOW_GATE", str(path))
    yield path
    path.unlink(missing_ok=True)


def _writes(job: Job) -> Counters:
    return job.page.counters(IoClass.WRITE)


def _in_flight(counters: Counters) -> int:
    return counters.begun_calls - counters.ended_calls


@pytest.mark.parametrize("call", CALLS)
def test_a_sync_of_a_written_file_is_in_flight_and_busy(
    job: Job, python: str, gate: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setenv("SLOW_CALL", call)
    # A sync is never held up, whatever the grant is after the write.
    program = job.start(python, "-c", WRITES + CALLS[call])
    until(lambda: _writes(job).moved_bytes == 1000 and _in_flight(_writes(job)) == 1)
    before = _writes(job).busy_s
    job.page.grant(0.0)
    time.sleep(SHUT_S)
    assert _in_flight(_writes(job)) == 1
    assert _writes(job).waiting_calls == 0
    gate.unlink()
    assert program.wait(timeout=120) == 0
    after = _writes(job)
    assert _in_flight(after) == 0
    assert after.busy_s - before >= SHUT_S
    assert (after.moved_bytes, after.held_up_s) == (1000, 0.0)


def test_a_stream_that_was_written_is_busy_while_it_is_closed(
    job: Job, python: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW_CALL", "fclose")
    program = job.start(
        python,
        "-c",
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.fopen.restype = ctypes.c_void_p\n"
        "file = ctypes.c_void_p(libc.fopen(b'slow', b'w'))\n"
        "libc.fputs(b'text', file)\n"
        "libc.fclose(file)\n",
    )
    until(lambda: _writes(job).moved_bytes == 4 and _in_flight(_writes(job)) == 1)
    time.sleep(SHUT_S)
    gate.unlink()
    assert program.wait(timeout=120) == 0
    assert _writes(job).busy_s >= SHUT_S


@pytest.mark.parametrize(
    ("statements", "calls"),
    [
        ("fd = os.open('slow', os.O_RDWR | os.O_CREAT)\nos.fsync(fd)\nos.close(fd)", 0),
        # The write and the first sync.
        (WRITES + "os.fsync(fd)\nos.fsync(fd)\nos.close(fd)", 2),
    ],
    ids=["never written", "synced"],
)
def test_a_sync_of_a_clean_file_is_not_counted(
    job: Job, python: str, statements: str, calls: int
) -> None:
    assert job.run(python, "-c", "import os\n" + statements).returncode == 0
    assert _writes(job).begun_calls == _writes(job).ended_calls == calls


def test_a_duplicate_of_a_written_descriptor_is_written_as_well(
    job: Job, python: str
) -> None:
    statements = WRITES + "other = os.dup(fd)\nos.fsync(other)"
    assert job.run(python, "-c", statements).returncode == 0
    assert _writes(job).ended_calls == 2


@pytest.mark.parametrize(
    ("kind", "call", "statements"),
    [(IoClass.WRITE, "write", WRITES), (IoClass.READ, "read", READS)],
)
def test_the_time_inside_a_call_is_counted(
    job: Job,
    python: str,
    gate: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: IoClass,
    call: str,
    statements: str,
) -> None:
    (job.folder / "slow").write_bytes(bytes(1000))
    monkeypatch.setenv("SLOW_CALL", call)
    program = job.start(python, "-c", statements)
    until(lambda: _in_flight(job.page.counters(kind)) == 1)
    time.sleep(SHUT_S)
    gate.unlink()
    assert program.wait(timeout=120) == 0
    assert job.page.counters(kind).busy_s >= SHUT_S


@pytest.mark.parametrize("rate", [0.0, 1e4], ids=["paused", "slow"])
def test_the_time_that_a_call_is_held_up_is_not_inside_it(
    job: Job, python: str, rate: float
) -> None:
    """The write itself takes microseconds, so half a second would be the wait."""
    job.page.grant(rate)
    program = job.start(python, "-c", WRITES + "os.write(fd, bytes(100_000))")
    until(lambda: _writes(job).held_up_s >= 0.5)
    job.page.grant(1e9)
    assert program.wait(timeout=120) == 0
    assert _writes(job).busy_s < 0.25
