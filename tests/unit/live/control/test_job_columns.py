# SPDX-License-Identifier: MIT
"""The books: compiled and interpreted steps on the same memory."""

from __future__ import annotations

from math import inf

import pytest

from penstock.errors import PolicyError
from penstock.kernels import Floats, kernel
from penstock.live.control.job_columns import JobColumns
from penstock.policies import get_policy
from penstock.policies.policy import Policy, bind
from penstock.policies.view import View


def books(policy: str | Policy = "fair-share", *, compiled: bool) -> JobColumns:
    """Return books that share 100 bytes per second."""
    policy = get_policy(policy) if isinstance(policy, str) else policy
    return JobColumns(policy, 100.0, compiled=compiled)


def opened(it: JobColumns, count: int) -> list[int]:
    """Open jobs that can each use everything."""
    facts = {"cap": 100.0, "bandwidth": 100.0, "release": 0.0}
    return [it.open(lost=0.0, **facts) for _ in range(count)]


def changes(it: JobColumns) -> list[tuple[int, float]]:
    """Return jobs and their new rates."""
    jobs, rates = it.changes()
    return list(zip(jobs.tolist(), rates.tolist(), strict=True))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_decision(compiled: bool) -> None:
    it = books(compiled=compiled)
    a, b = opened(it, 2)
    it.post(a, 1.0, 1.0, 400.0)
    it.post(b, 1.0, 1.0, 400.0)
    assert it.begin_decision(1.0) == 2
    it.end_decision(it.ask())
    assert changes(it) == [(a, 50.0), (b, 50.0)]
    assert it.next_instant() == 9.0
    assert it.begin_decision(2.0) == -1
    assert (it.loss(a, 3.0), it.remaining(a, 3.0)) == (1.0, 300.0)
    it.finish(a, 3.0, 100.0, 0.0)
    assert it.active() == [b]
    assert it.begin_decision(3.0) == 1
    it.end_decision(it.ask())
    assert changes(it) == [(b, 100.0)]


@pytest.mark.parametrize("compiled", [True, False])
def test_memory_survives_growth_and_a_change_of_policy(compiled: bool) -> None:
    it = books(compiled=compiled)
    first = opened(it, 1)[0]
    it.set_scalar("window_end", 77.0)
    it.post(first, 1.0, 1.0, 400.0)
    assert len(set(opened(it, 99))) == 99
    assert it.active() == [first]
    assert it.program.window_end == 77.0
    it.use(get_policy("greedy-yield"))
    assert it.begin_decision(2.0) == 1
    it.end_decision(it.ask())
    assert changes(it) == [(first, 100.0)]


def test_a_policy_of_both_kinds_on_the_same_books() -> None:
    def plain(view: View, rates: Floats) -> float:
        rates[view.active[0]] = 1.0
        return inf

    it = books(compiled=True)
    a = opened(it, 1)[0]
    it.post(a, 1.0, 1.0, 400.0)
    it.begin_decision(1.0)
    it.end_decision(it.ask())
    it.use(bind("plain", plain, (), {}))
    it.begin_decision(2.0)
    it.end_decision(it.ask())
    assert changes(it) == [(a, 1.0)]


@kernel
def _uncompilable(view: View, rates: Floats) -> float:
    return view.no_such_field  # type: ignore[attr-defined,no-any-return]


def test_a_policy_that_cannot_be_compiled_changes_nothing() -> None:
    it = books("fcfs", compiled=True)
    with pytest.raises(PolicyError, match="policy mine cannot be compiled"):
        it.use(bind("mine", _uncompilable, (), {}))
    assert it.policy.name == "fcfs"
    opened(it, 40)


def test_asking_again_with_less() -> None:
    it = books("fair-share", compiled=False)
    a, b, c = opened(it, 3)
    for job in (a, b, c):
        it.post(job, 1.0, 1.0, 400.0)
    it.begin_decision(1.0)
    it.ask()
    wake = it.ask_again([b, c], 80.0)
    assert it.state.wanted[[b, c]].tolist() == [40.0, 40.0]
    it.end_lending([a, b, c], {a: 20.0}, wake)
    assert dict(changes(it)) == {a: 20.0, b: 40.0, c: 40.0}
    # It has all that it can use, and loses nothing; its cap is what it was.
    assert it.loss(a, 9.0) == 0.0
    assert it.program.cap[a] == 100.0
    assert it.program.capacity == 100.0
