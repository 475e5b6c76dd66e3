# SPDX-License-Identifier: MIT
"""Live staging decides as the simulator does: same strategies, same turns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

from penstock.live.control.stager import Stager
from penstock.sim.forecast import live_forecast
from penstock.staging import (
    ApplicationStatus,
    Situation,
    StagingOrder,
    StagingPlan,
    Strategy,
    get_strategy,
)


def _stager(name: str) -> Stager:
    return Stager(get_strategy(name))


def test_the_second_stages_behind_the_first() -> None:
    stager = _stager("2a")
    both = (
        ApplicationStatus("a", phase_began_s=0.0),
        ApplicationStatus("b", phase_began_s=1.0, staged_bytes=5.0),
    )
    orders = stager.decide(both, 2.0)
    assert not orders["a"].stage
    assert orders["b"].stage
    assert not orders["b"].drain
    alone = (ApplicationStatus("b", phase_began_s=1.0, staged_bytes=5.0),)
    orders = stager.decide(alone, 3.0)
    assert not orders["b"].stage
    assert orders["b"].drain


def test_a_job_without_journals_writes_through() -> None:
    """It would be held until its turn to drain, and has nothing to drain."""
    stager = _stager("2a")
    both = [
        ApplicationStatus("a", phase_began_s=0.0),
        ApplicationStatus("b", phase_began_s=1.0, can_stage=False),
    ]
    assert not stager.decide(both, 2.0)["b"].stage
    third = ApplicationStatus("c", phase_began_s=1.5, staged_bytes=5.0)
    orders = stager.decide([*both, third], 2.0)
    assert [orders[name].stage for name in "abc"] == [False, False, True]


def test_windows_are_taken_in_turn() -> None:
    stager = _stager("2b:flush=window,window=2")
    blocked = [
        ApplicationStatus(
            name, phase_began_s=float(i), staged_bytes=9.0, is_blocked=True
        )
        for i, name in enumerate("abc")
    ]
    writing = ApplicationStatus("w", phase_began_s=-1.0)
    drained = []
    now = 10.0
    for _ in range(6):
        orders = stager.decide([writing, *blocked], now)
        (one,) = [name for name, order in orders.items() if order.drain]
        drained.append(one)
        assert stager.wake == now + 2.0
        now = stager.wake
    assert drained == list("abcabc")


def test_a_job_that_leaves_is_forgotten() -> None:
    stager = _stager("2b:flush=token")
    first = ApplicationStatus("a", phase_began_s=0.0, staged_bytes=9.0, is_blocked=True)
    second = ApplicationStatus(
        "b", phase_began_s=1.0, staged_bytes=9.0, is_blocked=True
    )
    writing = ApplicationStatus("w", phase_began_s=-1.0)
    assert stager.decide([writing, first, second], 2.0)["a"].drain
    assert stager.decide([writing, second], 3.0)["b"].drain
    again = stager.decide([writing, second, first], 4.0)
    assert again["b"].drain
    assert not again["a"].drain


def test_a_static_part_is_kept_while_the_job_is_there() -> None:
    stager = Stager(get_strategy("3a"), targets=8)
    first, second = (ApplicationStatus(name) for name in "ab")
    assert stager.decide([first], 0.0)["a"].targets == (0, 1, 2, 3)
    both = stager.decide([replace(first, phase_bytes=9.0), second], 1.0)
    assert both["a"].targets == (0, 1, 2, 3)
    assert both["b"].targets == (4, 5, 6, 7)
    assert stager.decide([second], 2.0)["b"].targets == (4, 5, 6, 7)
    # It was gone: it gets a new part.
    again = stager.decide([second, first], 3.0)
    assert again["a"].targets == (0, 1, 2, 3)


def test_a_static_part_is_kept_over_a_restart_of_the_controller() -> None:
    stager = Stager(get_strategy("3a"), targets=4, names="ABCD")
    stager.restore("b", ("A", "B"))
    stager.restore("c", ("A", "gone"))
    orders = stager.decide([ApplicationStatus(name) for name in "abc"], 0.0)
    assert orders["b"].targets == (0, 1)
    assert set(orders["a"].targets).isdisjoint((0, 1))
    assert set(orders["c"].targets).isdisjoint((0, 1))


def test_without_staging_there_is_no_wake_up() -> None:
    stager = _stager("none")
    orders = stager.decide(
        [
            ApplicationStatus("a", phase_began_s=0.0),
            ApplicationStatus("b", phase_began_s=0.0),
        ],
        1.0,
    )
    assert not any(order.stage for order in orders.values())
    assert stager.wake == inf


def test_a_strategy_is_shown_its_memory_and_forecasts_of_the_bandwidth() -> None:
    seen: list[Situation] = []

    def coordinate(situation: Situation) -> StagingPlan:
        seen.append(situation)
        orders = [StagingOrder((0, 1))] * len(situation.applications)
        return StagingPlan(orders, memory=len(seen), reason="because")

    stager = Stager(
        Strategy("own", "own", coordinate, {}),
        2,
        forecast=partial(live_forecast, targets=2),
    )
    job = ApplicationStatus("a", redirects=False)
    stager.decide([job], 0.0)
    assert stager.reason == "because"
    stager.decide([replace(job, phase_began_s=1.0)], 1.0, 5e9)
    first, second = seen
    assert (first.memory, second.memory) == (None, 1)
    # Without a bandwidth there is no forecast.
    assert first.forecast is None
    assert second.forecast == live_forecast(5e9, 2)
    # Its files were opened on the targets of the order before.
    assert first.applications[0].open_targets == ()
    assert second.applications[0].open_targets == (0, 1)
