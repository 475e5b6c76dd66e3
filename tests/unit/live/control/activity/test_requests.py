# SPDX-License-Identifier: MIT
"""Sizes of requests and pauses between them, from counts of whole operations."""

from __future__ import annotations

import pytest

from penstock.live.control.activity.requests import RequestCounts, RequestMeter


def test_an_operation_of_processes_that_pause() -> None:
    """4 processes, 10 requests of 8 bytes each, 1 s in a call and 3 s between two."""
    meter = RequestMeter()
    meter.begin(RequestCounts(100, 1000.0, 50.0))
    meter.end(RequestCounts(140, 1320.0, 90.0), 40.0, 4)
    assert meter.round_bytes == 32.0
    assert meter.pause_s == 3.0


def test_processes_that_never_pause() -> None:
    meter = RequestMeter()
    meter.end(RequestCounts(10, 80.0, 20.5), 10.0, 2)
    assert meter.pause_s == 0.0
    assert meter.round_bytes == 16.0


def test_the_last_operation_counts() -> None:
    meter = RequestMeter()
    meter.end(RequestCounts(10, 80.0, 10.0), 10.0, 2)
    assert meter.pause_s == 1.0
    meter.begin(RequestCounts(10, 80.0, 10.0))
    meter.end(RequestCounts(12, 100.0, 10.0), 3.0, 2)
    assert (meter.round_bytes, meter.pause_s) == (20.0, 3.0)


def test_threads_that_pause_together() -> None:
    """One process, 8 threads: 4 requests of 80 bytes in 1 s each, 2 s between two."""
    meter = RequestMeter()
    meter.begin(RequestCounts(8, 80.0, 8.0, pauses=5, paused_s=50.0))
    meter.end(RequestCounts(40, 400.0, 40.0, pauses=8, paused_s=56.0), 10.0, 1)
    assert meter.round_bytes == 80.0
    assert meter.pause_s == 2.0


def test_processes_that_pause_in_turn_are_counted_one_by_one() -> None:
    """4 processes, 10 requests of 8 bytes each; now and then all of them pause."""
    meter = RequestMeter()
    meter.end(RequestCounts(40, 320.0, 40.0, pauses=2, paused_s=1.0), 40.0, 4)
    assert (meter.round_bytes, meter.pause_s) == (32.0, 3.0)


def test_an_earlier_run_counts_until_the_first_operation_ends() -> None:
    meter = RequestMeter(7.0, 8.0)
    meter.end(RequestCounts(10, 80.0, 10.0), 10.0, 2)
    assert (meter.round_bytes, meter.pause_s) == (16.0, 1.0)


@pytest.mark.parametrize(
    "counts",
    [
        RequestCounts(5, 50.0, 9.0),  # no call
        RequestCounts(9, 50.0, 9.0),  # no bytes
        RequestCounts(2, 20.0, 3.0),  # it has left a node
        RequestCounts(9, 90.0, 3.0),
    ],
)
def test_without_plausible_counts_nothing_is_learnt(counts: RequestCounts) -> None:
    meter = RequestMeter(7.0, 8.0)
    meter.begin(RequestCounts(5, 50.0, 5.0))
    meter.end(counts, 1.0, 2)
    assert (meter.round_bytes, meter.pause_s) == (7.0, 8.0)
