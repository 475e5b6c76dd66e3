# SPDX-License-Identifier: MIT
"""A strategy with its parameters: names, settings, and the check of its answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.staging import (
    STRATEGIES,
    ApplicationStatus,
    Situation,
    StagingPlan,
    get_strategy,
)
from penstock.staging.strategy import Strategy

A = ApplicationStatus("A", phase_began_s=0.0, phase_bytes=48.0, processes=4)


def plan(name: str, *applications: ApplicationStatus) -> StagingPlan:
    return get_strategy(name).decide(Situation(10.0, 8, applications))


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_strategy("2c")
    for name in STRATEGIES:
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2a:flush=ticket", "unknown value 'ticket'"),
        ("2a:window=0", "out of range"),
        ("2a:tempo=1", "unknown parameter 'tempo'"),
        ("3a:by=colour", "unknown value 'colour'"),
        ("combined:least=0.5", "not a whole number"),
        ("none:flush=all", "unknown parameter 'flush'"),
    ],
)
def test_bad_parameters(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        get_strategy(text)


def test_labels_show_what_is_not_default() -> None:
    assert get_strategy("2b:window=2,flush=window").label == "2b:flush=window,window=2"
    assert get_strategy("2b:flush=all").label == "2b"


def _failing(_situation: Situation) -> StagingPlan:
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "no order for every application"),
        (StagingPlan([]), "no order for every application"),
        (replace(plan("none", A), wake_s=10.0), "not after now"),
    ],
)
def test_bad_answers_are_the_strategys_fault(answer: object, message: str) -> None:
    strategy = Strategy("mine", "mine", lambda _situation: answer, {})
    with pytest.raises(PolicyError, match=f"strategy mine: .*{message}"):
        strategy.decide(Situation(10.0, 8, (A,)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": ()}, "not different targets"),
        ({"targets": (0, 0)}, "not different targets"),
        ({"targets": (8,)}, "not different targets of 0 to 7"),
        ({"drain_bytes_per_s": 0.0}, "may drain at 0.0"),
    ],
)
def test_bad_orders(change: dict[str, object], message: str) -> None:
    (order,) = plan("none", A).orders
    answer = StagingPlan([replace(order, **change)])  # type: ignore[arg-type]
    strategy = Strategy("mine", "mine", lambda _situation: answer, {})
    with pytest.raises(PolicyError, match=message):
        strategy.decide(Situation(10.0, 8, (A,)))


def test_a_strategy_that_fails_says_why() -> None:
    with pytest.raises(PolicyError, match="strategy mine failed: ValueError: no idea"):
        Strategy("mine", "mine", _failing, {}).decide(Situation(0.0, 1, (A,)))
