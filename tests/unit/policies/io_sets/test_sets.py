# SPDX-License-Identifier: MIT
"""IO-SETS: classes of periods, priorities, and shares between and inside sets."""

from __future__ import annotations

from math import floor, inf, log10
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels import interpreted
from penstock.policies import get_policy
from penstock.policies.io_sets.sets import (
    UNCLASSIFIED,
    initial_priority,
    magnitude,
    priority_of_magnitude,
    share_by_sets,
)
from penstock.policies.view import View
from support.views import Scene, make_view


def view_of(scene: Scene, settings: str = "") -> View:
    """Return a view with the parameters of set-10."""
    return make_view(scene, get_policy(f"set-10:{settings}").parameters.tolist())


def magnitude_of(settings: str = "", **columns: Any) -> int:
    """Return the set of one application."""
    scene = Scene(cap=[1.0], **columns)
    return int(interpreted(magnitude)(view_of(scene, settings), 0))


@given(st.floats(1e-5, 1e11))
def test_the_set_is_the_rounded_logarithm_of_the_mean_period(period_s: float) -> None:
    exact = log10(period_s) + 0.5
    number = magnitude_of(iterations=[4], iteration_time=[4 * period_s])
    assert number in {floor(exact - 1e-9), floor(exact + 1e-9)}


@pytest.mark.parametrize(("period_s", "number"), [(1e-30, -6), (1e30, 12)])
def test_the_last_sets_take_all_shorter_and_longer_periods(
    period_s: float, number: int
) -> None:
    assert magnitude_of(iterations=[1], iteration_time=[period_s]) == number


#: 99 s of work and 1 byte at 1 byte/s: the present iteration has 100 s.
PRESENT: dict[str, Any] = {"work_before": [99.0], "volume": [1.0], "remaining": [1.0]}


@pytest.mark.parametrize("update", ["completion", "post", "strict"])
def test_in_the_first_operation_there_is_no_set(update: str) -> None:
    assert magnitude_of(f"update={update}") == UNCLASSIFIED
    assert magnitude_of(f"update={update}", **PRESENT) == UNCLASSIFIED


@pytest.mark.parametrize(
    ("update", "number"), [("completion", 2), ("post", 2), ("strict", UNCLASSIFIED)]
)
def test_in_the_second_operation_the_present_iteration_counts(
    update: str, number: int
) -> None:
    assert magnitude_of(f"update={update}", operations=[1], **PRESENT) == number


@pytest.mark.parametrize(
    ("update", "number"), [("completion", 0), ("post", 2), ("strict", 0)]
)
def test_later_the_present_iteration_counts_with_update_post(
    update: str, number: int
) -> None:
    # One completed iteration of 2 s; its mean with the present one is 51 s.
    columns = {"iterations": [1], "iteration_time": [2.0], **PRESENT}
    assert magnitude_of(f"update={update}", **columns) == number


def test_a_given_period_replaces_the_learnt_one() -> None:
    columns: dict[str, Any] = {
        "iterations": [1],
        "iteration_time": [1.0],
        "period": [1000.0],
    }
    assert magnitude_of("period=given", **columns) == 3
    assert magnitude_of("period=learnt", **columns) == 0


def test_priorities_fall_by_ten_per_set() -> None:
    view = view_of(Scene(cap=[1.0]))
    for number in range(-6, 13):
        priority = interpreted(priority_of_magnitude)(view, number)
        assert priority == pytest.approx(10.0**-number)


@pytest.mark.parametrize(
    ("settings", "priority"),
    [
        ("", inf),
        ("update=strict", inf),
        ("initial=weight", 100.0),
        ("initial=weight,initial_weight=2.5", 2.5),
        ("update=post", 100.0),
        ("update=post,initial=precedence", inf),
    ],
)
def test_the_initial_set_goes_first_or_has_a_weight(
    settings: str, priority: float
) -> None:
    view = view_of(Scene(cap=[1.0]), settings)
    assert interpreted(initial_priority)(view) == priority
    assert interpreted(priority_of_magnitude)(view, UNCLASSIFIED) == priority


def shares(scene: Scene, numbers: list[float], priorities: list[float]) -> list[float]:
    """Return the rates for these sets and priorities."""
    view = view_of(scene)
    rates = [0.0] * len(scene.cap)
    for i, (number, priority) in enumerate(zip(numbers, priorities, strict=True)):
        view.key[i] = number
        view.scratch[i] = priority
    interpreted(share_by_sets)(view, view.key, view.scratch, rates)
    return rates


def test_sets_share_by_priority_and_serve_in_order_inside() -> None:
    scene = Scene(cap=[4.0] * 3, posted=[2.0, 1.0, 0.0], capacity=4.0, now=5.0)
    assert shares(scene, [1, 1, 2], [3.0, 3.0, 1.0]) == [0.0, 3.0, 1.0]


def test_a_set_that_cannot_use_its_share_leaves_the_rest() -> None:
    scene = Scene(cap=[1.0, 4.0], capacity=4.0)
    assert shares(scene, [1, 2], [9.0, 1.0]) == [1.0, 3.0]


def test_inside_a_set_the_next_one_gets_what_the_first_leaves() -> None:
    scene = Scene(cap=[1.0, 2.0, 4.0], posted=[0.0, 1.0, 2.0], capacity=4.0, now=5.0)
    assert shares(scene, [1, 1, 1], [1.0] * 3) == [1.0, 2.0, 1.0]


def test_an_infinite_priority_precedes_all_others() -> None:
    scene = Scene(cap=[3.0, 4.0], capacity=4.0)
    assert shares(scene, [1, 2], [inf, 1.0]) == [3.0, 1.0]
