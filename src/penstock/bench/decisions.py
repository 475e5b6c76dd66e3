# SPDX-License-Identifier: MIT
"""How many events per second the controller takes, and how long a decision takes.

Jobs work and do I/O in turn, as the controller's own grants let them. *Load 0.8*: their
I/O needs 80 % of the bandwidth, so that a few of them are active at a time. *All
active*: no job ever works, so that every event concerns all of them. An event is a
post or a completion, with the decision that follows; only what the controller does is
counted: processor time for the rate, which is that of one core, and time on the clock
for the latency.

*To the page* is measured on a real daemon: from the first call of an I/O phase to the
new grant in the page, seen by the program that made the call.
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

from penstock.bench import Figure, Setting
from penstock.bench.daemon import page_latencies
from penstock.live.control.controller import Controller

__all__ = ["measure"]

_JOBS: Final = (10, 100, 1_000, 10_000)
_POLICIES: Final = ("fair-share", "greedy-yield")
_LOADS: Final = {"load 0.8": 0.8, "all active": inf}
_EVENTS: Final = 1_000
_CAPACITY: Final = 1e9
_PERIOD_S: Final = 100.0
#: Goals: events per second with 1,000 jobs, and latency (s).
_GOAL: Final = ("load 0.8", 1_000, 20_000.0)
_LATENCY_S: Final = 5e-3


def measure(setting: Setting) -> Iterator[Figure]:
    """Yield rates and latencies for all policies, loads and numbers of jobs."""
    for policy in _POLICIES:
        for load in _LOADS:
            for jobs in _JOBS:
                yield from _of(policy, load, jobs, setting.rounds)
    yield from _to_the_page(setting)


def _of(policy: str, load: str, jobs: int, rounds: int) -> Iterator[Figure]:
    site = _ControlledJobs(policy, jobs, _LOADS[load])
    runs = [site.costs(_EVENTS) for _ in range(max(1, rounds // 3) + 1)][1:]
    rates = [len(run) / sum(cost.processor_s for cost in run) for run in runs]
    name = f"{policy}, {load}, {jobs:,} jobs"
    least = _GOAL[2] if (load, jobs) == _GOAL[:2] else -inf
    yield Figure(f"{name}: events", max(rates), "per s", least=least)
    for part in (50, 99):
        found = statistics.median(
            float(np.percentile([cost.elapsed_s for cost in run], part)) for run in runs
        )
        most = _LATENCY_S * 1e3 if part == 99 and jobs <= _GOAL[1] else inf
        yield Figure(f"{name}: latency, p{part}", found * 1e3, "ms", most=most)


def _to_the_page(setting: Setting) -> Iterator[Figure]:
    found = page_latencies(setting.folder, 20 * max(1, setting.rounds // 3))
    for part, most in ((50, inf), (99, _LATENCY_S * 1e3)):
        value = float(np.percentile(found, part)) * 1e3
        yield Figure(f"to the page, p{part}", value, "ms", most=most)


class _Cost(NamedTuple):
    """What one event costs."""

    elapsed_s: float
    processor_s: float


def _timed(action: Callable[[], None]) -> _Cost:
    begun, spent = time.perf_counter(), time.thread_time()
    action()
    return _Cost(time.perf_counter() - begun, time.thread_time() - spent)


class _ControlledJobs:
    """Jobs that live on what the controller grants them.

    Parameters
    ----------
    load
        Sum over jobs of I/O time at full bandwidth over period; infinite: no work.
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

    def costs(self, events: int) -> list[_Cost]:
        """Return what each of the next events costs, at least so many."""
        found: list[_Cost] = []
        while len(found) < events:
            posts = self._ends and self._ends[0][0] <= self._wake
            found += self._post() if posts else self._complete()
        return found

    def _post(self) -> list[_Cost]:
        """Begin the operations of all that end their work at the same instant."""
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

    def _complete(self) -> list[_Cost]:
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


def _per_event(cost: _Cost, events: int) -> list[_Cost]:
    """Share the cost of an instant; when only the policy woke there is no event."""
    elapsed, processor = cost
    return [_Cost(elapsed / events, processor / events)] * events if events else []
