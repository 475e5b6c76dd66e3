# SPDX-License-Identifier: MIT
"""The columns: compiled and interpreted kernels on the same memory."""

from __future__ import annotations

from math import inf

import pytest

from penstock.errors import PolicyError
from penstock.kernels import Floats, kernel
from penstock.live.control.rates.job_columns import JobColumns
from penstock.policies import get_policy
from penstock.policies.policy import Policy, bind
from penstock.policies.view import View


def columns_with(policy: str | Policy = "fair-share", *, compiled: bool) -> JobColumns:
    """Return columns for jobs that share 100 bytes per second."""
    policy = get_policy(policy) if isinstance(policy, str) else policy
    return JobColumns(policy, 100.0, compiled=compiled)


def added(columns: JobColumns, count: int) -> list[int]:
    """Add jobs that can each use everything."""
    facts = {"cap": 100.0, "bandwidth": 100.0, "release": 0.0}
    return [columns.add_job(lost=0.0, **facts) for _ in range(count)]


def changes(columns: JobColumns) -> list[tuple[int, float]]:
    """Return jobs and their new rates."""
    jobs, rates = columns.changes()
    return list(zip(jobs.tolist(), rates.tolist(), strict=True))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_decision(compiled: bool) -> None:
    columns = columns_with(compiled=compiled)
    a, b = added(columns, 2)
    columns.post(a, 1.0, 1.0, 400.0)
    columns.post(b, 1.0, 1.0, 400.0)
    assert columns.begin_decision(1.0) == 2
    columns.end_decision(columns.ask())
    assert changes(columns) == [(a, 50.0), (b, 50.0)]
    assert columns.next_instant() == 9.0
    assert columns.begin_decision(2.0) == -1
    assert (columns.loss(a, 3.0), columns.remaining(a, 3.0)) == (1.0, 300.0)
    columns.finish(a, 3.0, 100.0, 0.0)
    assert columns.active() == [b]
    assert columns.begin_decision(3.0) == 1
    columns.end_decision(columns.ask())
    assert changes(columns) == [(b, 100.0)]


@pytest.mark.parametrize("compiled", [True, False])
def test_memory_survives_growth_and_a_change_of_policy(compiled: bool) -> None:
    columns = columns_with(compiled=compiled)
    first = added(columns, 1)[0]
    columns.set_scalar("window_end", 77.0)
    columns.post(first, 1.0, 1.0, 400.0)
    assert len(set(added(columns, 99))) == 99
    assert columns.active() == [first]
    assert columns.inputs.window_end == 77.0
    columns.set_policy(get_policy("greedy-yield"))
    assert columns.begin_decision(2.0) == 1
    columns.end_decision(columns.ask())
    assert changes(columns) == [(first, 100.0)]


def test_a_kernel_and_a_plain_policy_on_the_same_columns() -> None:
    def plain(view: View, rates: Floats) -> float:
        rates[view.active[0]] = 1.0
        return inf

    columns = columns_with(compiled=True)
    a = added(columns, 1)[0]
    columns.post(a, 1.0, 1.0, 400.0)
    columns.begin_decision(1.0)
    columns.end_decision(columns.ask())
    columns.set_policy(bind("plain", plain, (), {}))
    columns.begin_decision(2.0)
    columns.end_decision(columns.ask())
    assert changes(columns) == [(a, 1.0)]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_scalar_goes_to_the_policy_without_a_new_struct(compiled: bool) -> None:
    columns = columns_with(compiled=compiled)
    a = added(columns, 1)[0]
    columns.post(a, 1.0, 1.0, 400.0)
    inputs = columns.inputs
    columns.set_scalar("capacity", 30.0)
    columns.begin_decision(1.0)
    columns.end_decision(columns.ask())
    assert changes(columns) == [(a, 30.0)]
    # Every decision sets a scalar, and a struct has dozens of columns.
    assert columns.inputs is inputs


@kernel
def _uncompilable(view: View, rates: Floats) -> float:
    return view.no_such_field  # type: ignore[attr-defined,no-any-return]


def test_a_policy_that_cannot_be_compiled_changes_nothing() -> None:
    columns = columns_with("fcfs", compiled=True)
    with pytest.raises(PolicyError, match="policy mine cannot be compiled"):
        columns.set_policy(bind("mine", _uncompilable, (), {}))
    assert columns.policy.name == "fcfs"
    added(columns, 40)


def test_asking_again_with_less() -> None:
    columns = columns_with("fair-share", compiled=False)
    a, b, c = added(columns, 3)
    for job in (a, b, c):
        columns.post(job, 1.0, 1.0, 400.0)
    columns.begin_decision(1.0)
    columns.ask()
    wake = columns.ask_again([b, c], 80.0)
    assert [columns.state.wanted[i] for i in (b, c)] == [40.0, 40.0]
    columns.end_lending([a, b, c], {a: 20.0}, wake)
    assert dict(changes(columns)) == {a: 20.0, b: 40.0, c: 40.0}
    # It has all that it can use and loses no time; its cap is restored.
    assert columns.loss(a, 9.0) == 0.0
    assert columns.inputs.cap[a] == 100.0
    assert columns.scalars["capacity"] == 100.0
