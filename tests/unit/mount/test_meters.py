# SPDX-License-Identifier: MIT
"""Windows of response times, compared with a recount of all answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.mount.meters import WINDOW_S, Meter, MeterWindow
from penstock.qos.feedback import percentile

ANSWERS = st.lists(
    st.tuples(st.floats(0.0, 5.0), st.floats(0.001, 2.0), st.integers(0, 10**6))
)


@given(ANSWERS)
def test_the_windows_equal_a_recount(
    answers: list[tuple[float, float, int]],
) -> None:
    answers.sort()
    meter = Meter(1.0, 0.0)
    for now, response_s, moved in answers:
        meter.record(response_s, moved, now)
    end = int(answers[-1][0] / WINDOW_S) + 1 if answers else 0
    meter.last_window(end * WINDOW_S + 1e-9)
    by_window: dict[int, list[float]] = {}
    for now, response_s, _ in answers:
        by_window.setdefault(int(now / WINDOW_S), []).append(response_s)
    assert meter.windows == len(by_window)
    assert meter.kept_windows == sum(percentile(t) <= 1.0 for t in by_window.values())
    assert meter.requests == len(answers)
    assert meter.moved_bytes == sum(moved for _, _, moved in answers)


def test_the_last_window_is_the_last_complete_one() -> None:
    meter = Meter(1.0, 10.0)
    meter.record(0.2, 100, 10.1)
    meter.record(0.1, 50, 10.4)
    assert meter.last_window(10.4) == MeterWindow()
    assert meter.last_window(10.0 + WINDOW_S) == MeterWindow(0.2, 150 / WINDOW_S, 2)
    assert meter.last_window(10.0 + 2 * WINDOW_S) == MeterWindow()


def test_the_percentile_ignores_one_in_twenty() -> None:
    assert percentile([1.0] * 19 + [9.0]) == 1.0
    assert percentile([1.0] * 18 + [9.0] * 2) == 9.0
    assert percentile([3.0]) == 3.0
