# SPDX-License-Identifier: MIT
"""The depth of the next window, computed by hand from the equations of the module."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import interpreted, memory
from penstock.qos import percentile
from penstock.qos.parts import feedback
from penstock.qos.parts.feedback import DepthDecision, WindowStatistics
from penstock.qos.state import (
    LATENCY_SHARE,
    SAMPLE_LIMIT,
    SAMPLES,
    STRIDE,
    SchedulerState,
    new_state,
)


@dataclass
class ClassStatistics:
    """The measurements of one class."""

    latency_s: float
    time_s: float = 0.0
    count: int = 0
    wait_s: float = 0.0
    admitted: int = 0


def measured(
    latency_s: float,
    time_s: float,
    count: int,
    *,
    wait_s: float = 0.0,
    admitted: int = 0,
) -> ClassStatistics:
    """Return a class with `count` completed requests that all took the same time."""
    return ClassStatistics(latency_s, time_s, count, wait_s, admitted)


def state_with(classes: dict[str, ClassStatistics]) -> SchedulerState:
    """Return a state at the end of a window with these measurements."""
    state = memory(new_state())
    state.value[LATENCY_SHARE] = 1.0
    for i, statistics in enumerate(classes.values()):
        state.latency_s[i] = statistics.latency_s
        interpreted(feedback.join_window)(state, i)
        state.admitted[i] = statistics.admitted
        for _ in range(statistics.count):
            record(state, i, statistics.time_s, statistics.wait_s)
    interpreted(feedback.group_samples)(state)
    interpreted(feedback.record_slacks)(state, 1.0)
    return state


def record(state: SchedulerState, i: int, time_s: float, wait_s: float = 0.0) -> None:
    interpreted(feedback.record_time)(state, i, time_s, wait_s)


def past(**changes: float) -> WindowStatistics:
    defaults = {
        "length_s": 0.5,
        "depth": 10.0,
        "max_outstanding": 10,
        "busy_share": 1.0,
        "outstanding": 0,
        "queued": 0,
        "queued_due": 0,
    }
    return WindowStatistics(**(defaults | changes))  # type: ignore[arg-type]


def decide(
    classes: dict[str, ClassStatistics], *, overloaded: bool = False, **changes: float
) -> DepthDecision:
    """Return the decision after a window with these measurements."""
    state = state_with(classes)
    decide_depth = interpreted(feedback.decide_depth)
    decision: DepthDecision = decide_depth(state, past(**changes), overloaded)
    return decision


def test_the_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0]) == 3.0
    assert percentile([float(k) for k in range(1, 21)]) == 19.0
    assert percentile([float(k) for k in range(1, 101)]) == 95.0


def test_l_rt_is_the_depth_that_keeps_the_latency() -> None:
    """T = 200 ms at depth 10; D - MT = 300 - 60 ms allows the depth 12."""
    decision = decide({"a": measured(0.3, 0.2, 25, wait_s=0.06, admitted=25)})
    assert decision.depth == pytest.approx(12.0)
    assert decision.threshold == pytest.approx(12.0)


def test_the_tightest_class_decides() -> None:
    decision = decide({"a": measured(0.3, 0.1, 10), "b": measured(0.1, 0.1, 15)})
    assert decision.depth == pytest.approx(10.0)


def test_a_depth_that_was_not_used_up_is_replaced_by_the_largest_one_seen() -> None:
    """At most 3 at once took 60 ms each: 300 ms allow 15, whatever the depth."""
    classes = {"a": measured(0.3, 0.06, 10)}
    decision = decide(classes, depth=100.0, max_outstanding=3)
    assert decision.depth == pytest.approx(15.0)


def test_under_a_light_load_the_depth_at_most_doubles() -> None:
    assert decide({"a": measured(0.3, 0.001, 5)}, depth=2.0).depth == 4.0


def test_overload_begins_when_what_is_due_needs_too_great_a_depth() -> None:
    """L_0 = 40 x 10 / 25 = 16, and the latency allows only 5."""
    decision = decide({"a": measured(0.1, 0.2, 25)}, outstanding=10, queued_due=30)
    assert decision.depth == inf
    assert decision.threshold == inf
    assert decision.due_depth == pytest.approx(16.0)


def test_overload_ends_when_more_is_completed_than_is_due() -> None:
    classes = {"a": measured(0.1, 0.2, 25)}
    still = decide(
        classes, overloaded=True, depth=inf, max_outstanding=40, queued_due=25
    )
    assert still.depth == inf
    over = decide(
        classes, overloaded=True, depth=inf, max_outstanding=40, queued_due=15
    )
    # The larger of L_RT = 40 x 0.1 / 0.2 and L_0 = 15 x 40 / 25.
    assert over.depth == pytest.approx(24.0)


def test_expected_arrivals_are_due_if_they_arrive_early_enough() -> None:
    state = state_with(
        {
            "a": measured(0.1, 0.01, 25, admitted=20),
            "b": measured(0.6, 0.01, 1, admitted=50),
        }
    )
    due = interpreted(feedback.due_next)(state, past(outstanding=3, queued_due=2))
    assert due == pytest.approx(3 + 2 + 16)


def test_completions_are_scaled_to_a_storage_that_is_never_idle() -> None:
    """X = 20: with 10 requests due, the depth L_0 = 10 x 10 / 20."""
    decision = decide({"a": measured(0.1, 0.01, 10)}, busy_share=0.5, queued_due=10)
    assert decision.due_depth == pytest.approx(5.0)


def test_a_window_without_completions_is_recognised() -> None:
    completed = interpreted(feedback.completed_requests)
    assert completed(state_with({})) == 0
    assert completed(state_with({"a": ClassStatistics(0.1)})) == 0
    assert completed(state_with({"a": measured(0.1, 0.01, 3)})) == 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=60))
def test_t_is_the_95th_percentile_of_the_times(times_s: list[float]) -> None:
    state = state_with({"a": ClassStatistics(0.3)})
    for time_s in times_s:
        record(state, 0, time_s)
    interpreted(feedback.group_samples)(state)
    slack = interpreted(feedback.slack_factor)(state, 0)
    assert slack == 0.3 / percentile(times_s)


def test_when_there_are_too_many_times_every_second_one_of_each_class_is_kept() -> None:
    """A takes 1 s and B 2 s, in turn: both keep half of their times."""
    state = state_with({"a": ClassStatistics(0.3), "b": ClassStatistics(0.3)})
    for k in range(SAMPLE_LIMIT + 100):
        record(state, k % 2, 1.0 + k % 2)
    assert state.counter[STRIDE] == 2
    assert state.counter[SAMPLES] == SAMPLE_LIMIT // 2 + 50
    assert state.completed[0] == state.completed[1] == SAMPLE_LIMIT // 2 + 50
    interpreted(feedback.group_samples)(state)
    for i, time_s in enumerate((1.0, 2.0)):
        total_s = interpreted(feedback.storage_time_s)(state, i)
        assert total_s == pytest.approx(time_s * state.completed[i])
        slack = interpreted(feedback.slack_factor)(state, i)
        assert slack == pytest.approx(0.3 / time_s)
