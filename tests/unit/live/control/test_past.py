# SPDX-License-Identifier: MIT
"""The trace of grants is short, and the volume that was granted stays the same."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.live.control.past import MOST_GRANTS, GrantTrace


def _granted(steps: list[tuple[float, float]], end_s: float) -> float:
    """Return the volume that grants allow until `end_s`."""
    ends = [*(instant for instant, _ in steps[1:]), end_s]
    return sum(
        rate * (end - begin) for (begin, rate), end in zip(steps, ends, strict=True)
    )


def test_an_unchanged_rate_is_one_step() -> None:
    trace = GrantTrace()
    for instant in (1.0, 2.0, 3.0):
        trace.add(instant, 5.0)
    assert trace.steps == [(1.0, 5.0)]


def test_of_two_rates_at_one_instant_the_last_one_holds() -> None:
    trace = GrantTrace()
    trace.add(1.0, 5.0)
    trace.add(1.0, 7.0)
    assert trace.steps == [(1.0, 7.0)]


def test_the_shortest_interval_is_merged_with_the_one_before() -> None:
    trace = GrantTrace()
    for instant, rate in ((0.0, 4.0), (10.0, 8.0), (20.0, 2.0), (22.0, 6.0)):
        trace.add(instant, rate)
    assert len(trace.steps) == MOST_GRANTS
    trace.add(30.0, 1.0)
    merged = (8.0 * 10.0 + 2.0 * 2.0) / 12.0
    assert trace.steps == [(0.0, 4.0), (10.0, merged), (22.0, 6.0), (30.0, 1.0)]


@given(
    st.lists(
        st.tuples(st.floats(0.001, 100.0), st.floats(0.0, 1e9)), min_size=1, max_size=40
    )
)
def test_the_granted_volume_is_kept(changes: list[tuple[float, float]]) -> None:
    trace, exact, now = GrantTrace(), [], 0.0
    for pause_s, rate in changes:
        trace.add(now, rate)
        exact.append((now, rate))
        now += pause_s
    assert 1 <= len(trace.steps) <= MOST_GRANTS
    assert _granted(trace.steps, now) == pytest.approx(_granted(exact, now))
    instants = [instant for instant, _ in trace.steps]
    assert instants == sorted(set(instants))
    assert instants[0] == 0.0
