# SPDX-License-Identifier: MIT
"""Policies in plain Python: the same results, and errors with their time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.errors import PenstockError, PolicyError
from penstock.kernels import interpreted, kernel
from penstock.policies import POLICIES, get_policy
from penstock.policies.policy import Parameter, Policy, bind
from penstock.policies.view import View
from penstock.sim import simulate
from unit.samples import pair, steady_three


def _policy(allocate: Any) -> Policy:
    return bind("mine", allocate, (Parameter("three", "a number", 3.0),))


def _serve_first(view: Any, rates: Any) -> float:
    first = view.active[0]
    rates[first] = min(view.cap[first], view.capacity)
    return math.inf


@pytest.mark.parametrize("name", POLICIES)
def test_a_plain_twin_gives_the_bits_of_the_kernel(name: str) -> None:
    policy = get_policy(name)
    plain = replace(policy, function=interpreted(policy.allocate))
    kernel_run = simulate(steady_three(), policy, record=True)
    plain_run = simulate(steady_three(), plain, record=True)
    assert plain_run.lost.tobytes() == kernel_run.lost.tobytes()
    assert plain_run.grants is not None
    assert kernel_run.grants is not None
    assert plain_run.grants.rate.tobytes() == kernel_run.grants.rate.tobytes()
    assert plain_run.decisions == kernel_run.decisions


def test_the_view_is_whole_and_of_python_numbers() -> None:
    seen: list[dict[str, Any]] = []

    def allocate(view: Any, rates: Any) -> float:
        facts = {name: getattr(view, name) for name in View._fields}
        seen.append(
            {k: v.tolist() if hasattr(v, "obj") else v for k, v in facts.items()}
        )
        assert type(view.now) is float
        assert type(view.n_active) is int
        assert type(view.lost[0]) is float
        assert type(view.active[0]) is int
        return _serve_first(view, rates)

    simulate(pair(), _policy(allocate))
    first, second = seen
    assert (first["now"], first["n_active"], first["active"]) == (2.0, 2, [0, 1])
    assert first["remaining"] == first["volume"] == [3.0, 3.0]
    assert first["parameters"] == [3.0]
    assert (first["capacity"], first["window_end"]) == (1.0, 10.0)
    assert first["dedicated_events"] == 4.0
    assert (second["now"], second["n_active"]) == (5.0, 1)
    assert second["active"][0] == 1
    assert second["lost"][1] == 3.0


def test_all_rates_are_0_on_entry() -> None:
    seen: list[list[float]] = []

    def allocate(view: Any, rates: Any) -> float:
        seen.append(list(rates))
        return _serve_first(view, rates)

    simulate(pair(), _policy(allocate))
    assert seen == [[0.0, 0.0], [0.0, 0.0]]


def test_columns_may_be_read_as_arrays() -> None:
    def allocate(view: Any, rates: Any) -> float:
        lost = np.asarray(view.lost)
        assert lost.dtype == np.float64
        assert not lost.flags.writeable
        np.asarray(rates)[view.active[0]] = view.cap[view.active[0]]
        return math.inf

    assert simulate(pair(), _policy(allocate)).lost.tolist() == [0.0, 3.0]


@pytest.mark.parametrize(
    "column",
    sorted(
        {name for name, kind in View.__annotations__.items() if "s" in str(kind)[-8:]}
        - {"key", "order", "scratch"}
    ),
)
def test_columns_cannot_be_written(column: str) -> None:
    def allocate(view: Any, rates: Any) -> float:
        getattr(view, column)[0] = 0
        return math.inf

    with pytest.raises(PolicyError, match="read-only memory"):
        simulate(pair(), _policy(allocate))


@pytest.mark.parametrize("column", ["key", "order", "scratch"])
def test_working_memory_can_be_written(column: str) -> None:
    def allocate(view: Any, rates: Any) -> float:
        memory = getattr(view, column)
        for i in range(len(memory)):
            memory[i] = 1
        return _serve_first(view, rates)

    assert simulate(pair(), _policy(allocate)).lost.tolist() == [0.0, 3.0]


# --- What goes wrong --------------------------------------------------------------


@pytest.mark.parametrize("compiled", [True, False])
def test_an_exception_becomes_a_policy_error_with_the_time(compiled: bool) -> None:
    def allocate(view: Any, rates: Any) -> float:
        if view.now > 4:
            raise ValueError("no idea")
        return _serve_first(view, rates)

    with pytest.raises(PolicyError) as caught:
        simulate(pair(), _policy(allocate), compiled=compiled)
    assert caught.value.what == "policy mine failed at t = 5 s: ValueError: no idea"
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_exception_is_reported_in_one_line() -> None:
    def allocate(view: Any, rates: Any) -> float:
        raise ValueError("one\ntwo")

    with pytest.raises(PolicyError) as caught:
        simulate(pair(), _policy(allocate))
    assert "\n" not in str(caught.value)


def test_ctrl_c_goes_through() -> None:
    def allocate(view: Any, rates: Any) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(pair(), _policy(allocate))


@pytest.mark.parametrize("answer", ["soon", [1.0]])
def test_an_answer_that_is_not_a_time_is_refused(answer: Any) -> None:
    with pytest.raises(
        PolicyError, match=r"policy mine failed at t = 2 s: (Type|Value)Error"
    ):
        simulate(pair(), _policy(lambda view, rates: answer))


def _setting(rate: float, wake: float = math.inf) -> Any:
    def allocate(view: Any, rates: Any) -> float:
        for position in range(view.n_active):
            rates[view.active[position]] = rate
        return wake

    return allocate


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("allocate", "message"),
    [
        (_setting(1.5), "gives 'a' 1.5 B/s, over its cap 1.0"),
        (_setting(math.nan), "gives 'a' nan B/s, not a number"),
        (_setting(math.inf), "gives 'a' inf B/s, over its cap 1.0"),
        (_setting(-0.5), "gives 'a' -0.5 B/s, a negative rate"),
        (_setting(0.75), "gives more in total than the capacity 1.0 B/s"),
        (_setting(0.5, 2.0), "asks to be woken at 2.0 s, not after now"),
        (_setting(0.5, -math.inf), "asks to be woken at -inf s, not after now"),
        (_setting(0.5, math.nan), "asks to be woken at nan s, not after now"),
    ],
    ids=["cap", "nan", "inf", "negative", "capacity", "wake", "wake-inf", "wake-nan"],
)
def test_a_broken_contract_gets_a_message(
    allocate: Any, message: str, compiled: bool
) -> None:
    with pytest.raises(PolicyError) as caught:
        simulate(pair(), _policy(allocate), compiled=compiled)
    assert str(caught.value).startswith("policy mine at t = 2 s: ")
    assert message in str(caught.value)


def test_rounding_over_the_limits_is_granted() -> None:
    run = simulate(pair(), _policy(_setting(0.5 * (1 + 1e-12))))
    assert run.lost == pytest.approx([3.0, 3.0])


def test_a_policy_is_woken_when_it_asks() -> None:
    times: list[float] = []

    def allocate(view: Any, rates: Any) -> float:
        times.append(view.now)
        _serve_first(view, rates)
        return float(view.now + 0.75)

    run = simulate(pair(), _policy(allocate))
    assert times == [2.0, 2.75, 3.5, 4.25, 5.0, 5.75, 6.5, 7.25]
    assert run.decisions == len(times)
    assert run.events == 4
    assert run.lost.tolist() == [0.0, 3.0]


def test_a_kernel_that_cannot_be_compiled_is_reported() -> None:
    @kernel
    def allocate(view: Any, rates: Any) -> float:
        return view.no_such_field  # type: ignore[no-any-return]

    with pytest.raises(PenstockError, match="policy mine cannot be compiled") as caught:
        simulate(pair(), _policy(allocate))
    assert "remove @kernel" in str(caught.value)
    assert "\n" not in str(caught.value)
