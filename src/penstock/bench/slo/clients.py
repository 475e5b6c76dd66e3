# SPDX-License-Identifier: MIT
"""A group of processes that read or write at a variable rate, like those of IOR.

A process issues its next request when the previous one is answered, but not faster than
the rate r of the group: with P processes and requests of s bytes, each process issues
one request per P s / r seconds, evenly staggered. Without a rate the processes issue as
fast as they can.

``python -m penstock.bench.slo.clients`` reads a `ClientPlan` (JSON) from standard
input. It prints a list of issue and answer times (seconds of the monotonic clock). The
client processes are forks, because starting 32 interpreters takes longer than the
experiment.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from penstock.bench.slo.windows import AnsweredRequest
from penstock.errors import InputError
from penstock.live.ending import end_process

__all__ = [
    "ClientPlan",
    "Kind",
    "file_of",
    "finish",
    "main",
    "rate_at",
    "run_groups",
    "start",
    "stop",
]

#: Longest wait after the end of the plan.
_TIMEOUT_S: Final = 120.0


Kind: TypeAlias = Literal["read", "write"]


class ClientPlan(msgspec.Struct, frozen=True):
    """The requests of a group of processes."""

    folders: tuple[str, ...]
    """Folders of the files; process n uses folder n, beginning again after the last."""
    kind: Kind
    size: int
    """Bytes of a request."""
    processes: int
    begin: float
    """Start of the first request (s, monotonic clock)."""
    end: float
    """No request is issued after this time (s, monotonic clock)."""
    rates: tuple[tuple[float, float], ...] = ()
    """Points (s after `begin`, bytes/s), interpolated linearly; empty: no limit."""
    span: int = 1 << 20
    """Bytes of the file of a process; requests go to all positions in it."""
    first: int = 0
    """Number of the first process."""


# --- In the benchmark -----------------------------------------------------------------


def start(plan: ClientPlan, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start a group of processes; `before` is a command that starts commands."""
    process = subprocess.Popen(  # noqa: S603 - our own program
        [*before, sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C must reach only the benchmark, which then stops the group.
        start_new_session=True,
    )
    if process.stdin is not None:
        # If it has failed already, `finish` says so.
        with suppress(BrokenPipeError), process.stdin as stream:
            stream.write(msgspec.json.encode(plan))
        process.stdin = None
    return process


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes of a group, unless it has ended."""
    if process.poll() is None:
        end_process(process, with_group=True)


def finish(process: subprocess.Popen[bytes], plan: ClientPlan) -> list[AnsweredRequest]:
    """Wait for a group; return its answers, with times after `plan.begin` (s)."""
    limit_s = max(0.0, plan.end - time.monotonic()) + _TIMEOUT_S
    output, _ = process.communicate(timeout=limit_s)
    if process.returncode != 0:
        raise InputError(
            "a client of the benchmark failed", remedy="see the error message above"
        )
    answers = msgspec.json.decode(output, type=list[AnsweredRequest])
    return [
        AnsweredRequest(a.issued - plan.begin, a.answered - plan.begin) for a in answers
    ]


def run_groups(
    plans: Mapping[str, ClientPlan], before: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[AnsweredRequest]]:
    """Run groups at the same time; return the answers of each group.

    `before` has the command that starts the processes of a group, if one is needed.
    """
    with ExitStack() as stack:
        started = {}
        for name, plan in plans.items():
            started[name] = start(plan, (before or {}).get(name, ()))
            stack.callback(stop, started[name])
        return {name: finish(started[name], plan) for name, plan in plans.items()}


# --- In the processes -----------------------------------------------------------------


def rate_at(rates: Sequence[tuple[float, float]], time_s: float) -> float:
    """Return the interpolated rate (bytes/s) at a time; 0 before the first point."""
    before = [point for point in rates if point[0] <= time_s]
    after = [point for point in rates if point[0] > time_s]
    if not before or not after:
        return before[-1][1] if before else 0.0
    (begin, low), (end, high) = before[-1], after[0]
    return low + (high - low) * (time_s - begin) / (end - begin)


def main() -> None:
    """Run the group described on standard input; print its answers."""
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=ClientPlan)
    pipes = [_fork(plan, number) for number in range(plan.processes)]
    answers = [answer for pipe in pipes for answer in _receive(pipe)]
    sys.stdout.buffer.write(msgspec.json.encode(answers))
    for _ in pipes:
        if os.wait()[1]:
            sys.exit(1)


def _fork(plan: ClientPlan, number: int) -> int:
    """Fork one process; return the pipe on which it sends its answers."""
    receive, send = os.pipe()
    if os.fork():
        os.close(send)
        return receive
    answers = list(_issue_requests(plan, number))
    with os.fdopen(send, "wb") as stream:
        stream.write(msgspec.json.encode(answers))
    os._exit(0)


def file_of(plan: ClientPlan, number: int) -> Path:
    """Return the file of a process, counted from 0 in its group."""
    number += plan.first
    return Path(plan.folders[number % len(plan.folders)]) / f"{plan.kind}-{number}"


def _receive(pipe: int) -> list[AnsweredRequest]:
    with os.fdopen(pipe, "rb") as stream:
        return msgspec.json.decode(stream.read() or b"[]", type=list[AnsweredRequest])


def _issue_requests(plan: ClientPlan, number: int) -> Iterator[AnsweredRequest]:
    """Issue requests until the plan ends; yield their times."""
    transfer = _Transfer(plan, number)
    next_s = _first_issue(plan, number, 0.0)
    count = 0
    while next_s < plan.end:
        time.sleep(max(0.0, next_s - time.monotonic()))
        issued = time.monotonic()
        transfer(count)
        answered = time.monotonic()
        yield AnsweredRequest(issued, answered)
        count += 1
        next_s = _next_issue(plan, number, issued, answered)


def _next_issue(plan: ClientPlan, number: int, issued: float, answered: float) -> float:
    """Return the time of the next request (s, monotonic clock)."""
    if not plan.rates:
        return answered
    rate = rate_at(plan.rates, answered - plan.begin)
    period_s = plan.processes * plan.size / rate if rate > 0.0 else 0.0
    next_s = max(answered, issued + period_s)
    if rate_at(plan.rates, next_s - plan.begin) <= 0.0:
        return _first_issue(plan, number, next_s - plan.begin)
    return next_s


def _first_issue(plan: ClientPlan, number: int, time_s: float) -> float:
    """Return the first request after a pause: the next point with a positive rate."""
    if not plan.rates:
        return plan.begin
    ahead = [point for point in plan.rates if point[0] >= time_s and point[1] > 0.0]
    if not ahead:
        return plan.end
    begin, rate = ahead[0]
    return plan.begin + begin + number * plan.size / rate


class _Transfer:
    """Makes the requests of one process."""

    def __init__(self, plan: ClientPlan, number: int) -> None:
        self._plan = plan
        self._data = mmap.mmap(-1, plan.size)
        self._data.write(b"x" * plan.size)
        # O_DIRECT: the kernel must not answer reads from its cache.
        flags = os.O_RDONLY | os.O_DIRECT if plan.kind == "read" else os.O_WRONLY
        path = file_of(plan, number)
        self._fd = os.open(path, flags | (os.O_CREAT if plan.kind == "write" else 0))
        self._positions = max(1, plan.span // plan.size)

    def __call__(self, count: int) -> None:
        # Visit all positions in a scattered order: 40503 is odd and large.
        position = count * 40503 % self._positions * self._plan.size
        if self._plan.kind == "read":
            os.preadv(self._fd, [self._data], position)
        else:
            os.pwritev(self._fd, [self._data], position)


if __name__ == "__main__":
    main()
