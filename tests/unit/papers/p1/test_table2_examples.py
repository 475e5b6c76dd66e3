# SPDX-License-Identifier: MIT
"""Cases and examples; tests/theory/test_table2.py checks what the examples prove."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.analysis.adversary import Completion
from penstock.papers.p1.table2_examples import (
    Case,
    all_return_together,
    example_1,
    example_2,
    example_3,
    example_4,
    example_5,
    example_6,
)


@pytest.fixture(scope="module")
def case() -> Case:
    return example_1("fair-share", 4, 3.0)


def test_a_case_holds_policy_instance_and_objectives(case: Case) -> None:
    assert case.policy == "fair-share"
    assert len(case.instance.applications) == 4
    assert case.ours.min_yield == pytest.approx(1 / 4)


def test_the_best_schedule_depends_on_the_objective(case: Case) -> None:
    one = replace(case.ours, min_yield=0.5, efficiency=0.1)
    other = replace(case.ours, min_yield=0.2, efficiency=0.9)
    both = replace(case, references=(one, other))
    assert both.best("min_yield") == 0.5
    assert both.best("efficiency") == 0.9
    assert both.ratio("min_yield") == pytest.approx(2.0)


def test_margin_is_the_ratio_over_the_prediction(case: Case) -> None:
    assert case.ratio("min_yield") == pytest.approx(3.0)
    assert case.margin("min_yield") == pytest.approx(1.0)
    half = replace(case, predicted={"min_yield": 6.0})
    assert half.margin("min_yield") == pytest.approx(0.5)


@pytest.mark.parametrize("predicted", [3.0, math.inf])
def test_an_objective_of_zero_has_an_infinite_ratio(
    case: Case, predicted: float
) -> None:
    starved = replace(
        case,
        ours=replace(case.ours, min_yield=0.0),
        predicted={"min_yield": predicted},
    )
    assert starved.ratio("min_yield") == math.inf
    assert starved.margin("min_yield") == math.inf


@pytest.mark.parametrize(
    ("made", "objective", "limit"),
    [
        (lambda x: example_1("fair-share", 6, 1 / x), "min_yield", 6),
        (lambda x: example_2("fcfs", 6, x), "efficiency", 6 / 4 + 1 / 2),
        (lambda x: example_3("fcfs", 6, x), "efficiency", 6),
        (lambda x: example_4(6, x, cycles=8), "min_yield", 11 / 6),
        (lambda x: example_5("greedy-yield", 3, int(1 / x)), "min_yield", 4 / 3),
        (lambda x: example_6("best-next-event", 6, 1 / x), "min_yield", 5.5),
    ],
    ids=["1", "2", "3", "4", "5", "6"],
)
def test_ratios_are_as_predicted_and_tend_to_the_limit(
    made: Callable[[float], Case], objective: str, limit: float
) -> None:
    far, near = made(1 / 10), made(1 / 50)
    for each in (far, near):
        assert each.margin(objective) >= 1 - 1e-9
        assert each.ratio(objective) <= limit * (1 + 1e-9)
    distances = [limit - each.predicted[objective] for each in (far, near)]
    # The window of example 4 is short: only delta goes to its limit here.
    assert 0 <= distances[1] < distances[0]


def test_the_rule_of_example_5_closes_a_cycle_when_all_have_completed() -> None:
    """Served one after the other: c = 1, 2, so R = 1 + 1.5; work 1.5 and 0.5."""
    rule = all_return_together(2)
    first = [("io", 1.0)]
    assert rule([]) == [first, first]
    seen = [Completion(1.0, 0, 0)]
    assert rule(seen) == [first, first]
    seen.append(Completion(2.0, 1, 0))
    second = [[*first, ("work", w), ("io", 1.0)] for w in (1.5, 0.5)]
    assert rule(seen) == second
    # Both post again at 2.5. Now the order is reversed: c = 2, 1; work 0.5 and 1.5.
    seen += [Completion(3.5, 1, 1), Completion(4.5, 0, 1)]
    works = zip(second, (0.5, 1.5), strict=True)
    assert rule(seen) == [[*p, ("work", w), ("io", 1.0)] for p, w in works]
