# SPDX-License-Identifier: MIT
"""Archived jobs become an instance whose simulation gives the yields that they had."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.advice.past import instance_of_runs, shared_bandwidth
from penstock.errors import InputError
from penstock.live.wire.messages import (
    PastJob,
    ReportedOperation,
    RunWithOperations,
)
from penstock.sim import simulate

T0 = 1_700_000_000.0


def _job(name: str, **changes: Any) -> PastJob:
    facts: dict[str, Any] = {
        "job_name": name,
        "user": 7,
        "storage": "",
        "nodes": 1,
        "joined_s": T0,
        "left_s": T0 + 10.0,
        "cap": None,
        "moved_bytes": 0.0,
        "lost_s": 0.0,
        "progress_yield": 1.0,
        "policy": "fcfs",
    }
    return PastJob(**(facts | changes))


def _operation(
    begin: float, end: float, moved: float, lost: float = 0.0, shared: float | None = 1
) -> ReportedOperation:
    return ReportedOperation(
        T0 + begin, T0 + end, moved, 0.0, lost, shared, "fcfs", grants=[]
    )


def _pair() -> list[RunWithOperations]:
    """Return what fcfs did to two jobs that posted 3 bytes at 2 s and 2.001 s.

    The first one moves in [2, 5], the second one waits and moves in [5, 8].
    """
    return [
        RunWithOperations(_job("a"), [_operation(2.0, 5.0, 3.0)]),
        RunWithOperations(_job("b", lost_s=3.0), [_operation(2.001, 8.0, 3.0, 3.0)]),
    ]


def test_the_same_policy_gives_the_same_yields() -> None:
    run = simulate(instance_of_runs(_pair()), "fcfs", steady=False)
    assert run.yields.tolist() == pytest.approx([1.0, 0.7], abs=1e-3)


def test_waiting_is_decided_anew() -> None:
    run = simulate(instance_of_runs(_pair()), "fair-share", steady=False)
    assert run.yields[0] < 0.9


def test_the_bandwidth_is_the_median_of_what_was_shared() -> None:
    runs = [
        RunWithOperations(
            _job("a"),
            [_operation(n, n + 0.5, 1.0, shared=rate) for n, rate in enumerate(rates)],
        )
        for rates in ([1.0, 9.0, None], [2.0])
    ]
    assert shared_bandwidth(runs) == 2.0
    assert instance_of_runs(runs, 5.0).platform.bandwidth == 5.0


def test_without_any_bandwidth_it_must_be_given() -> None:
    runs = [RunWithOperations(_job("a"), [_operation(1, 2, 1.0, shared=None)])]
    with pytest.raises(InputError, match="--bandwidth"):
        instance_of_runs(runs)
    assert instance_of_runs(runs, 2.0).platform.bandwidth == 2.0


def test_a_job_that_comes_again_gets_a_number() -> None:
    runs = [_pair()[0], _pair()[0], _pair()[1]]
    names = [a.name for a in instance_of_runs(runs).applications]
    assert names == ["a", "a-2", "b"]


def test_a_job_that_is_slower_by_itself_has_a_cap() -> None:
    slow = RunWithOperations(_job("a"), [_operation(2, 8, 3.0)])
    assert instance_of_runs([slow]).caps.tolist() == [0.5]


def test_time_that_was_lost_makes_no_cap() -> None:
    waited = RunWithOperations(_job("a"), [_operation(2, 8, 3.0, lost=3.0)])
    assert instance_of_runs([waited]).caps.tolist() == [1.0]


def test_no_job_is_refused() -> None:
    with pytest.raises(InputError, match="there is no job"):
        instance_of_runs([])
