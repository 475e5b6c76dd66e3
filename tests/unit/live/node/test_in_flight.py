# SPDX-License-Identifier: MIT
"""Calls in flight and lost calls."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.live.node.in_flight import IN_FLIGHT_S, CallsInFlight, may_be_in_call
from penstock.live.node.local_job import JobNote, LocalJob
from penstock.live.node.pages.page import Counters, IoClass
from penstock.live.wire.identity import process_start_ticks
from support.waiting import until

GAP_S = 0.25


def counters(begun: int, ended: int, last_s: float, waiting: int = 0) -> Counters:
    return Counters(begun, ended, 0, 0, 0.0, 0.0, 0.0, waiting, last_s, 0.0)


def quiet(calls: CallsInFlight, begun: int, ended: int, quiet_s: float) -> float:
    """Return the quiet time of a job of which no process is known."""
    return calls.quiet_time([counters(begun, ended, 100.0)], 100.0 + quiet_s, GAP_S, ())


@pytest.fixture
def shell() -> Iterator[subprocess.Popen[bytes]]:
    """Return a shell that waits for a child that sleeps."""
    with subprocess.Popen(["sh", "-c", "sleep 600; :"]) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(children.read_text)
        child = int(children.read_text())
        yield process
        subprocess.run(["kill", str(child)], check=True)


def test_a_call_is_in_flight_until_it_is_silent_for_long() -> None:
    calls = CallsInFlight()
    assert quiet(calls, 1, 1, 5.0) == 5.0
    assert quiet(calls, 2, 1, 5.0) == 0.0
    assert quiet(calls, 2, 1, IN_FLIGHT_S) == IN_FLIGHT_S


def test_a_lost_call_is_not_taken_for_one_in_flight_again() -> None:
    calls = CallsInFlight()
    quiet(calls, 2, 1, IN_FLIGHT_S)
    # Other calls follow, with gaps.
    assert quiet(calls, 9, 8, 5.0) == 5.0
    assert quiet(calls, 10, 8, 5.0) == 0.0
    assert quiet(calls, 10, 9, 5.0) == 5.0


def test_a_call_that_ends_late_was_not_lost() -> None:
    calls = CallsInFlight()
    quiet(calls, 2, 1, IN_FLIGHT_S)
    assert quiet(calls, 2, 2, 5.0) == 5.0
    assert quiet(calls, 3, 2, 5.0) == 0.0


def test_a_job_with_a_call_that_is_held_up_is_not_quiet() -> None:
    waiting = counters(1, 0, 100.0, waiting=1)
    assert CallsInFlight().quiet_time([waiting], 200.0, GAP_S, ()) == 0.0


def test_calls_of_all_classes_are_in_flight() -> None:
    calls = CallsInFlight()
    both = [counters(1, 1, 100.0), counters(2, 1, 101.0)]
    assert calls.quiet_time(both, 105.0, GAP_S, ()) == 0.0
    assert calls.quiet_time(both[:1], 105.0, GAP_S, ()) == 5.0


def test_threads_that_wait_for_children_and_time_are_in_no_call(
    shell: subprocess.Popen[bytes],
) -> None:
    if not Path("/proc/self/wchan").exists():
        pytest.skip("the kernel does not say where threads wait")
    until(lambda: not may_be_in_call([shell.pid]))


def test_a_thread_that_runs_may_be_in_a_call(shell: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        until(lambda: may_be_in_call([shell.pid, busy.pid]))
        assert may_be_in_call([busy.pid])
        busy.kill()


def test_without_a_process_a_call_may_be_in_flight() -> None:
    assert may_be_in_call([])
    assert may_be_in_call([2**22 + 1])


def test_the_lost_call_of_a_killed_program_does_not_keep_the_operation_open(
    shell: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The shell of the job goes on, as a loop that kills its commands does."""
    if not Path("/proc/self/wchan").exists():
        pytest.skip("the kernel does not say where threads wait")
    job = LocalJob.create(tmp_path, JobNote("0:a", os.geteuid(), os.getegid(), 1, 0.0))
    try:
        job.add(shell.pid, process_start_ticks(shell.pid) or 0)
        words = job.page._read()
        line = words.classes[IoClass.WRITE]
        line.begun_calls, line.ended_calls = 7, 6
        line.last_active_ns = time.monotonic_ns() - 5 * 10**9
        job.page._write(0, words)
        until(lambda: job.read_counters(GAP_S, reads=True).idle_s >= 5.0)
        # One look that found the job waiting is enough.
        line.begun_calls, line.ended_calls = 9, 8
        line.last_active_ns = time.monotonic_ns()
        job.page._write(0, words)
        assert job.read_counters(60.0, reads=True).idle_s > 0.0
    finally:
        job.close(remove=True)
