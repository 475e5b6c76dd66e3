# SPDX-License-Identifier: MIT
"""Large calls: the callers of a job take turns, and a signal ends a wait.

A large call here would wait for half a minute or for days. What must not wait for it is
asserted by order: it is over while the large call still waits.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from penstock.live.node.pages.page import SLACK_S, Counters, IoClass, Mode
from support.jobs import Job
from support.launchers import FOREGROUND
from support.waiting import LIMIT_S, until

#: A rate at which every large call here would last for days (bytes/s).
CRAWL = 10.0
#: A large call, which takes 32 s at this rate, and the time within which a wait that is
#: ended must be over: milliseconds, but the machine may be busy.
SLOW, SIZE, SOON_S = 1e6, 32_000_000, 12.0
#: What a job may owe before signals no longer end its waits: see
#: ``docs/background/preload-library.md``.
DEBT_S, DEBT_BYTES, SLICE_S = 2.0, 1 << 20, 0.02

#: Writes the given sizes and prints the answers; SIGALRM raises an exception.
WRITES = """
import os, signal, sys
class Alarm(Exception): pass
def ring(*_): raise Alarm
signal.signal(signal.SIGALRM, ring)
fd = os.open(f'out-{os.getpid()}', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
for size in map(int, sys.argv[1:]):
    try:
        print(os.write(fd, bytes(size)), flush=True)
    except Alarm:
        print('alarm', flush=True)
"""
#: Prints a byte from within the handler of SIGUSR1, which does not wait for the call.
HANDLES = """
import os, signal, sys
os.set_blocking(1, False)
signal.set_wakeup_fd(1)
signal.signal(signal.SIGUSR1, lambda *_: None)
fd = os.open('out', os.O_WRONLY | os.O_CREAT, 0o600)
for size in map(int, sys.argv[1:]):
    assert os.write(fd, bytes(size)) == size
"""
STORM = """
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
fd = os.open('out', os.O_WRONLY | os.O_CREAT, 0o600)
size, count = map(int, sys.argv[1:])
for _ in range(count):
    assert os.pwrite(fd, bytes(size), 0) == size
signal.setitimer(signal.ITIMER_REAL, 0.0)
"""
THREADS = """
import os, sys, threading
large, lines = (os.open(n, os.O_WRONLY | os.O_CREAT, 0o600) for n in ('a', 'b'))
writer = threading.Thread(target=lambda: os.write(large, bytes(int(sys.argv[1]))))
writer.start()
sys.stdin.readline()
for _ in range(5):
    os.write(lines, b'abc')
print('lines', flush=True)
writer.join()
"""
#: Writes when a line comes.
READY = """
import os, sys
fd = os.open(f'out-{os.getpid()}', os.O_WRONLY | os.O_CREAT, 0o600)
data = bytes(int(sys.argv[1]))
print('ready', flush=True)
sys.stdin.readline()
assert os.write(fd, data) == len(data)
"""
READS = "import os\nfd = os.open('in', os.O_RDONLY)\nprint(len(os.read(fd, 1 << 30)))\n"


def _wrote(job: Job) -> Counters:
    return job.page.counters(IoClass.WRITE)


def _keep_all_credit(job: Job, rate: float) -> None:
    """Grant a rate; from now on the charge is exactly the sum of the calls."""
    job.page.gap_s = 1e9
    job.page.grant(rate, credit_s=3600.0)


def _start_waiting(job: Job, *command: object) -> subprocess.Popen[bytes]:
    """Start a program, and wait until its large call has been made and waits."""
    process = job.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    until(lambda: _wrote(job).moved_bytes > 0 and _wrote(job).waiting_calls == 1)
    return process


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


# --- Signals ----------------------------------------------------------------------


def test_an_alarm_ends_the_wait_of_a_large_write(job: Job, python: str) -> None:
    _keep_all_credit(job, SLOW)
    writer = _start_waiting(job, python, "-c", WRITES, SIZE)
    begun = time.monotonic()
    writer.send_signal(signal.SIGALRM)
    assert _line(writer) == b"alarm\n"
    assert time.monotonic() - begun < SOON_S
    assert writer.wait(timeout=LIMIT_S) == 0
    # The call was made in one piece, and what it did not wait for is owed.
    assert job.page.charged_bytes() == _wrote(job).moved_bytes == SIZE
    assert (job.folder / f"out-{writer.pid}").stat().st_size == SIZE


@pytest.mark.parametrize("rate", [SLOW, 0.0])
def test_an_interrupt_ends_a_python_program(job: Job, python: str, rate: float) -> None:
    job.page.grant(rate)
    writer = job.start(*FOREGROUND, python, "-c", WRITES, SIZE, stderr=-1)
    until(lambda: _wrote(job).waiting_calls == 1)
    begun = time.monotonic()
    writer.send_signal(signal.SIGINT)
    assert writer.wait(timeout=LIMIT_S) == -signal.SIGINT
    assert time.monotonic() - begun < SOON_S
    assert (job.folder / f"out-{writer.pid}").stat().st_size == SIZE


def test_a_signal_ends_the_wait_of_a_read(job: Job, python: str) -> None:
    (job.folder / "in").write_bytes(bytes(SIZE))
    job.page.grant(CRAWL)
    reader = job.start(
        *FOREGROUND, python, "-c", READS, stdout=subprocess.PIPE, stderr=-1
    )
    until(lambda: job.page.counters(IoClass.READ).waiting_calls == 1)
    begun = time.monotonic()
    reader.send_signal(signal.SIGINT)
    assert reader.wait(timeout=LIMIT_S) == -signal.SIGINT
    assert time.monotonic() - begun < SOON_S
    assert job.volume(IoClass.READ) == SIZE


def test_small_calls_after_an_ended_wait_do_not_wait_for_its_rest(
    job: Job, python: str
) -> None:
    job.page.grant(SLOW)
    writer = _start_waiting(job, python, "-c", WRITES, SIZE, 3, 3, 3)
    begun = time.monotonic()
    writer.send_signal(signal.SIGALRM)
    assert [_line(writer) for _ in range(4)] == [b"alarm\n", b"3\n", b"3\n", b"3\n"]
    assert time.monotonic() - begun < SOON_S
    granted = job.page.granted_bytes()
    assert granted is not None
    assert job.page.charged_bytes() > granted  # the rest is still owed


def test_an_ended_wait_is_paid_by_the_calls_that_follow(job: Job, python: str) -> None:
    size, count, rate = 4_000_000, 8, 4e6
    _keep_all_credit(job, rate)
    begun = time.monotonic()
    writer = _start_waiting(job, python, "-c", WRITES, *[size] * count)
    writer.send_signal(signal.SIGALRM)
    assert writer.wait(timeout=LIMIT_S) == 0
    # The last calls wait until the first is paid as well, but for a few slices.
    unpaid = size * 0.5
    assert time.monotonic() - begun >= (size * count - unpaid) / rate
    assert job.page.charged_bytes() == size * count


def test_a_job_that_owes_much_is_not_let_go_again(job: Job, python: str) -> None:
    size = 4 * DEBT_BYTES
    job.page.grant(CRAWL)
    writer = _start_waiting(job, python, "-c", HANDLES, size, size)
    assert writer.stdout is not None
    writer.send_signal(signal.SIGUSR1)
    assert os.read(writer.stdout.fileno(), 1) == bytes([signal.SIGUSR1])
    # The second call waits before it is made, behind a slice of the debt.
    until(lambda: _wrote(job).begun_calls == 2 and _wrote(job).waiting_calls == 1)
    writer.send_signal(signal.SIGUSR1)
    assert os.read(writer.stdout.fileno(), 1) == bytes([signal.SIGUSR1])
    time.sleep(0.3)
    assert _wrote(job).waiting_calls == 1
    assert _wrote(job).moved_bytes == size
    # The signal is remembered: it ends the wait when the debt has become small.
    job.page.grant(3 * DEBT_BYTES)
    until(lambda: _wrote(job).moved_bytes == 2 * size)
    assert writer.wait(timeout=LIMIT_S) == 0


def test_a_storm_of_signals_does_not_exceed_the_grant(job: Job, python: str) -> None:
    size, count, rate = 4_000_000, 8, 4e6
    _keep_all_credit(job, rate)
    begun = time.monotonic()
    assert job.run(python, "-c", STORM, size, count).returncode == 0
    owed = (DEBT_S + 2 * SLICE_S) * rate + DEBT_BYTES + size
    assert time.monotonic() - begun >= (size * count - owed) / rate
    assert job.page.charged_bytes() == _wrote(job).moved_bytes == size * count


def test_a_child_forked_by_a_handler_during_a_wait_is_not_charged(
    job: Job, calls: Path
) -> None:
    """The write is one, though it returns in two processes."""
    _keep_all_credit(job, SLOW / 10)
    process = job.start(calls, "fork_in_handler")
    until(lambda: _wrote(job).waiting_calls == 1)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=LIMIT_S) == 0
    counters = _wrote(job)
    assert job.page.charged_bytes() == counters.moved_bytes == 1 << 20
    assert counters.begun_calls == counters.ended_calls == 2
    assert job.page._view.classes[IoClass.WRITE].waiting_calls == 0


# --- Turns ------------------------------------------------------------------------


def test_lines_of_a_thread_do_not_wait_behind_a_large_write(
    job: Job, python: str
) -> None:
    job.page.grant(SLOW)
    process = _start_waiting(job, python, "-c", THREADS, SIZE)
    _let_go(process)
    assert _line(process) == b"lines\n"
    assert _wrote(job).ended_calls == 5
    assert _wrote(job).waiting_calls == 1
    job.page.grant(math.inf)
    assert process.wait(timeout=LIMIT_S) == 0


def test_lines_of_a_process_do_not_wait_behind_a_large_write(
    job: Job, python: str
) -> None:
    job.page.grant(SLOW)
    large = _start_waiting(job, python, "-c", WRITES, SIZE)
    assert job.run(python, "-c", WRITES, *[3] * 5).stdout == b"3\n" * 5
    assert large.poll() is None
    assert _wrote(job).waiting_calls == 1


def test_small_writes_do_not_wait_behind_a_large_read(job: Job, python: str) -> None:
    (job.folder / "in").write_bytes(bytes(SIZE))
    job.page.grant(SLOW)
    large = job.start(python, "-c", READS, stdout=subprocess.PIPE)
    until(lambda: job.page.counters(IoClass.READ).waiting_calls == 1)
    assert job.run(python, "-c", WRITES, *[3] * 5).stdout == b"3\n" * 5
    assert large.poll() is None


def test_large_writers_share_evenly_and_draw_their_grant(job: Job, python: str) -> None:
    size, rate = 8_000_000, 4e6
    job.page.grant(rate)
    writers = [
        job.start(
            python, "-c", READY, size, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    assert [_line(writer) for writer in writers] == [b"ready\n"] * 2
    begun = time.monotonic()
    for writer in writers:
        _let_go(writer)
    until(lambda: _wrote(job).ended_calls > 0)
    # One after the other, the first would end after half of this time.
    assert time.monotonic() - begun >= 1.5 * size / rate
    assert [writer.wait(timeout=LIMIT_S) for writer in writers] == [0, 0]
    assert time.monotonic() - begun >= 2 * size / rate - SLACK_S
    assert _wrote(job).moved_bytes == 2 * size


def test_the_grant_of_the_time_inside_a_large_call_is_not_lost(
    job: Job, python: str
) -> None:
    """A call that is slow by itself does not wait for the same time once more."""
    size, rate = 16_000_000, 8e6
    job.page.grant(rate)
    writer = _start_waiting(job, python, "-c", WRITES, size)
    writer.send_signal(signal.SIGSTOP)
    charged = job.page.charged_bytes()
    until(lambda: (job.page.granted_bytes() or 0) > charged + size)
    job.page.grant(CRAWL)
    writer.send_signal(signal.SIGCONT)
    begun = time.monotonic()
    assert writer.wait(timeout=LIMIT_S) == 0
    assert time.monotonic() - begun < SOON_S


def test_a_pause_stops_a_large_call_between_its_slices(job: Job, python: str) -> None:
    _keep_all_credit(job, SLOW)
    writer = _start_waiting(job, python, "-c", WRITES, SIZE)
    job.page.grant(0.0, credit_s=3600.0)
    granted = job.page.granted_bytes()
    assert granted is not None
    time.sleep(0.2)
    assert job.page.charged_bytes() <= granted + 2 * SLICE_S * SLOW
    job.page.grant(math.inf)
    assert writer.wait(timeout=LIMIT_S) == 0
    assert job.page.charged_bytes() == SIZE


def test_a_killed_caller_leaves_one_slice_charged(job: Job, python: str) -> None:
    job.page.grant(CRAWL)
    victim = _start_waiting(job, python, "-c", WRITES, SIZE)
    victim.kill()
    victim.wait(timeout=LIMIT_S)
    assert job.page.charged_bytes() < SIZE / 100
    assert _wrote(job).moved_bytes == SIZE


def test_the_rest_of_a_call_is_charged_when_the_lease_ends(
    job: Job, python: str
) -> None:
    _keep_all_credit(job, CRAWL)
    writer = _start_waiting(job, python, "-c", WRITES, SIZE)
    job.page.renew(0.0)
    assert writer.wait(timeout=LIMIT_S) == 0
    assert job.page.charged_bytes() == SIZE


def test_a_dry_run_estimates_a_large_call_as_a_whole(job: Job, python: str) -> None:
    rate, volume = CRAWL, 100_000
    job.page.mode = Mode.DRY_RUN
    job.page.grant(rate)
    begun = time.monotonic()
    assert job.run(python, "-c", WRITES, volume).returncode == 0
    elapsed = time.monotonic() - begun
    estimated_s = _wrote(job).would_hold_up_s
    bytes_s = 2.0 / rate  # tags are whole bytes
    assert volume / rate - elapsed - bytes_s <= estimated_s <= volume / rate + bytes_s
