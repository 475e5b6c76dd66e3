# SPDX-License-Identifier: MIT
"""Intervals become bursts: the union, its length, its bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.advice.logs import bursts as bursts_module
from penstock.advice.logs.bursts import (
    IntervalUnion,
    interval_record,
    saturating_times,
    whole_parts,
)
from penstock.advice.logs.record import Burst, LoggedJob, Skipped

INTERVALS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 20), st.integers(0, 100)),
    min_size=1,
    max_size=60,
)


def _union(rows: list[tuple[float, float, int]], pieces: int = 1) -> IntervalUnion:
    union = IntervalUnion()
    for part in np.array_split(np.array(rows, dtype=float), pieces):
        if len(part):
            union.add(part[:, 0], part[:, 1], part[:, 2].astype(np.int64))
    return union


def test_overlapping_intervals_are_one_burst() -> None:
    union = _union([(2.0, 4.0, 10), (1.0, 3.0, 5), (3.5, 3.7, 1)])
    assert union.bursts(0.0) == [Burst(1.0, 4.0, 16.0, 3.0)]


def test_a_short_gap_is_inside_a_burst_but_no_time_in_io() -> None:
    union = _union([(1.0, 2.0, 10), (2.5, 3.0, 5), (9.0, 10.0, 1)])
    first, second = union.bursts(0.6)
    assert first == Burst(1.0, 3.0, 15.0, 1.5)
    assert second == Burst(9.0, 10.0, 1.0, 1.0)
    assert len(union.bursts(0.4)) == 3


def test_a_clock_that_steps_back_gives_an_interval_without_length() -> None:
    (burst,) = _union([(5.0, 4.0, 7)]).bursts(0.0)
    assert burst == Burst(5.0, 5.0, 7.0, 0.0)


@given(INTERVALS, st.integers(0, 5))
def test_the_union_agrees_with_a_count_of_seconds(
    rows: list[tuple[int, int, int]], gap: int
) -> None:
    """Intervals of whole seconds: count the seconds that some interval covers."""
    intervals = [(float(b), float(b + length), v) for b, length, v in rows]
    covered = {second for b, length, _ in rows for second in range(b, b + length)}
    found = _union(intervals, pieces=3).bursts(float(gap))
    assert sum(burst.io_s for burst in found) == pytest.approx(len(covered))
    assert sum(burst.volume_bytes for burst in found) == sum(v for _, _, v in rows)
    assert all(later.begin_s - b.end_s > gap for b, later in pairwise(found))


@settings(max_examples=30)
@given(INTERVALS)
def test_joining_early_changes_no_bytes_and_little_time(
    rows: list[tuple[int, int, int]],
) -> None:
    intervals = [(float(b), float(b + length), v) for b, length, v in rows]
    exact = _union(intervals).bursts(0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bursts_module, "_BUFFERED", 8)
        joined = _union(intervals, pieces=20).bursts(0.0)
    assert sum(b.volume_bytes for b in joined) == sum(b.volume_bytes for b in exact)
    assert joined[0].begin_s == exact[0].begin_s
    assert joined[-1].end_s == exact[-1].end_s
    assert sum(b.io_s for b in joined) <= joined[-1].end_s - joined[0].begin_s + 1e-9


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts_module, "_BUFFERED", 100)
    union = IntervalUnion()
    for number in range(500):
        begin = np.arange(10.0) + 10.0 * number
        union.add(begin, begin + 0.5, np.ones(10, dtype=np.int64))
        assert union._count <= 110
    found = union.bursts(0.0)
    assert sum(burst.volume_bytes for burst in found) == 5000
    assert sum(burst.io_s for burst in found) == pytest.approx(2500.0)


def test_times_at_one_rate() -> None:
    assert saturating_times([10, 30], [5.0, 5.0], 2.0) == pytest.approx([0.5, 1.5])


def test_a_dense_bin_is_full_and_the_others_get_the_rest() -> None:
    times = saturating_times([1000, 10, 10], [2.0, 2.0, 2.0], 3.0)
    assert times == pytest.approx([2.0, 0.5, 0.5])


def test_no_bin_is_longer_than_its_width_and_empty_bins_have_no_time() -> None:
    assert saturating_times([5, 0, 5], [1.0, 1.0, 1.0], 99.0) == [1.0, 0.0, 1.0]


@given(
    st.lists(st.floats(0.01, 100.0), min_size=1, max_size=30),
    st.integers(0, 10**15),
)
def test_whole_parts_add_up_exactly(parts: list[float], total: int) -> None:
    whole = whole_parts(parts, total)
    assert sum(whole) == total
    assert all(part == int(part) and part >= 0 for part in whole)
    assert sum(reversed(whole)) == total


def test_the_record_of_intervals_begins_with_the_first() -> None:
    record = interval_record("f", [(100.0, 101.0, 5), (100.0, 130.0, 0)], 0.05)
    assert isinstance(record, LoggedJob)
    assert (record.start_s, record.run_s, record.log_bytes) == (100.0, 30.0, 5)
    assert record.bursts == (Burst(0.0, 1.0, 5.0, 1.0),)


def test_intervals_without_bytes_are_a_job_without_io() -> None:
    record = interval_record("f", [(0.0, 9.0, 0)], 0.05)
    assert record == Skipped(source="f", reason="the job has no I/O")
