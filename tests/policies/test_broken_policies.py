# SPDX-License-Identifier: MIT
"""A policy that breaks its contract is stopped; the message has its name and time."""

from __future__ import annotations

from math import inf

import pytest

from penstock.errors import PolicyError
from penstock.kernels import Floats
from penstock.model import Application, Instance, Platform, Window
from penstock.policies.policy import bind
from penstock.policies.view import View
from penstock.sim import simulate

#: The message after "policy NAME at t = 2 s: ".
MESSAGES = {
    "over_cap": r"gives 'first' 2\.002 B/s, over its cap 2\.0 B/s",
    "negative": r"gives 'first' -0\.25 B/s, a negative rate",
    "not_a_number": r"gives 'first' nan B/s, not a number",
    "minus_infinity": r"gives 'first' -inf B/s, a negative rate",
    "wake_in_the_past": r"asks to be woken at 1\.0 s, not after now",
    "wake_now": r"asks to be woken at 2\.0 s, not after now",
    "wake_not_a_number": r"asks to be woken at nan s, not after now",
}
#: Ways to run a policy: suffix of its name, and whether the engine is compiled.
WAYS = {
    "kernel": ("_kernel", True),
    "kernel interpreted": ("_kernel", False),
    "plain": ("", True),
    "plain interpreted": ("", False),
}


def instance() -> Instance:
    """Return two applications of cap 2 on a storage of 3; posts at 2 and 4."""
    first = Application.from_phases("first", 2, [("work", 2), ("io", 9), ("work", 99)])
    second = Application.from_phases("second", 2, [("work", 4), ("io", 9), ("work", 9)])
    return Instance(Platform(3.0, 1.0), Window(0.0, 8.0), (first, second))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MESSAGES)
def test_broken_contract(name: str, way: str) -> None:
    """The message has the policy, the time, the application and the number."""
    suffix, compiled = WAYS[way]
    policy = f"support.adversaries.{name}{suffix}"
    expected = rf"^policy {policy} at t = 2 s: {MESSAGES[name]}[^\n]*$"
    with pytest.raises(PolicyError, match=expected):
        simulate(instance(), policy, compiled=compiled)


@pytest.mark.parametrize("way", WAYS)
def test_over_capacity(way: str) -> None:
    """Rates within the caps exceed the bandwidth as soon as both are active."""
    suffix, compiled = WAYS[way]
    policy = f"support.adversaries.over_capacity{suffix}"
    expected = (
        rf"^policy {policy} at t = 4 s: gives more .* capacity 3\.0 B/s \(let .*\)$"
    )
    with pytest.raises(PolicyError, match=expected):
        simulate(instance(), policy, compiled=compiled)


@pytest.mark.parametrize("way", WAYS)
def test_never_grant(way: str) -> None:
    """All applications wait until the end, and that is measured."""
    suffix, compiled = WAYS[way]
    policy = f"support.adversaries.never_grant{suffix}"
    run = simulate(instance(), policy, compiled=compiled, record=True, validate=True)
    # Posted at 2 and 4, nothing transferred up to 8.
    assert run.lost.tolist() == [6.0, 4.0]
    assert run.work.tolist() == [2.0, 4.0]
    assert run.volume.tolist() == [0.0, 0.0]
    assert run.yields.tolist() == [0.25, 0.5]
    assert (run.events, run.decisions) == (2, 2)
    assert run.grants is not None
    assert run.grants.rate.size == 0


@pytest.mark.parametrize("way", WAYS)
def test_bandwidth_for_the_idle(way: str) -> None:
    """Rates for inactive applications do not count, neither now nor later."""
    suffix, compiled = WAYS[way]
    policy = f"support.adversaries.serve_the_idle{suffix}"
    run = simulate(instance(), policy, compiled=compiled, validate=True)
    # The first has its 9 at 2 B/s from 2 to 6.5, then the second up to 8.
    assert run.volume.tolist() == [9.0, 3.0]
    assert run.lost.tolist() == [0.0, 2.5]


FAILURES = {
    "raises": (4, "ValueError: no idea what to do with two"),
    "index_out_of_range": (2, "IndexError: "),
    "writes_to_the_view": (2, "TypeError: cannot modify read-only memory"),
}
#: Failures that the interpreted engine cannot detect.
UNNOTICED = ("writes_to_the_view",)


def assert_failure(name: str, *, compiled: bool) -> None:
    """Assert that the exception of the policy is in the message and is the cause."""
    policy = f"support.adversaries.{name}"
    when, message = FAILURES[name]
    expected = rf"^policy {policy} failed at t = {when} s: {message}"
    with pytest.raises(PolicyError, match=expected) as caught:
        simulate(instance(), policy, compiled=compiled)
    cause = caught.value.__cause__
    assert cause is not None
    assert type(cause).__name__ == message.partition(":")[0]
    assert cause.__traceback__ is not None


@pytest.mark.parametrize("name", FAILURES)
def test_failure(name: str) -> None:
    """An exception of the policy stops the run."""
    assert_failure(name, compiled=True)


@pytest.mark.parametrize("name", [n for n in FAILURES if n not in UNNOTICED])
def test_failure_interpreted(name: str) -> None:
    """The interpreted engine gives the same message."""
    assert_failure(name, compiled=False)


@pytest.mark.parametrize("name", UNNOTICED)
def test_unnoticed_interpreted(name: str) -> None:
    """An interpreted run is as strict as a compiled one."""
    assert_failure(name, compiled=False)


@pytest.mark.parametrize("compiled", [True, False])
def test_nothing_returned(compiled: bool) -> None:
    """A forgotten return has a message of its own, with the line of the policy."""
    policy = "support.adversaries.nothing_returned"
    expected = rf"^adversaries.py line \d+: policy {policy} returned None at t = 2 s"
    with pytest.raises(PolicyError, match=expected):
        simulate(instance(), policy, compiled=compiled)


def test_interrupt_is_no_failure() -> None:
    """Ctrl-C during a decision reaches the caller as KeyboardInterrupt."""
    with pytest.raises(KeyboardInterrupt):
        simulate(instance(), "support.adversaries.interrupted")


def test_kernel_that_cannot_be_compiled() -> None:
    """The message has the reason of the compiler and a remedy."""
    policy = "support.adversaries.cannot_compile_kernel"
    with pytest.raises(PolicyError, match=r"cannot be compiled: .*tomorrow") as refused:
        simulate(instance(), policy)
    assert "remove @kernel" in str(refused.value)


def test_rounding_is_forgiven() -> None:
    """A rate that is over the cap by rounding only is cut to the cap."""

    def allocate(view: View, rates: Floats) -> float:
        rates[view.active[0]] = view.cap[view.active[0]] * (1 + 1e-12)
        return inf

    own = bind("own", allocate, (), {})
    run = simulate(instance(), own, compiled=False, record=True, validate=True)
    assert run.grants is not None
    assert run.grants.rate[0] == 2.0
    assert run.lost[0] == 0.0


def test_engine_can_be_used_after_a_failure() -> None:
    """A failed run does not change later runs."""
    before = simulate(instance(), "fcfs")
    with pytest.raises(PolicyError):
        simulate(instance(), "support.adversaries.raises")
    with pytest.raises(PolicyError):
        simulate(instance(), "support.adversaries.over_cap_kernel")
    assert simulate(instance(), "fcfs").lost.tolist() == before.lost.tolist()
