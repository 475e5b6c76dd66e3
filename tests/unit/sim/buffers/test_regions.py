# SPDX-License-Identifier: MIT
"""Regions: targets that are always used together are simulated as one."""

from __future__ import annotations

from math import inf

import pytest

from penstock.sim.buffers.model import Congestion, Storage, Writer
from penstock.sim.buffers.queue import Operation
from penstock.sim.buffers.regions import Regions, RegionSplitError, divided
from penstock.sim.buffers.sharing import Columns, TargetRules
from penstock.sim.buffers.state import ProcessGroup, WriterState

STORAGE = Storage(8.0, 4)
ALL = (0, 1, 2, 3)


def no_columns() -> Columns:
    raise AssertionError("no policy is asked")


def regions(*parts: tuple[int, ...]) -> Regions:
    rules = TargetRules(STORAGE.target_bandwidth, Congestion())
    return Regions(STORAGE, rules, parts or [ALL], no_columns)


def operation(volume: float = 16.0, number: int = 0) -> Operation:
    app = WriterState(Writer("A", ()), number)
    return Operation(ProcessGroup(app, 0, 1, 1.0, ()), 0.0, volume)


def test_an_operation_on_all_targets_has_all_the_bandwidth() -> None:
    made = regions()
    assert made.next_instant() == inf
    begun = made.start(operation(), ALL, 0, gain=1.0)
    made.share(0.0, 0.0)
    assert made.next_instant() == 2.0
    assert made.served(0) == 1.0
    assert made.is_serving(0)
    assert not made.is_serving(1)
    assert made.take_done(1.0, 1.0) == []
    assert made.take_done(2.0, 2.0) == [begun.group]
    assert made.carried() == (4.0,) * 4


def test_a_drain_that_combines_requests_needs_less_time() -> None:
    made = regions()
    made.start(operation(), ALL, 1, gain=1.25)
    made.share(0.0, 0.0)
    assert made.next_instant() == 1.6


def test_targets_inside_a_region_split_it() -> None:
    with pytest.raises(RegionSplitError) as caught:
        regions().start(operation(), (0, 1), 0, gain=1.0)
    assert caught.value.regions == [(0, 1), (2, 3)]
    assert divided([(0, 1), (2, 3)], (1, 2)) == [(1,), (2,), (0,), (3,)]


def test_an_operation_ends_with_the_last_of_its_parts() -> None:
    made = regions((0, 1), (2, 3))
    wide = made.start(operation(), ALL, 0, gain=1.0)
    narrow = made.start(operation(8.0, 1), (0, 1), 1, gain=1.0)
    made.share(0.0, 0.0)
    # Targets 2 and 3 serve their 4 bytes each by 2; 0 and 1 share 2 bytes/s.
    assert made.next_instant() == 2.0
    assert made.take_done(2.0, 2.0) == []
    made.share(2.0, 2.0)
    assert made.next_instant() == 4.0
    assert made.take_done(4.0, 4.0) == [wide.group, narrow.group]
    assert made.carried() == (8.0, 8.0, 4.0, 4.0)


def test_a_drain_is_stopped_limited_and_continued() -> None:
    made = regions()
    drain = made.start(operation(), ALL, 1, gain=1.0)
    made.let_drain(drain, 4.0, 0.0, drains=True)
    made.share(0.0, 0.0)
    assert made.next_instant() == 4.0
    made.let_drain(drain, 4.0, 1.0, drains=False)
    made.share(1.0, 1.0)
    assert (made.next_instant(), drain.remaining(50.0)) == (inf, 12.0)
    made.let_drain(drain, inf, 50.0, drains=True)
    made.share(50.0, 50.0)
    assert made.next_instant() == 51.5


def test_other_rules_are_used_at_once() -> None:
    made = regions()
    made.start(operation(), ALL, 0, gain=1.0)
    made.share(0.0, 0.0)
    made.replace_rules(TargetRules(1.0, Congestion()))
    made.share(0.0, 0.0)
    assert made.next_instant() == 4.0
