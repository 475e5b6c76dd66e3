# SPDX-License-Identifier: MIT
"""Bursts become operations, operations phases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.advice.importing.phases import LoggedOperation, operations_of, phases_of
from penstock.advice.logs.record import Burst


def test_a_burst_is_an_operation() -> None:
    bursts = [Burst(5.0, 6.0, 10.0, 1.0), Burst(1.0, 2.0, 20.0, 0.5)]
    assert operations_of(bursts) == [
        LoggedOperation(1.0, 20.0),
        LoggedOperation(5.0, 10.0),
    ]


def test_a_long_burst_of_unknown_structure_is_one_operation_per_hour() -> None:
    bursts = [Burst(0.0, 3 * 3600.0, 10.0, 5.0, is_exact=False)]
    assert operations_of(bursts) == [
        LoggedOperation(0.0, 3.0),
        LoggedOperation(3600.0, 4.0),
        LoggedOperation(7200.0, 3.0),
    ]
    assert len(operations_of([Burst(0.0, 3 * 3600.0, 10.0, 5.0)])) == 1


def test_operations_are_posted_when_the_log_says() -> None:
    operations = [LoggedOperation(10.0, 100.0), LoggedOperation(30.0, 100.0)]
    assert phases_of(operations, cap=20.0, run_s=60.0) == [
        ("work", 10.0),
        ("io", 100.0),
        ("work", 15.0),
        ("io", 100.0),
        ("work", 25.0),
    ]


def test_an_operation_waits_for_the_one_before_it() -> None:
    operations = [LoggedOperation(0.0, 100.0), LoggedOperation(1.0, 10.0)]
    phases = phases_of(operations, cap=10.0, run_s=5.0)
    assert phases == [("io", 100.0), ("io", 10.0)]


@given(
    st.lists(
        st.tuples(st.floats(0.0, 1e4), st.integers(1, 10**9)), min_size=1, max_size=20
    ),
    st.floats(1.0, 1e6),
    st.floats(0.0, 1e4),
)
def test_bytes_are_kept_and_the_job_is_not_shorter_than_in_the_log(
    rows: list[tuple[float, int]], cap: float, run_s: float
) -> None:
    operations = sorted(LoggedOperation(begin, float(volume)) for begin, volume in rows)
    phases = phases_of(operations, cap, run_s)
    assert sum(amount for kind, amount in phases if kind == "io") == sum(
        volume for _, volume in rows
    )
    length = sum(amount / (cap if kind == "io" else 1.0) for kind, amount in phases)
    assert length >= run_s * (1 - 1e-9)
    last = operations[-1]
    assert length >= (last.begin_s + last.volume_bytes / cap) * (1 - 1e-9)
    assert length == pytest.approx(length)
