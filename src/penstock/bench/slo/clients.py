# SPDX-License-Identifier: MIT
"""A group of processes that read or write at a rate which changes, as IOR's do.

Each process issues its next request when the one before is answered, and no sooner than
the group's rate says: P processes that issue s bytes at a time at rate r issue every
P s / r seconds each, evenly staggered. Without a rate they issue as fast as they can.

``python -m penstock.bench.slo.clients`` reads a `ClientPlan` (JSON) from standard
input. It prints a list of issue and answer times (seconds of the monotonic clock). The
client processes are forks, because starting 32 interpreters takes longer than the
experiment.
"""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from penstock.bench.slo.windows import AnsweredRequest
from penstock.errors import InputError

__all__ = ["ClientPlan", "Kind", "finish", "main", "rate_at", "start", "stop"]

#: Longest wait after the end of the plan (s).
_PATIENCE_S: Final = 120.0


Kind: TypeAlias = Literal["read", "write"]


class ClientPlan(msgspec.Struct, frozen=True):
    """What a group of processes does."""

    folder: str
    kind: Kind
    size: int
    """Bytes of a request."""
    processes: int
    begin: float
    """When it begins (s, monotonic clock),"""
    end: float
    """and ends."""
    rates: tuple[tuple[float, float], ...] = ()
    """Points (s after the beginning, bytes/s), straight lines between; without any, as
    fast as can be."""
    span: int = 1 << 20
    """Bytes of the file of a process; reads go anywhere in it."""


# --- Started by a benchmark -----------------------------------------------------------


def start(plan: ClientPlan) -> subprocess.Popen[bytes]:
    """Start a group."""
    process = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C is for the benchmark, which then stops them: not for each of them.
        start_new_session=True,
    )
    if process.stdin is not None:
        process.stdin.write(msgspec.json.encode(plan))
        process.stdin.close()
        process.stdin = None
    return process


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a group, all of it and at once, if it has not ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def finish(process: subprocess.Popen[bytes], plan: ClientPlan) -> list[AnsweredRequest]:
    """Return all answers of a group, by times after its beginning (s)."""
    limit_s = max(0.0, plan.end - time.monotonic()) + _PATIENCE_S
    said, _ = process.communicate(timeout=limit_s)
    if process.returncode != 0:
        raise InputError("a client of the benchmark failed", remedy="see above")
    answers = msgspec.json.decode(said, type=list[AnsweredRequest])
    return [
        AnsweredRequest(a.issued - plan.begin, a.answered - plan.begin) for a in answers
    ]


# --- The processes themselves ---------------------------------------------------------


def rate_at(rates: Sequence[tuple[float, float]], time_s: float) -> float:
    """Return the rate (bytes/s) at a time; 0 before the first point."""
    before = [point for point in rates if point[0] <= time_s]
    after = [point for point in rates if point[0] > time_s]
    if not before or not after:
        return before[-1][1] if before else 0.0
    (begin, low), (end, high) = before[-1], after[0]
    return low + (high - low) * (time_s - begin) / (end - begin)


def main() -> None:
    """Run the group that standard input describes."""
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=ClientPlan)
    pipes = [_forked(plan, number) for number in range(plan.processes)]
    answers = [answer for pipe in pipes for answer in _received(pipe)]
    sys.stdout.buffer.write(msgspec.json.encode(answers))
    for _ in pipes:
        if os.wait()[1]:
            sys.exit(1)


def _forked(plan: ClientPlan, number: int) -> int:
    """Start one process; return the pipe on which it tells its answers."""
    receive, send = os.pipe()
    if os.fork():
        os.close(send)
        return receive
    answers = list(_answers(plan, number))
    with os.fdopen(send, "wb") as stream:
        stream.write(msgspec.json.encode(answers))
    os._exit(0)


def _received(pipe: int) -> list[AnsweredRequest]:
    with os.fdopen(pipe, "rb") as stream:
        return msgspec.json.decode(stream.read() or b"[]", type=list[AnsweredRequest])


def _answers(plan: ClientPlan, number: int) -> Iterator[AnsweredRequest]:
    """Issue requests until the plan ends."""
    transfer = _Transfer(plan, number)
    issue = _first(plan, number, 0.0)
    turn = 0
    while issue < plan.end:
        time.sleep(max(0.0, issue - time.monotonic()))
        issued = time.monotonic()
        transfer(turn)
        answered = time.monotonic()
        yield AnsweredRequest(issued, answered)
        turn += 1
        issue = _next(plan, number, issued, answered)


def _next(plan: ClientPlan, number: int, issued: float, answered: float) -> float:
    """Return when to issue the next request."""
    if not plan.rates:
        return answered
    rate = rate_at(plan.rates, answered - plan.begin)
    pause = plan.processes * plan.size / rate if rate > 0.0 else 0.0
    issue = max(answered, issued + pause)
    if rate_at(plan.rates, issue - plan.begin) <= 0.0:
        return _first(plan, number, issue - plan.begin)
    return issue


def _first(plan: ClientPlan, number: int, time_s: float) -> float:
    """Return when a process begins: the group does at the next point with a rate."""
    if not plan.rates:
        return plan.begin
    ahead = [point for point in plan.rates if point[0] >= time_s and point[1] > 0.0]
    if not ahead:
        return plan.end
    begin, rate = ahead[0]
    return plan.begin + begin + number * plan.size / rate


class _Transfer:
    """Moves one request."""

    def __init__(self, plan: ClientPlan, number: int) -> None:
        self._plan = plan
        self._data = mmap.mmap(-1, plan.size)
        self._data.write(b"x" * plan.size)
        # Reads must not be answered from the kernel's cache.
        flags = os.O_RDONLY | os.O_DIRECT if plan.kind == "read" else os.O_WRONLY
        path = Path(plan.folder) / f"{plan.kind}-{number}"
        self._fd = os.open(path, flags | (os.O_CREAT if plan.kind == "write" else 0))
        self._places = max(1, plan.span // plan.size)

    def __call__(self, turn: int) -> None:
        # A full period of places that looks random: 40503 is odd and large.
        place = turn * 40503 % self._places * self._plan.size
        if self._plan.kind == "read":
            os.preadv(self._fd, [self._data], place)
        else:
            os.pwritev(self._fd, [self._data], place)


if __name__ == "__main__":
    main()
