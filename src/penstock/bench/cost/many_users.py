# SPDX-License-Identifier: MIT
"""2,000 jobs of 200 users: processor time of the controller and of an agent.

*Reports*: 100 of the jobs are active at a time and draw their grants; the controller
gets a report of all of them every 50 ms and decides. *Idle*: an agent with real pages
looks at 2,000 idle jobs for 30 s of a simulated clock. Only root can make pages for
other users: elsewhere all jobs are those of one user.

Each round begins anew, and the smallest number counts.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Final

from penstock.bench import Measurement
from penstock.bench.testbed import temporary_folder
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.node.agent import Agent
from penstock.live.wire.frames import Peer
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    AttachProcess,
    CounterReport,
    FromAgent,
    Grants,
    JobCounters,
    JobJoined,
)

__all__ = ["measure_idle_jobs", "measure_reports"]

_JOBS: Final = 2_000
_USERS: Final = 200
_FIRST_USER: Final = 60_000
#: Jobs that are active at a time, for how many reports, and how many reports in all.
_ACTIVE: Final = 100
_REPORTS: Final = 20
_ALL_REPORTS: Final = 200
_REPORT_S: Final = 0.05
_CAPACITY: Final = 1e9
#: How long jobs idle on the simulated clock, and the time between two updates.
_IDLE_S: Final = 30.0
_STEP_S: Final = 0.05
_CONFIG: Final = AgentConfig("control", ["/"], 0.1, _REPORT_S, 3.0, inf, reads=True)


# --- The controller -------------------------------------------------------------------


def measure_reports(rounds: int) -> Iterator[Measurement]:
    """Yield how many reports of a job the controller takes per second."""
    costs_s = [_ReportingJobs().cost_s() for _ in range(rounds)]
    rate = _ACTIVE * _ALL_REPORTS / min(costs_s)
    name = f"{_JOBS:,} jobs of {_USERS} users, {_ACTIVE} active: reports"
    yield Measurement(name, rate, "per s")


class _ReportingJobs:
    """Simulated jobs of one node that draw what they are granted."""

    def __init__(self) -> None:
        self._coordinator = Coordinator(Controller("fair-share", _CAPACITY), _CONFIG)
        self._now_s = 0.0
        self._keys = [f"{_user(number)}:job{number}" for number in range(_JOBS)]
        self._rates: dict[str, float] = {}
        self._moved_bytes = dict.fromkeys(self._keys, 0.0)
        self._held_up_s = dict.fromkeys(self._keys, 0.0)
        self._receive(AgentHello([]))
        for number, key in enumerate(self._keys):
            self._receive(JobJoined(key, _user(number), "0", 1, 0.0))
        self._decide()

    def cost_s(self) -> float:
        """Return the processor time of all reports and their decisions (s)."""
        cost_s = 0.0
        for number in range(_ALL_REPORTS):
            self._now_s += _REPORT_S
            report = self._report(number)
            begun_s = time.thread_time()
            self._receive(report)
            self._decide()
            cost_s += time.thread_time() - begun_s
        return cost_s

    def _report(self, number: int) -> CounterReport:
        """Let the active jobs draw their grants; return their counters.

        In every report some jobs end their operation, and as many begin one.
        """
        first = number * _ACTIVE // _REPORTS
        active = [self._keys[(first + each) % _JOBS] for each in range(_ACTIVE)]
        ended = [self._keys[(first - each) % _JOBS] for each in range(1, 6)]
        for key in active:
            rate = min(self._rates.get(key, 0.0), _CAPACITY)
            self._moved_bytes[key] += _REPORT_S * rate
            self._held_up_s[key] += _REPORT_S
        counters = [self._counters(key, 0.0) for key in active]
        counters += [self._counters(key, 1.0) for key in ended]
        return CounterReport(counters, _JOBS)

    def _counters(self, key: str, idle_s: float) -> JobCounters:
        moved_bytes, held_up_s = self._moved_bytes[key], self._held_up_s[key]
        return JobCounters(
            key, 1, moved_bytes, held_up_s, waiting=not idle_s, idle_s=idle_s
        )

    def _receive(self, message: FromAgent) -> None:
        self._coordinator.receive("node", message, self._now_s)

    def _decide(self) -> None:
        for _, message in self._coordinator.decide(self._now_s).messages:
            if isinstance(message, Grants):
                self._rates |= message.rates


# --- The agent ------------------------------------------------------------------------


def measure_idle_jobs(folder: Path, rounds: int) -> Iterator[Measurement]:
    """Yield what an agent takes for idle jobs, as a share of one core."""
    costs_s = []
    for _ in range(rounds):
        with temporary_folder(folder) as pages:
            costs_s.append(asyncio.run(_idle_cost_s(pages)))
    users = _USERS if os.geteuid() == 0 else 1
    name = f"agent with {_JOBS:,} idle jobs of {users} users: processor time"
    yield Measurement(name, 1e3 * min(costs_s) / _IDLE_S, "ms/s")


async def _idle_cost_s(folder: Path) -> float:
    """Return the processor time of an agent whose jobs idle for `_IDLE_S` (s)."""
    now_s = time.monotonic()

    def answer(message: FromAgent) -> None:
        if isinstance(message, JobJoined):
            agent.receive(Grants({message.job_key: inf}))

    agent = Agent(folder, answer, clock=lambda: now_s)
    try:
        agent.receive(_CONFIG)
        for number in range(_JOBS):
            user = _user(number) if os.geteuid() == 0 else os.geteuid()
            # Not too fast for the budget of a user.
            now_s += 1.0 / _USERS
            peer = Peer(os.getpid(), user, user)
            await agent.reply(peer, AttachProcess(f"job{number}", folder="/"))
        begun_s = time.process_time()
        for step in range(round(_IDLE_S / _STEP_S)):
            now_s += _STEP_S
            if step % 20 == 0:
                agent.receive(Grants({}))
            agent.update()
        return time.process_time() - begun_s
    finally:
        agent.close()


def _user(number: int) -> int:
    return _FIRST_USER + number % _USERS
