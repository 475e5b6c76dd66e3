# SPDX-License-Identifier: MIT
"""The trace of grants is short, and the volume that was granted stays the same."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.live.control.past import (
    MOST_GRANTS,
    OFF,
    GrantTrace,
    PolicyTrace,
    on_other_clock,
)
from support.archives import operation, run


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
    # Long intervals before, so that the trace is full.
    before = [(10.0 * (n - MOST_GRANTS), float(n)) for n in range(4, MOST_GRANTS)]
    last = [(0.0, 4.0), (10.0, 8.0), (20.0, 2.0), (22.0, 6.0)]
    for instant, rate in (*before, *last):
        trace.add(instant, rate)
    assert len(trace.steps) == MOST_GRANTS
    trace.add(30.0, 1.0)
    merged = (8.0 * 10.0 + 2.0 * 2.0) / 12.0
    assert trace.steps[-4:] == [(0.0, 4.0), (10.0, merged), (22.0, 6.0), (30.0, 1.0)]


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


# --- Policies -------------------------------------------------------------------------


def test_a_policy_that_is_set_again_is_one_step() -> None:
    trace = PolicyTrace([(0.0, "fcfs")])
    trace.add(1.0, "fcfs")
    trace.add(2.0, "fair-share")
    # Changed and changed back at one instant: nothing has happened.
    trace.add(3.0, "fcfs")
    trace.add(3.0, "fair-share")
    assert trace.steps == [(0.0, "fcfs"), (2.0, "fair-share")]


def test_of_many_policies_the_last_ones_are_kept() -> None:
    trace = PolicyTrace()
    for instant in range(100):
        trace.add(float(instant), f"policy{instant}")
    assert len(trace.steps) == 20
    assert trace.last == "policy99"


def test_the_last_policy_is_not_that_control_is_off() -> None:
    trace = PolicyTrace([(0.0, "fcfs"), (1.0, OFF)])
    assert trace.last == "fcfs"
    assert PolicyTrace([(0.0, OFF)]).last == OFF


def test_all_instants_move_to_another_clock() -> None:
    before = run(joined_s=1.0, left_s=9.0, policies=((1.0, "a"), (5.0, "b")))
    done = operation(2.0, 4.0, grants=((2.0, 5e8), (3.0, 1e9)))
    later, moved = on_other_clock(before, done, 100.0)
    assert (later.joined_s, later.left_s) == (101.0, 109.0)
    assert later.policies == ((101.0, "a"), (105.0, "b"))
    assert moved == operation(102.0, 104.0, grants=((102.0, 5e8), (103.0, 1e9)))
    assert on_other_clock(run(left_s=None), None, 1.0)[0].left_s is None
