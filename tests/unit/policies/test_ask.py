# SPDX-License-Identifier: MIT
"""Calling a policy: failures, read-only columns, and every limit of the contract."""

from __future__ import annotations

import array
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, PolicyError
from penstock.kernels import interpreted
from penstock.policies import get_policy
from penstock.policies.ask import (
    BREACHES,
    CAPACITY_EXCEEDED,
    LAWFUL,
    RATE_NEGATIVE,
    RATE_OVER_CAP,
    TOLERANCE,
    WAKE_IN_THE_PAST,
    Breach,
    ask_policy,
    contract_error,
    find_breach,
    is_over,
    is_past,
    read_only,
)
from penstock.policies.policy import bind
from penstock.policies.view import View
from support.views import Scene, make_view

#: Both forms of a check: they must agree.
FORMS: dict[str, Callable[[Any], Any]] = {
    "compiled": lambda check: check,
    "interpreted": interpreted,
}


def view_of_two() -> View:
    """Return a view of two active applications at t = 100 s."""
    return make_view(Scene(cap=[2.0, 2.0], capacity=3.0, now=100.0))


# --- Calling ----------------------------------------------------------------------


def test_a_policy_fills_the_rates_and_returns_its_wake_up() -> None:
    rates = [0.0, 0.0]
    assert ask_policy(get_policy("fcfs"), view_of_two(), rates) == inf
    assert sum(rates) == 3.0


def test_the_wake_up_is_a_float() -> None:
    wake = ask_policy(bind("mine", lambda _view, _rates: 200), view_of_two(), [])
    assert type(wake) is float
    assert wake == 200.0


@pytest.mark.parametrize("answer", ["soon", [1.0]])
def test_an_answer_that_is_not_a_number_is_a_failure(answer: Any) -> None:
    policy = bind("mine", lambda _view, _rates: answer)
    with pytest.raises(PolicyError, match=r"^policy mine failed at t = 100 s: \w+Err"):
        ask_policy(policy, view_of_two(), [])


def test_a_policy_without_return_is_named_with_its_line() -> None:
    def forgetful(_view: Any, rates: Any) -> Any:
        rates[0] = 1.0

    line = forgetful.__code__.co_firstlineno
    with pytest.raises(PolicyError) as caught:
        ask_policy(bind("mine", forgetful), view_of_two(), [0.0, 0.0])
    assert str(caught.value) == (
        f"test_ask.py line {line}: policy mine returned None at t = 100 s (return "
        "math.inf, or the time at which to ask the policy again)"
    )


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), SystemExit(1)])
def test_an_exception_names_policy_instant_and_cause(error: BaseException) -> None:
    def fail(_view: View, _rates: Any) -> float:
        raise error

    with pytest.raises(PolicyError) as caught:
        ask_policy(bind("mine", fail), view_of_two(), [])
    kind = type(error).__name__
    assert caught.value.what == f"policy mine failed at t = 100 s: {kind}: {error}"
    line = fail.__code__.co_firstlineno + 1
    assert caught.value.remedy == f"correct test_ask.py line {line}"
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [InputError("no"), KeyboardInterrupt()])
def test_errors_of_penstock_and_ctrl_c_pass(error: BaseException) -> None:
    def fail(_view: View, _rates: Any) -> float:
        raise error

    with pytest.raises(type(error)) as caught:
        ask_policy(bind("mine", fail), view_of_two(), [])
    assert caught.value is error


# --- Read-only columns ------------------------------------------------------------


def test_columns_cannot_be_written_but_working_memory_can() -> None:
    columns: dict[str, Any] = {
        "lost": memoryview(array.array("d", [1.0])),
        "cap": [2.0],
        "key": memoryview(array.array("d", [3.0])),
        "order": [0],
        "scratch": [0.0] * 8,
        "now": 5.0,
    }
    shown = read_only(columns)
    for name in ("lost", "cap"):
        with pytest.raises(TypeError):
            shown[name][0] = 9.0
        assert shown[name][0] == columns[name][0]
    for name in ("key", "order", "scratch"):
        shown[name][0] = 9
        assert columns[name][0] == 9
    assert shown["now"] == 5.0


def test_a_read_only_column_follows_the_memory_behind_it() -> None:
    memory = array.array("d", [1.0])
    shown = read_only({"lost": memoryview(memory)})
    memory[0] = 7.0
    assert shown["lost"][0] == 7.0


# --- The contract -----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("value", "over"),
    [
        (0.0, False),
        (-inf, False),
        (2.0, False),
        (2.0 * (1.0 + TOLERANCE), False),
        (2.0 * (1.0 + 3 * TOLERANCE), True),
        (inf, True),
        (nan, True),
    ],
)
def test_a_limit_is_exceeded_by_more_than_rounding(
    form: str, value: float, over: bool
) -> None:
    assert FORMS[form](is_over)(value, 2.0) == over


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("wake", "past"),
    [
        (inf, False),
        (100.5, False),
        (100.0, True),
        (99.0, True),
        (-inf, True),
        (nan, True),
    ],
)
def test_a_wake_up_lies_after_now(form: str, wake: float, past: bool) -> None:
    assert FORMS[form](is_past)(wake, 100.0) == past


@given(value=st.floats(), limit=st.floats(0.0, 1e300))
def test_compiled_and_interpreted_checks_agree(value: float, limit: float) -> None:
    assert is_over(value, limit) == interpreted(is_over)(value, limit)
    assert is_past(value, limit) == interpreted(is_past)(value, limit)


@pytest.mark.parametrize(
    ("rates", "wake", "breach"),
    [
        ([2.0, 1.0], inf, None),
        ([0.0, 0.0], 100.5, None),
        ([-0.0, 0.0], inf, None),
        ([2.0 * (1.0 + TOLERANCE), 1.0], inf, None),
        ([2.5, -1.0], 0.0, Breach(RATE_OVER_CAP, rate=2.5, cap=2.0)),
        ([-1.0, 2.5], 0.0, Breach(RATE_NEGATIVE, rate=-1.0, cap=2.0)),
        ([-inf, 0.0], inf, Breach(RATE_NEGATIVE, rate=-inf, cap=2.0)),
        ([2.0, 1.1], 0.0, Breach(CAPACITY_EXCEEDED, capacity=3.0)),
        ([2.0, 1.0], 100.0, Breach(WAKE_IN_THE_PAST, wake=100.0)),
    ],
)
def test_the_first_breach_is_found(
    rates: list[float], wake: float, breach: Breach | None
) -> None:
    assert find_breach(view_of_two(), rates, wake) == breach


def test_rates_of_inactive_applications_do_not_count() -> None:
    view = make_view(Scene(cap=[2.0, 2.0], capacity=3.0, active=[1]))
    assert find_breach(view, [nan, 2.0], inf) is None


@pytest.mark.parametrize(
    ("breach", "message"),
    [
        (
            Breach(RATE_OVER_CAP, "'a'", rate=5.0, cap=2.0),
            "gives 'a' 5.0 B/s, over its cap 2.0 B/s "
            "(let it set rates[i] from 0 to view.cap[i])",
        ),
        (
            Breach(RATE_OVER_CAP, "'a'", rate=nan, cap=2.0),
            "gives 'a' nan B/s, not a number "
            "(let it set rates[i] from 0 to view.cap[i])",
        ),
        (
            Breach(RATE_NEGATIVE, "'a'", rate=-1.0),
            "gives 'a' -1.0 B/s, a negative rate "
            "(let it set rates[i] from 0 to view.cap[i])",
        ),
        (
            Breach(CAPACITY_EXCEEDED, capacity=3.0),
            "gives more in total than the capacity 3.0 B/s "
            "(let the sum of its rates be at most view.capacity)",
        ),
        (
            Breach(WAKE_IN_THE_PAST, wake=1.0),
            "asks to be woken at 1.0 s, not after now "
            "(let it return a time after view.now, or math.inf for never)",
        ),
    ],
)
def test_a_message_has_policy_instant_and_numbers(breach: Breach, message: str) -> None:
    policy = get_policy("set-10:period=given")
    error = contract_error(policy, breach, 2.5)
    assert str(error) == f"policy set-10:period=given at t = 2.5 s: {message}"


def test_every_breach_has_a_message() -> None:
    assert len({str(Breach(status)) for status in BREACHES}) == len(BREACHES)
    assert LAWFUL not in BREACHES
