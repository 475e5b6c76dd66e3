# SPDX-License-Identifier: MIT
"""Windows of response times in the data path, compared with a recount."""

from __future__ import annotations

import ctypes
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.native_mount import driver, set_time

WINDOW_S = 0.5
ANSWERS = st.lists(
    st.tuples(st.floats(0.0, 5.0), st.floats(0.001, 2.0), st.integers(0, 10**6))
)


class Figures(ctypes.Structure):
    _fields_ = [
        ("requests", ctypes.c_int64),
        ("moved_bytes", ctypes.c_int64),
        ("windows", ctypes.c_int64),
        ("kept_windows", ctypes.c_int64),
        ("p95_s", ctypes.c_double),
        ("bytes_per_s", ctypes.c_double),
    ]


class NativeMeter:
    def __init__(self, latency_s: float, now: float) -> None:
        set_time(now)
        self._meter = driver().driver_meter_new(latency_s)

    def record(self, response_s: float, moved_bytes: int, now: float) -> None:
        set_time(now)
        driver().driver_meter_record(self._meter, response_s, moved_bytes)

    def read(self, now: float) -> Figures:
        set_time(now)
        figures = Figures()
        driver().driver_meter_read(self._meter, ctypes.byref(figures))
        return figures


def percentile(values: list[float]) -> float:
    return sorted(values)[ceil(0.95 * len(values)) - 1]


@given(ANSWERS)
def test_the_windows_equal_a_recount(
    answers: list[tuple[float, float, int]],
) -> None:
    answers.sort()
    meter = NativeMeter(1.0, 0.0)
    for now, response_s, moved in answers:
        meter.record(response_s, moved, now)
    end = int(answers[-1][0] / WINDOW_S) + 1 if answers else 0
    figures = meter.read(end * WINDOW_S + 1e-9)
    by_window: dict[int, list[float]] = {}
    for now, response_s, _ in answers:
        by_window.setdefault(int(now / WINDOW_S), []).append(response_s)
    assert figures.windows == len(by_window)
    assert figures.kept_windows == sum(
        percentile(times) <= 1.0 for times in by_window.values()
    )
    assert figures.requests == len(answers)
    assert figures.moved_bytes == sum(moved for _, _, moved in answers)
    if answers:
        expected = percentile(by_window[end - 1])
        assert figures.p95_s == pytest.approx(expected, rel=0.012)


def test_the_last_window_is_the_last_complete_one() -> None:
    meter = NativeMeter(1.0, 10.0)
    meter.record(0.2, 100, 10.1)
    meter.record(0.1, 50, 10.4)
    assert meter.read(10.4).p95_s < 0
    figures = meter.read(10.0 + WINDOW_S)
    assert figures.p95_s == pytest.approx(0.2, rel=0.012)
    assert figures.bytes_per_s == 150 / WINDOW_S
    figures = meter.read(10.0 + 2 * WINDOW_S)
    assert (figures.p95_s < 0, figures.bytes_per_s) == (True, 0.0)


@pytest.mark.parametrize("response_s", [0.0, 1e-7, 1e6])
def test_times_outside_of_the_histogram_are_counted(response_s: float) -> None:
    meter = NativeMeter(1.0, 0.0)
    meter.record(response_s, 1, 0.1)
    figures = meter.read(WINDOW_S)
    assert (figures.windows, figures.kept_windows) == (1, response_s <= 1.0)
    assert figures.p95_s > 0
