# SPDX-License-Identifier: MIT
"""Rates that are rebuilt from grants move the volume of every operation."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from penstock.advice.job_report.rates import (
    OTHERS,
    bands_of,
    length_of,
    moved_between,
    recorded_shares,
    shared_bandwidth,
)
from penstock.live.wire.messages import Delay, RunWithOperations
from unit.advice.job_report.reports import T0, operation, past_job, report_of, waited


def _run(*operations: Any) -> RunWithOperations:
    return RunWithOperations(past_job("a"), list(operations))


def _moved(run: RunWithOperations, *edges_s: float) -> list[float]:
    return [float(volume) for volume in moved_between(run, np.array(edges_s) + T0)]


def test_an_operation_without_a_limit_moves_at_a_constant_rate() -> None:
    run = _run(operation(2.0, 5.0))
    assert _moved(run, 0.0, 2.0, 3.0, 9.0) == pytest.approx([0.0, 1e9, 2e9], rel=1e-6)


def test_nothing_moves_while_the_grant_is_nothing() -> None:
    run = _run(operation(0.0, 6.0, grants=[(T0, 0.0), (T0 + 3.0, 1e9)]))
    assert _moved(run, 0.0, 3.0, 6.0) == pytest.approx([0.0, 3e9], rel=1e-6)


def test_a_job_that_is_slower_than_a_grant_moves_as_fast_as_its_volume_says() -> None:
    # 1 GB in 2 s at 0.5 GB/s, then 2 GB in 4 s although 5 GB/s are granted.
    run = _run(operation(0.0, 6.0, grants=[(T0, 5e8), (T0 + 2.0, 5e9)]))
    assert _moved(run, 0.0, 2.0, 6.0) == pytest.approx([1e9, 2e9], rel=1e-6)


def test_more_than_was_granted_is_moved_in_proportion() -> None:
    run = _run(operation(0.0, 2.0, grants=[(T0, 1e9), (T0 + 1.0, 5e8)]))
    assert _moved(run, 0.0, 1.0, 2.0) == pytest.approx([2e9, 1e9], rel=1e-6)


def test_an_operation_that_was_granted_nothing_is_drawn_nowhere() -> None:
    run = _run(operation(0.0, 2.0, moved_bytes=0.0, grants=[(T0, 0.0)]))
    assert _moved(run, 0.0, 2.0) == [0.0]


@given(
    rates=st.lists(st.one_of(st.none(), st.floats(1.0, 1e12)), max_size=4),
    moved=st.floats(1.0, 1e12),
    length_s=st.floats(0.01, 1e5),
)
def test_the_volume_comes_out(
    rates: list[float | None], moved: float, length_s: float
) -> None:
    grants = [(T0 + k * length_s / 5, rate) for k, rate in enumerate(rates)]
    run = _run(operation(0.0, length_s, moved_bytes=moved, grants=grants))
    parts = _moved(run, 0.0, length_s / 3, length_s + 1.0)
    assert sum(parts) == pytest.approx(moved, rel=1e-6)
    assert min(parts) >= 0.0


def test_shares_of_the_bandwidth_add_up_to_what_was_moved() -> None:
    edges = np.array([0.0, 2.001, 5.0, 8.0])
    own, other = recorded_shares(waited(), edges, 1e9)
    assert own.tolist() == pytest.approx([0.0, 0.0, 1.0], abs=1e-3)
    assert other.tolist() == pytest.approx([0.0005, 1.0, 0.0], abs=1e-3)


def test_a_bandwidth_that_is_not_known_is_the_highest_rate() -> None:
    unknown = _run(operation(0.0, 2.0, capacity=None))
    assert shared_bandwidth([unknown]) == 1.5e9
    assert shared_bandwidth([unknown, _run(operation(0.0, 9.0))]) == 1e9
    assert shared_bandwidth([_run()]) == 1.0


def test_those_that_cost_time_have_a_band_of_their_own() -> None:
    others = [_run(operation(1.0, 2.0)), RunWithOperations(past_job("c"), [])]
    report = report_of(_run(), *others, others[0], delays=[Delay("a", 1.0, 1.0)])
    assert bands_of(report) == [("a", [0]), ("a", [1, 3]), (OTHERS, [2])]


def test_a_job_that_has_not_left_ends_with_its_last_operation() -> None:
    run = RunWithOperations(past_job("a", left_s=None), [operation(1.0, 4.0)])
    assert length_of(report_of(run)) == 4.0
