# SPDX-License-Identifier: MIT
"""Archived jobs become an instance whose simulation gives the yields that they had."""

from __future__ import annotations

import pytest

from penstock.advice.job_report.simulation import instance_of_report
from penstock.errors import InputError
from penstock.live.wire.messages import ReportedOperation, RunWithOperations
from penstock.model import Instance
from penstock.sim import simulate
from unit.advice.job_report.reports import operation, past_job, report_of


def _operation(
    begin: float, end: float, moved: float, lost: float = 0.0, shared: float | None = 1
) -> ReportedOperation:
    return operation(begin, end, moved_bytes=moved, lost_s=lost, capacity=shared)


def _instance(runs: list[RunWithOperations], *given: float) -> Instance:
    return instance_of_report(report_of(*runs), *given)


def _pair() -> list[RunWithOperations]:
    """Return what fcfs did to two jobs that posted 3 bytes at 2 s and 2.001 s.

    The first one moves in [2, 5], the second one waits and moves in [5, 8].
    """
    return [
        RunWithOperations(past_job("a"), [_operation(2.0, 5.0, 3.0)]),
        RunWithOperations(
            past_job("b", lost_s=3.0), [_operation(2.001, 8.0, 3.0, 3.0)]
        ),
    ]


def test_the_same_policy_gives_the_same_yields() -> None:
    run = simulate(_instance(_pair()), "fcfs", steady=False)
    assert run.yields.tolist() == pytest.approx([1.0, 0.7], abs=1e-3)


def test_waiting_is_decided_anew() -> None:
    run = simulate(_instance(_pair()), "fair-share", steady=False)
    assert run.yields[0] < 0.9


def test_the_bandwidth_is_the_median_of_what_was_shared() -> None:
    runs = [
        RunWithOperations(
            past_job("a"),
            [_operation(n, n + 0.5, 1.0, shared=rate) for n, rate in enumerate(rates)],
        )
        for rates in ([1.0, 9.0, None], [2.0])
    ]
    assert _instance(runs).platform.bandwidth == 2.0
    assert _instance(runs, 5.0).platform.bandwidth == 5.0


def test_without_a_shared_bandwidth_it_is_the_highest_rate() -> None:
    runs = [RunWithOperations(past_job("a"), [_operation(1, 2, 3.0, shared=None)])]
    assert _instance(runs).platform.bandwidth == 3.0
    assert _instance(runs, 2.0).platform.bandwidth == 2.0


def test_without_any_rate_the_bandwidth_must_be_given() -> None:
    runs = [RunWithOperations(past_job("a"), [])]
    with pytest.raises(InputError, match="--bandwidth"):
        _instance(runs)


def test_a_job_that_comes_again_gets_a_number() -> None:
    runs = [_pair()[0], _pair()[0], _pair()[1]]
    names = [a.name for a in _instance(runs).applications]
    assert names == ["a", "a-2", "b"]


def test_a_job_that_is_slower_by_itself_has_a_cap() -> None:
    slow = RunWithOperations(past_job("a"), [_operation(2, 8, 3.0)])
    assert _instance([slow]).caps.tolist() == [0.5]


def test_time_that_was_lost_makes_no_cap() -> None:
    waited = RunWithOperations(past_job("a"), [_operation(2, 8, 3.0, lost=3.0)])
    assert _instance([waited]).caps.tolist() == [1.0]


def test_a_report_that_says_why_it_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(InputError, match="only operators"):
        instance_of_report(report_of(*_pair(), note="only operators see it"))
