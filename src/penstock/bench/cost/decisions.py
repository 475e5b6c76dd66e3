# SPDX-License-Identifier: MIT
"""Events per second of the controller, and the latency of a decision.

Simulated jobs alternate work and I/O at the rates that the controller grants. *Load
0.8*: the I/O needs 80 % of the bandwidth, so that few jobs are active at a time. *All
active*: jobs never work, so that every event concerns all of them. An event is a post
or a completion with the decision that follows. Only the controller is measured:
processor time for the rate (events per second on one core), elapsed time for the
latency. Reports of 2,000 jobs of 200 users: see `many_users`.

*To the page* is measured on a real daemon: the time from the first call of an I/O phase
until the program that made the call sees the new grant in its page.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.random import default_rng

from penstock.bench import BenchSettings, Measurement
from penstock.bench.cost.many_users import measure_reports
from penstock.bench.cost.page_latency import page_latencies
from penstock.live.control.rates.controller import Controller

__all__ = ["ControlledJobs", "measure"]

_JOBS: Final = (10, 100, 1_000, 10_000)
_POLICIES: Final = ("fair-share", "greedy-yield")
_LOADS: Final = {"load 0.8": 0.8, "all active": inf}
_EVENTS: Final = 1_000
_CAPACITY: Final = 1e9
_PERIOD_S: Final = 100.0
#: Goals: load, number of jobs and events per second; and latency.
_GOAL: Final = ("load 0.8", 1_000, 20_000.0)
_LATENCY_S: Final = 5e-3


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield rates and latencies for all policies, loads and numbers of jobs."""
    for policy in _POLICIES:
        for load in _LOADS:
            for jobs in _JOBS:
                yield from _measure_controller(policy, load, jobs, settings.rounds)
    yield from measure_reports(max(1, settings.rounds // 3))
    yield from _to_the_page(settings)


def _measure_controller(
    policy: str, load: str, jobs: int, rounds: int
) -> Iterator[Measurement]:
    simulation = ControlledJobs(policy, jobs, _LOADS[load])
    runs = [simulation.costs(_EVENTS) for _ in range(max(1, rounds // 3) + 1)][1:]
    rates = [len(run) / sum(cost.processor_s for cost in run) for run in runs]
    name = f"{policy}, {load}, {jobs:,} jobs"
    least = _GOAL[2] if (load, jobs) == _GOAL[:2] else -inf
    yield Measurement(f"{name}: events", max(rates), "per s", least=least)
    for part in (50, 99):
        latency_s = statistics.median(
            float(np.percentile([cost.elapsed_s for cost in run], part)) for run in runs
        )
        most = _LATENCY_S * 1e3 if part == 99 and jobs <= _GOAL[1] else inf
        yield Measurement(f"{name}: latency, p{part}", latency_s * 1e3, "ms", most=most)


def _to_the_page(settings: BenchSettings) -> Iterator[Measurement]:
    latencies_s = page_latencies(settings.folder, 20 * max(1, settings.rounds // 3))
    for part, most in ((50, inf), (99, _LATENCY_S * 1e3)):
        value = float(np.percentile(latencies_s, part)) * 1e3
        yield Measurement(f"to the page, p{part}", value, "ms", most=most)


class _EventCost(NamedTuple):
    """The cost of one event."""

    elapsed_s: float
    processor_s: float


def _timed(action: Callable[[], None]) -> _EventCost:
    """Run an action and return its cost."""
    begin_s, processor_s = time.perf_counter(), time.thread_time()
    action()
    return _EventCost(time.perf_counter() - begin_s, time.thread_time() - processor_s)


class ControlledJobs:
    """Simulated jobs that move what the controller grants them.

    Parameters
    ----------
    load
        Sum over all jobs of I/O time at full bandwidth divided by the period;
        inf: jobs never work.
    """

    def __init__(self, policy: str, jobs: int, load: float) -> None:
        draw = default_rng(jobs)
        self._controller = Controller(policy, _CAPACITY)
        self._names = [f"0:{number}" for number in range(jobs)]
        share = min(load, 0.8) / jobs
        self._volumes = draw.uniform(0.5, 1.5, jobs) * share * _PERIOD_S * _CAPACITY
        self._work = _PERIOD_S if load < inf else 0.0
        self._numbers = {name: number for number, name in enumerate(self._names)}
        for name in self._names:
            self._controller.register(name, 0.0, cap=_CAPACITY)
        ends = draw.uniform(0.0, self._work, jobs).tolist()
        self._ends = [(end, number) for number, end in enumerate(ends)]
        heapify(self._ends)
        self._wake = inf

    def costs(self, events: int) -> list[_EventCost]:
        """Return the cost of each of the next events, at least `events` of them."""
        costs: list[_EventCost] = []
        while len(costs) < events:
            posts = self._ends and self._ends[0][0] <= self._wake
            costs += self._post() if posts else self._complete()
        return costs

    def _post(self) -> list[_EventCost]:
        """Post the operations of all jobs that end their work at the same instant."""
        now = self._ends[0][0]
        numbers = []
        while self._ends and self._ends[0][0] == now:
            numbers.append(heappop(self._ends)[1])

        def act() -> None:
            for number in numbers:
                self._controller.post(
                    self._names[number], now, float(self._volumes[number])
                )
            self._wake = self._controller.decide(now).wake

        return _per_event(_timed(act), len(numbers))

    def _complete(self) -> list[_EventCost]:
        """Complete the operations that are due at the wake-up of the controller."""
        now = self._wake
        done = self._controller.overdue(now)

        def act() -> None:
            for name in done:
                self._controller.complete(name, now)
            self._wake = self._controller.decide(now).wake

        cost = _timed(act)
        for name in done:
            heappush(self._ends, (now + self._work, self._numbers[name]))
        return _per_event(cost, len(done))


def _per_event(cost: _EventCost, events: int) -> list[_EventCost]:
    """Divide the cost of an instant by its events; a wake-up alone is no event."""
    elapsed, processor = cost
    return [_EventCost(elapsed / events, processor / events)] * events if events else []
