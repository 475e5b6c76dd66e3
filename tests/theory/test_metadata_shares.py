# SPDX-License-Identifier: MIT
"""Closed forms of metadata shares for programs that wait for each answer.

Such a program has one operation at a time. An application of p programs therefore has
at most p of the D operations at the storage, and a share of at most about p / D,
whatever it was promised. While it computes, others are served. If the processor is the
limit, fewer than D operations are at the storage, and the scheduler has nothing to
decide.
"""

from __future__ import annotations

from collections import Counter, deque
from heapq import heappop, heappush
from itertools import count
from math import ceil

import pytest

from penstock.qos import Request, Slo
from penstock.qos.metadata import MetadataScheduler

#: Service time of an operation at the storage, which serves one after the other.
SERVICE_S = 1e-3
#: Programs of the other application: always more than there are places.
MANY = 32


class ClosedLoop:
    """Programs, a processor that all of them need, the scheduler, and a storage.

    A program computes, makes one operation, waits for the answer, and begins again.
    Processor and storage serve first come, first served. `few_s` is a time that
    programs of the application "few" need besides, on processors of their own.
    """

    def __init__(
        self, depth: int, weights: dict[str, float], processor_s: float, few_s: float
    ) -> None:
        slos = {name: Slo(1e6 * weight, 1.0) for name, weight in weights.items()}
        self.scheduler = MetadataScheduler(slos, depth)
        self.scheduler.run_interpreted()
        self.served: Counter[str] = Counter()
        self.waited = 0
        self._processor_s = processor_s
        self._few_s = few_s
        self._events: list[tuple[float, int, str, Request]] = []
        self._numbers = count()
        self._queues: dict[str, deque[Request]] = {
            "processor": deque(),
            "storage": deque(),
        }

    def run(self, programs: dict[str, int], operations: int) -> None:
        """Serve so many operations of the programs of each application."""
        for number in range(max(programs.values())):
            for name, most in programs.items():
                if number < most:
                    self._enter("processor", Request("metadata", 0, name), 0.0)
        while self.served.total() < operations:
            now, _, station, request = heappop(self._events)
            if station == "own":
                self._enter("processor", request, now)
                continue
            self._queues[station].popleft()
            self._start(station, now)
            if station == "processor":
                self.scheduler.arrive(request, now)
            else:
                self.scheduler.complete(request, 0, now)
                self.served[request.application] += 1
            for sent in self.scheduler.dispatch(now):
                self._enter("storage", sent, now)
            self.waited += self.scheduler.waiting
            if station == "storage":
                self._begin_again(request.application, now)

    def _begin_again(self, name: str, now: float) -> None:
        own_s = self._few_s if name == "few" else 0.0
        event = (now + own_s, next(self._numbers), "own", Request("metadata", 0, name))
        heappush(self._events, event)

    def _enter(self, station: str, request: Request, now: float) -> None:
        queue = self._queues[station]
        queue.append(request)
        if len(queue) == 1:
            self._start(station, now)

    def _start(self, station: str, now: float) -> None:
        """Serve the first request of a station, if there is one."""
        if not self._queues[station]:
            return
        took_s = SERVICE_S if station == "storage" else self._processor_s
        event = (now + took_s, next(self._numbers), station, self._queues[station][0])
        heappush(self._events, event)


def share_of_few(
    depth: int,
    programs: int,
    weight: float = 1.0,
    processor_s: float = 1e-9,
    few_s: float = 0.0,
) -> tuple[float, ClosedLoop]:
    """Return the share of an application with few programs beside one with many."""
    loop = ClosedLoop(depth, {"few": weight, "many": 1.0}, processor_s, few_s)
    loop.run({"few": programs, "many": MANY}, 4000)
    return loop.served["few"] / loop.served.total(), loop


@pytest.mark.parametrize("weight", [1.0, 3.0])
@pytest.mark.parametrize("programs", [1, 2, 4, 8])
@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_a_share_is_kept_if_there_are_enough_programs(
    depth: int, programs: int, weight: float
) -> None:
    """The share is the least of what is promised, possible and allowed.

    A program waits for D operations at the storage, its own included, and for one more
    at the scheduler: the other application had its place meanwhile. This does not
    happen if it is alone, as nobody may have all D places.
    """
    promised = weight / (weight + 1.0)
    possible = programs / (depth + 1)
    if programs == 1 and depth > 1:
        possible = 1 / depth
    allowed = (depth - 1) / depth if depth > 1 else 1.0
    share, _ = share_of_few(depth, programs, weight)
    assert share == pytest.approx(min(promised, possible, allowed), rel=0.01)


@pytest.mark.parametrize("services", [0.5, 1.5, 5.5, 9.5])
def test_others_are_served_while_a_program_computes(services: float) -> None:
    """In the time of x services, others have x of them, rounded up."""
    share, _ = share_of_few(1, 1, few_s=services * SERVICE_S)
    assert share == pytest.approx(1 / (1 + ceil(services)), rel=0.01)


@pytest.mark.parametrize("depth", [1, 2, 8])
def test_shares_follow_the_programs_if_the_processor_is_the_limit(depth: int) -> None:
    share, loop = share_of_few(depth, 1, processor_s=1.5 * SERVICE_S)
    assert share == pytest.approx(1 / (MANY + 1), rel=0.02)
    assert loop.waited == 0
