# SPDX-License-Identifier: MIT
"""The queue of a storage target: equal rates for all requests of an application."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.buffers.model import Writer
from penstock.sim.buffers.queue import Operation, Part, TargetQueue
from penstock.sim.buffers.state import ProcessGroup, WriterState


def queue(cap: float = 10.0) -> TargetQueue:
    made = TargetQueue(0)
    made.cap = made.request_cap = cap
    return made


def part(
    in_queue: TargetQueue, need: float, processes: float = 1.0, unit: float = 1.0
) -> Part:
    """Return a part that each of some processes needs `need` units for."""
    group = ProcessGroup(WriterState(Writer("A", ()), 0), 0, 1, processes, ())
    operation = Operation(group, 0.0, need * processes * unit, unit)
    operation.parts.append(Part(operation, in_queue, 1, need))
    return operation.parts[0]


def test_an_empty_queue_never_completes() -> None:
    assert (queue().completion, queue().demand()) == (inf, 0.0)


def test_processes_share_the_rate_of_the_queue() -> None:
    made = queue()
    small, large = part(made, 10.0), part(made, 30.0, processes=3.0)
    for each in (small, large):
        made.add(each, 2.0)
    made.set_rate(8.0, 2.0)
    # Four processes get 2 units/s each.
    assert (made.rate, made.completion) == (2.0, 7.0)
    assert large.operation.remaining(4.0) == 3.0 * (30.0 - 4.0)
    assert large.operation.rate() == 6.0
    assert made.take_done(7.0, 7.0) == [small]
    made.set_rate(9.0, 7.0)
    assert made.completion == 7.0 + 20.0 / 3.0
    assert made.take_done(made.completion, made.completion) == [large]
    assert (made.weight, made.rate, made.completion) == (0.0, 0.0, inf)


def test_a_demand_is_limited_by_processes_application_and_strategy() -> None:
    made = queue()
    made.request_cap = 4.0
    made.add(part(made, 1.0, processes=2.0), 0.0)
    assert made.demand() == 8.0
    made.add(part(made, 1.0), 0.0)
    assert made.demand() == 10.0
    made.limit = 3.0
    assert made.demand() == 3.0


def test_a_part_that_is_taken_out_keeps_what_it_needs() -> None:
    made = queue()
    first, second = part(made, 10.0), part(made, 10.0)
    for each in (first, second):
        made.add(each, 0.0)
    made.set_rate(2.0, 0.0)
    made.remove(first, 4.0)
    first.operation.is_stopped = True
    assert first.remaining(100.0) == 6.0
    assert (first.operation.rate(), first.operation.share()) == (0.0, 0.0)
    made.set_rate(2.0, 4.0)
    assert made.completion == 7.0
    first.operation.is_stopped = False
    made.add(first, 5.0)
    made.set_rate(2.0, 5.0)
    # From 5 on both have 1 unit/s; the second one still needs 4.
    assert made.completion == 9.0
    assert made.take_done(9.0, 9.0) == [second]


def test_bytes_are_units_times_their_size() -> None:
    made = queue()
    each = part(made, 10.0, unit=4.0)
    made.add(each, 0.0)
    made.set_rate(5.0, 0.0)
    assert each.operation.volume == 40.0
    assert each.operation.remaining(1.0) == 20.0
    assert each.operation.rate() == 20.0
    assert each.operation.share() == 0.5
    assert (made.volume(), made.remaining(1.0), made.posted()) == (10.0, 5.0, 0.0)


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30))
def test_the_same_rate_changes_nothing_however_often_it_is_set(
    instants: list[float],
) -> None:
    made, plain = queue(), queue()
    for each in (made, plain):
        each.add(part(each, 1e3), 0.0)
        each.set_rate(3.0, 0.0)
    for instant in sorted(instants):
        made.set_rate(3.0, instant)
    assert made.completion == plain.completion
    assert made.served_at(101.0) == plain.served_at(101.0)


@given(
    needs=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    rate=st.integers(1, 9),
)
def test_all_work_is_done_and_none_twice(needs: list[int], rate: int) -> None:
    """The last request ends when the sum of all needs has been served."""
    made = queue(100.0)
    parts = [part(made, float(need)) for need in needs]
    for each in parts:
        made.add(each, 0.0)
    now, done = 0.0, []
    while made.weight > 0:
        made.set_rate(float(rate), now)
        now = made.completion
        done += made.take_done(now, now)
    assert now == pytest.approx(sum(needs) / rate)
    assert [p.need for p in done] == sorted(p.need for p in parts)
