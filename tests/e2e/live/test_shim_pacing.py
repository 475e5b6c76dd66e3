# SPDX-License-Identifier: MIT
"""Pacing: grants are not exceeded, and waits end when they must.

Times have lower bounds only, which hold on a machine of any speed. A wait that must end
would otherwise last for hours.
"""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path

import pytest

from penstock.live.node.pages.page import (
    CREDIT_S,
    SLACK_S,
    Bucket,
    Counters,
    IoClass,
    Mode,
    Page,
)
from support.jobs import Job
from support.waiting import until

#: A rate at which the smallest transfer here would last for half a day.
CRAWL = 10.0
#: Scenes of ``calls.c``.
SEEN = ("write", "writev", "read", "copies", "aio", "errors", "stdio_text", "fork")
WRITES = (
    "import os, sys\n"
    "size, count = map(int, sys.argv[1:])\n"
    "fd = os.open(f'out-{os.getpid()}', os.O_WRONLY | os.O_CREAT, 0o600)\n"
    "for _ in range(count): os.pwrite(fd, bytes(size), 0)\n"
)
READS = "import os\nfd = os.open('in', os.O_RDONLY)\nwhile os.read(fd, 1 << 16): pass\n"


def _wrote(job: Job) -> Counters:
    return job.page.counters(IoClass.WRITE)


def _phase_begin_s(job: Job) -> float:
    """Return the time of the first call of the current phase (s, monotonic)."""
    return float(job.page._read().phase_begin_ns * 1e-9)


@pytest.mark.parametrize(
    ("size", "count"), [(4096, 1024), (1 << 16, 64), (1 << 20, 4), (1 << 22, 1)]
)
def test_a_transfer_takes_the_time_of_its_grant(
    job: Job, python: str, size: int, count: int
) -> None:
    volume, rate = size * count, 8e6
    job.page.grant(rate)
    begun = time.monotonic()
    assert job.run(python, "-c", WRITES, size, count).returncode == 0
    least = volume / rate - SLACK_S
    assert time.monotonic() - begun >= least
    assert _wrote(job).moved_bytes == volume
    # No credit was saved from before the phase began.
    assert job.page.charged_bytes() >= volume + rate * (_phase_begin_s(job) - begun) - 1


def test_processes_of_a_job_share_one_grant(job: Job, python: str) -> None:
    rate, size, count, processes = 8e6, 1 << 16, 16, 4
    job.page.grant(rate)
    begun = time.monotonic()
    writers = [
        job.start(python, "-c", WRITES, str(size), str(count)) for _ in range(processes)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * processes
    volume = size * count * processes
    assert time.monotonic() - begun >= volume / rate - SLACK_S
    assert _wrote(job).moved_bytes == volume


@pytest.mark.parametrize("scene", SEEN)
def test_every_byte_is_charged_once(job: Job, calls: Path, scene: str) -> None:
    """The charge is the volume moved, also if calls fall short or fail."""
    job.page.gap_s = 1e9
    job.page.grant(100e6, credit_s=3600.0)
    assert job.run(calls, scene).returncode == 0
    volume = job.volume(IoClass.WRITE) + job.volume(IoClass.READ)
    assert job.page.charged_bytes() == volume > 0


def test_a_paused_job_waits_before_its_call_and_a_grant_wakes_it(
    job: Job, python: str
) -> None:
    job.page.grant(0.0)
    writer = job.start(python, "-c", WRITES, "1000", "1")
    until(lambda: _wrote(job).waiting_calls == 1)
    assert _wrote(job).moved_bytes == 0
    assert _wrote(job).begun_calls == 1
    job.page.grant(math.inf)
    assert writer.wait(timeout=120) == 0
    assert _wrote(job).moved_bytes == 1000
    assert _wrote(job).waiting_calls == 0
    assert _wrote(job).held_up_s > 0.0


def test_a_paused_reader_waits_too(job: Job, python: str) -> None:
    (job.folder / "in").write_bytes(bytes(1000))
    job.page.grant(0.0)
    reader = job.start(python, "-c", READS)
    until(lambda: job.page.counters(IoClass.READ).waiting_calls == 1)
    assert job.volume(IoClass.READ) == 0
    job.page.grant(1e9)
    assert reader.wait(timeout=120) == 0
    assert job.volume(IoClass.READ) == 1000


@pytest.mark.parametrize("size", [4096, 1 << 20])
def test_a_raised_rate_serves_old_debt(job: Job, python: str, size: int) -> None:
    job.page.grant(CRAWL)
    writer = job.start(python, "-c", WRITES, str(size), "3")
    until(lambda: _wrote(job).waiting_calls == 1)
    job.page.grant(1e9)
    assert writer.wait(timeout=120) == 0


@pytest.mark.parametrize("rate", [0.0, CRAWL])
def test_a_waiting_call_continues_when_the_lease_ends(
    job: Job, python: str, rate: float
) -> None:
    job.page.grant(rate)
    job.page.renew(2.0)
    assert job.run(python, "-c", WRITES, 100_000, 3).returncode == 0


def test_a_lease_that_is_too_long_is_ignored(job: Job, python: str) -> None:
    job.page.grant(0.0)
    job.page._view.lease_ns = time.monotonic_ns() + 3600 * 10**9
    assert job.run(python, "-c", WRITES, 1000, 1).returncode == 0


def test_after_the_lease_the_floor_holds(job: Job, python: str) -> None:
    job.page.grant(0.0)
    job.page.renew(0.0, floor=1e6)
    begun = time.monotonic()
    assert job.run(python, "-c", WRITES, 100_000, 5).returncode == 0
    assert time.monotonic() - begun >= 0.5 - SLACK_S


def test_switching_control_off_ends_all_waits(job: Job, python: str) -> None:
    job.page.grant(0.0)
    writer = job.start(python, "-c", WRITES, "1000", "1")
    until(lambda: _wrote(job).waiting_calls == 1)
    job.page.mode = Mode.OFF
    assert writer.wait(timeout=120) == 0


def test_a_process_killed_while_it_waits_does_not_block_others(
    job: Job, python: str
) -> None:
    job.page.grant(0.0)
    victim = job.start(python, "-c", WRITES, "1000000", "1")
    until(lambda: _wrote(job).waiting_calls == 1)
    victim.send_signal(signal.SIGKILL)
    victim.wait(timeout=120)
    job.page.grant(1e9)
    assert job.run(python, "-c", WRITES, 1000, 10).returncode == 0
    until(lambda: _wrote(job).waiting_calls == 0)


def test_reads_may_have_a_bandwidth_of_their_own(job: Job, python: str) -> None:
    (job.folder / "in").write_bytes(bytes(500_000))
    job.page.share(reads=Bucket.READS)
    job.page.grant(math.inf)
    job.page.grant(1e6, bucket=Bucket.READS)
    assert job.run(python, "-c", WRITES, 1 << 20, 20).returncode == 0
    assert _wrote(job).held_up_s == 0.0
    begun = time.monotonic()
    assert job.run(python, "-c", READS).returncode == 0
    assert time.monotonic() - begun >= 0.5 - SLACK_S - CREDIT_S
    assert job.page.charged_bytes(Bucket.MAIN) == 0


def test_reads_may_be_free(job: Job, python: str) -> None:
    (job.folder / "in").write_bytes(bytes(500_000))
    job.page.share(reads=None)
    job.page.grant(0.0)
    assert job.run(python, "-c", READS).returncode == 0
    assert job.volume(IoClass.READ) == 500_000


def test_a_copy_is_charged_on_both_sides_piece_by_piece(job: Job) -> None:
    size = 9 << 20
    (job.folder / "in").write_bytes(bytes(size))
    job.page.grant(1e9)
    assert job.run("cp", "in", "out").returncode == 0
    reads, writes = job.page.counters(IoClass.READ), _wrote(job)
    assert (reads.moved_bytes, writes.moved_bytes) == (size, size)
    assert writes.ended_calls >= 3


def test_a_dry_run_estimates_the_wait_and_does_not_wait(job: Job, python: str) -> None:
    rate, volume = CRAWL, 100_000
    job.page.mode = Mode.DRY_RUN
    job.page.grant(rate)
    begun = time.monotonic()
    assert job.run(python, "-c", WRITES, 1000, 100).returncode == 0
    elapsed = time.monotonic() - begun
    byte_s = 1.0 / rate  # a call is rounded to a whole byte
    estimated_s = _wrote(job).would_hold_up_s
    assert _wrote(job).held_up_s == 0.0
    assert volume / rate - elapsed <= estimated_s + 100 * byte_s
    assert estimated_s <= volume / rate + 100 * byte_s


def test_the_first_call_after_a_gap_wakes_the_agent(job: Job, python: str) -> None:
    woken: list[list[int]] = []
    begun = time.monotonic()
    with job.bell(slot=1984, on_ring=lambda _, slots: woken.append(slots)):
        writer = job.start(python, "-c", WRITES, "1000", "50")
        until(lambda: woken)
        assert begun <= _phase_begin_s(job) <= time.monotonic()
        assert writer.wait(timeout=120) == 0
    assert woken == [[1984]]
    assert job.page.operations_begun == 1


def test_the_lease_is_that_of_the_bell(job: Job, python: str) -> None:
    """One write renews the leases of all jobs of a user."""
    job.page.grant(0.0)
    with job.bell(slot=1) as bell:
        # The lease of the page does not matter, and the one of the bell has ended.
        assert job.start(python, "-c", WRITES, "1000", "1").wait(timeout=120) == 0
        job.page.renew(0.0)
        bell.renew(60.0)
        writer = job.start(python, "-c", WRITES, "1000", "1")
        until(lambda: _wrote(job).waiting_calls == 1)
        bell.renew(0.0)
        assert writer.wait(timeout=120) == 0


@pytest.mark.parametrize("problem", ["missing", "short", "other version", "no slot"])
def test_without_a_bell_the_page_is_enough(job: Job, python: str, problem: str) -> None:
    with job.bell(slot=1) as bell:
        if problem == "missing":
            bell.path.unlink()
        elif problem == "short":
            os.truncate(bell.path, 4000)
        elif problem == "other version":
            bell.path.write_bytes(bytes(4096))
        else:
            job.page.set_bell(os.geteuid(), 1985)
        job.page.grant(0.0)
        writer = job.start(python, "-c", WRITES, "1000", "1")
        until(lambda: _wrote(job).waiting_calls == 1)
        job.page.renew(0.0)
        assert writer.wait(timeout=120) == 0
    assert job.page.operations_begun == 1


def test_a_signal_handler_that_writes_during_a_wait_does_not_wait(
    job: Job, calls: Path
) -> None:
    job.page.grant(0.0)
    process = job.start(calls, "handler")
    until(lambda: _wrote(job).waiting_calls == 1)
    process.send_signal(signal.SIGUSR1)
    # Nobody grants anything: both the write of the handler and the call that it has
    # interrupted go on.
    assert process.wait(timeout=120) == 0
    assert (job.folder / "b").stat().st_size == 10
    assert _wrote(job).moved_bytes == (1 << 20) + 10


def test_a_call_after_a_longjmp_out_of_a_wait_waits_again(
    job: Job, calls: Path
) -> None:
    job.page.grant(0.0)
    process = job.start(calls, "longjmp")
    until((job.folder / "jumped").exists)
    until(lambda: 0 < _wrote(job).begun_calls == _wrote(job).waiting_calls)
    assert process.poll() is None
    job.page.grant(math.inf)
    assert process.wait(timeout=120) == 0


def test_a_cancelled_thread_ends_in_its_wait_and_is_not_charged(
    job: Job, calls: Path
) -> None:
    job.page.grant(0.0)
    before = job.page.charged_bytes()
    done = job.run(calls, "cancel")
    assert done.returncode == 0
    assert done.stderr.endswith(b"result == PTHREAD_CANCELED 1 0\n")
    counters = _wrote(job)
    assert (counters.begun_calls, counters.ended_calls) == (1, 1)
    assert counters.moved_bytes == 0
    assert job.page.charged_bytes() == before


def test_a_program_with_a_seccomp_filter_is_not_controlled(
    job: Job, calls: Path
) -> None:
    job.page.grant(1000.0)
    assert job.run(calls, "seccomp").returncode == 0
    assert (job.folder / "a").stat().st_size == 2010


def test_a_restarted_agent_serves_the_same_page(job: Job, python: str) -> None:
    job.page.grant(0.0)
    writer = job.start(python, "-c", WRITES, "1000", "1")
    until(lambda: _wrote(job).waiting_calls == 1)
    with Page.open(job.page.path) as again:
        again.renew(60.0)
        again.grant(1e9)
    assert writer.wait(timeout=120) == 0
