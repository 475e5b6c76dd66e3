# SPDX-License-Identifier: MIT
"""The strategy auto: which strategy it follows, when it looks again, what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import pytest

from penstock.errors import InputError
from penstock.staging import ApplicationStatus, Situation, StagingPlan, get_strategy
from penstock.staging.strategies.auto import AutoMemory
from support.staging_plans import IDLE, A, B, C, staging, widths

AUTO = "auto"


@dataclass
class FixedForecast:
    """Answers with given slowdowns, and notes what it was asked."""

    slowdowns: Mapping[str, float]
    can_stage: bool = True
    asked: list[str] = field(default_factory=list)

    def __call__(
        self, situation: Situation, strategy: str, horizon_s: float
    ) -> Mapping[str, float]:
        self.asked.append(strategy)
        if strategy not in self.slowdowns:
            raise InputError(f"{strategy} cannot be simulated")
        return {"A": self.slowdowns[strategy], "B": self.slowdowns[strategy]}


def _decide(
    situation: Situation, last: StagingPlan | None = None, name: str = AUTO
) -> StagingPlan:
    memory = last.memory if last else None
    return get_strategy(name).decide(replace(situation, memory=memory))


def _both(slowdowns: Mapping[str, float], now_s: float = 10.0) -> Situation:
    return Situation(now_s, 8, (A, B), forecast=FixedForecast(slowdowns))


def _choice(plan: StagingPlan) -> str:
    assert isinstance(plan.memory, AutoMemory)
    return plan.memory.choice


@pytest.mark.parametrize(
    ("best", "stages", "parts"),
    [
        ("none", [False, False], [8, 8]),
        ("1a", [True, False], [8, 8]),
        ("2b", [False, True], [8, 8]),
        ("3a", [False, False], [6, 2]),
        ("3b", [False, False], [6, 2]),
    ],
)
def test_the_plan_is_that_of_the_best_strategy(
    best: str, stages: list[bool], parts: list[int]
) -> None:
    slowdowns = dict.fromkeys(("none", "1a", "1b", "2a", "2b", "3a", "3b"), 2.0)
    plan = _decide(_both(slowdowns | {best: 1.5}))
    assert _choice(plan) == best
    assert staging(plan) == stages
    assert widths(plan) == parts


def test_the_reason_names_all_slowdowns_the_choice_first() -> None:
    plan = _decide(_both({"none": 2.0, "1a": 1.5, "3b": 1.25}))
    assert plan.reason == (
        "auto follows 3b (6 + 2 of 8 storage targets, by their data): simulated for "
        "the 2 applications that write now or within 60 s, their mean slowdown is 1.25 "
        "with 3b, 1.50 with 1a, 2.00 with none"
    )


@pytest.mark.parametrize(("best", "sharers"), [("3a", 3), ("3b", 2)])
def test_the_reason_says_how_the_targets_are_divided_now(
    best: str, sharers: int
) -> None:
    situation = replace(_both({"none": 2.0, best: 1.5}), applications=(A, B, IDLE))
    plan = _decide(situation)
    counts = " + ".join(map(str, widths(plan)[:sharers]))
    assert f"{best} ({counts} of 8 storage targets, by their data):" in plan.reason
    left = _decide(replace(situation, now_s=10.1, applications=(A, IDLE)), plan)
    assert _choice(left) == "none"
    assert "of 8 storage targets" not in left.reason


def test_equal_slowdowns_leave_all_writing_through() -> None:
    assert _choice(_decide(_both({"1a": 1.5, "none": 1.5, "3b": 1.5}))) == "none"


def test_nothing_is_simulated_until_the_set_of_writers_changes() -> None:
    situation = _both({"none": 2.0, "2a": 1.5})
    plan = _decide(situation)
    again = replace(situation, now_s=50.0, forecast=FixedForecast({"none": 1.0}))
    kept = _decide(again, plan)
    assert _choice(kept) == "2a"
    assert again.forecast is not None
    assert again.forecast.asked == []  # type: ignore[attr-defined]
    assert kept.wake_s == inf
    more = replace(again, applications=(A, B, C))
    assert _choice(_decide(more, kept)) == "none"


def test_a_small_gain_changes_nothing() -> None:
    plan = _decide(_both({"none": 2.0, "2a": 1.5, "3b": 1.6}))
    three = (A, B, C)
    slightly = FixedForecast({"none": 2.0, "2a": 1.51, "3b": 1.49})
    kept = _decide(Situation(20.0, 8, three, forecast=slightly), plan)
    assert _choice(kept) == "2a"
    assert "not enough better than 2a to change" in kept.reason
    clearly = FixedForecast({"none": 2.0, "2a": 1.6, "3b": 1.49})
    assert _choice(_decide(Situation(20.0, 8, three, forecast=clearly), plan)) == "3b"


def test_changes_within_the_interval_wait() -> None:
    plan = _decide(_both({"none": 2.0, "2a": 1.5}))
    better = FixedForecast({"none": 1.0, "2a": 1.5})
    early = _decide(Situation(10.125, 8, (A, B, C), forecast=better), plan)
    assert _choice(early) == "2a"
    assert early.wake_s == 10.25
    assert better.asked == []
    due = _decide(Situation(10.25, 8, (A, B, C), forecast=better), early)
    assert _choice(due) == "none"


def test_an_application_alone_costs_no_simulation() -> None:
    forecast = FixedForecast({"none": 2.0, "2a": 1.0})
    plan = _decide(Situation(10.0, 8, (A, IDLE), forecast=forecast))
    assert _choice(plan) == "none"
    assert forecast.asked == []
    assert "at most one application writes within 60 s" in plan.reason


def test_an_application_that_comes_soon_counts() -> None:
    coming = replace(IDLE, next_phase_s=69.0)
    forecast = FixedForecast({"none": 2.0, "3a": 1.0})
    assert _choice(_decide(Situation(10.0, 8, (A, coming), forecast=forecast))) == "3a"
    late = replace(IDLE, next_phase_s=71.0)
    assert _choice(_decide(Situation(10.0, 8, (A, late), forecast=forecast))) == "none"
    overdue = replace(IDLE, next_phase_s=9.0)
    assert (
        _choice(_decide(Situation(10.0, 8, (A, overdue), forecast=forecast))) == "none"
    )


def test_without_a_forecast_all_write_through() -> None:
    plan = _decide(Situation(10.0, 8, (A, B)))
    assert _choice(plan) == "none"
    assert "bandwidth of the storage is not known" in plan.reason


def test_too_many_writers_are_not_simulated() -> None:
    many = tuple(replace(A, name=f"a{number}") for number in range(9))
    forecast = FixedForecast({"none": 2.0, "2a": 1.0})
    plan = _decide(Situation(10.0, 100, many, forecast=forecast))
    assert _choice(plan) == "none"
    assert forecast.asked == []
    assert "9 applications are too many" in plan.reason


@pytest.mark.parametrize(
    ("situation", "asked"),
    [
        (Situation(10.0, 8, (A, B)), "none 1a 1b 2a 2b 3a 3b"),
        (Situation(10.0, 1, (A, B)), "none 1a 1b 2a 2b"),
        (Situation(10.0, 2, (A, B, C)), "none 1a 1b 2a 2b"),
    ],
)
def test_only_possible_strategies_are_simulated(
    situation: Situation, asked: str
) -> None:
    forecast = FixedForecast({"none": 1.0})
    _decide(replace(situation, forecast=forecast))
    assert forecast.asked == asked.split()
    unbuffered = FixedForecast({"none": 1.0}, can_stage=False)
    _decide(replace(situation, forecast=unbuffered))
    assert not {"1a", "1b", "2a", "2b"} & set(unbuffered.asked)


def test_staging_is_not_simulated_while_one_that_cannot_stage_writes() -> None:
    forecast = FixedForecast({"none": 1.0})
    without = replace(A, can_stage=False)
    _decide(Situation(10.0, 8, (without, B), forecast=forecast))
    assert forecast.asked == ["none", "3a", "3b"]


@pytest.mark.parametrize(
    ("use", "asked"),
    [("stage", "none 1a 1b 2a 2b"), ("partition", "none 3a 3b")],
)
def test_the_user_can_leave_strategies_out(use: str, asked: str) -> None:
    forecast = FixedForecast({"none": 1.0})
    situation = Situation(10.0, 8, (A, B), forecast=forecast)
    _decide(situation, name=f"auto:use={use}")
    assert forecast.asked == asked.split()


def test_a_static_part_is_kept_and_given_up_with_the_strategy() -> None:
    plan = _decide(_both({"none": 2.0, "3a": 1.5}))
    assert widths(plan) == [6, 2]
    # More is known of B, and the parts stay.
    larger = replace(B, phase_bytes=480.0)
    kept = _decide(Situation(11.0, 8, (A, larger)), plan)
    assert widths(kept) == [6, 2]
    alone = _decide(Situation(12.0, 8, (A, IDLE)), kept)
    assert widths(alone) == [8, 8]


def test_a_strategy_that_cannot_go_on_is_given_up() -> None:
    plan = _decide(
        Situation(10.0, 2, (A, B), forecast=FixedForecast({"none": 2.0, "3a": 1.5}))
    )
    assert _choice(plan) == "3a"
    more = (A, B, IDLE)
    lost = _decide(Situation(11.0, 2, more), plan)
    assert _choice(lost) == "none"
    assert "strategy 3a cannot go on" in lost.reason


def test_a_foreign_memory_counts_as_none() -> None:
    situation = replace(_both({"none": 2.0, "2a": 1.5}), memory="something else")
    assert _choice(get_strategy(AUTO).decide(situation)) == "2a"


def test_idle_applications_get_orders_too() -> None:
    plan = _decide(Situation(10.0, 8, (IDLE, ApplicationStatus("new"))))
    assert len(plan.orders) == 2
