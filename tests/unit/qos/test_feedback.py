# SPDX-License-Identifier: MIT
"""The depth of the next window, computed by hand from the equations of the module."""

from __future__ import annotations

from math import inf

import pytest

from penstock.qos.feedback import (
    ClassStatistics,
    WindowStatistics,
    decide_depth,
    percentile,
)


def measured(
    latency_s: float,
    time_s: float,
    count: int,
    *,
    wait_s: float = 0.0,
    admitted: int = 0,
) -> ClassStatistics:
    """Return a class with `count` completed requests that all took the same time."""
    return ClassStatistics(latency_s, [time_s] * count, wait_s * count, admitted)


def past(classes: dict[str, ClassStatistics], **changes: float) -> WindowStatistics:
    defaults = {
        "length_s": 0.5,
        "depth": 10.0,
        "max_outstanding": 10,
        "busy_share": 1.0,
        "outstanding": 0,
        "queued": 0,
        "queued_due": 0,
    }
    return WindowStatistics(classes=classes, **(defaults | changes))  # type: ignore[arg-type]


def test_the_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0]) == 3.0
    assert percentile([float(k) for k in range(1, 21)]) == 19.0
    assert percentile([float(k) for k in range(1, 101)]) == 95.0


def test_l_rt_is_the_depth_that_keeps_the_latency() -> None:
    """T = 200 ms at depth 10; D - MT = 300 - 60 ms allows the depth 12."""
    decision = decide_depth(
        past({"a": measured(0.3, 0.2, 25, wait_s=0.06, admitted=25)}), overloaded=False
    )
    assert decision is not None
    assert decision.depth == pytest.approx(12.0)
    assert decision.threshold == pytest.approx(12.0)
    assert not decision.overloaded


def test_the_tightest_class_decides() -> None:
    classes = {"a": measured(0.3, 0.1, 10), "b": measured(0.1, 0.1, 15)}
    decision = decide_depth(past(classes), overloaded=False)
    assert decision is not None
    assert decision.depth == pytest.approx(10.0)


def test_a_depth_that_was_not_used_up_is_replaced_by_the_largest_one_seen() -> None:
    """At most 3 at once took 60 ms each: 300 ms allow 15, whatever the depth."""
    decision = decide_depth(
        past({"a": measured(0.3, 0.06, 10)}, depth=100.0, max_outstanding=3),
        overloaded=False,
    )
    assert decision is not None
    assert decision.depth == pytest.approx(15.0)


def test_under_a_light_load_the_depth_at_most_doubles() -> None:
    decision = decide_depth(
        past({"a": measured(0.3, 0.001, 5)}, depth=2.0), overloaded=False
    )
    assert decision is not None
    assert decision.depth == 4.0


def test_overload_begins_when_what_is_due_needs_too_great_a_depth() -> None:
    """L_0 = 40 x 10 / 25 = 16, and the latency allows only 5."""
    classes = {"a": measured(0.1, 0.2, 25)}
    decision = decide_depth(
        past(classes, outstanding=10, queued_due=30), overloaded=False
    )
    assert decision is not None
    assert decision.overloaded
    assert decision.threshold == inf
    assert decision.due_depth == pytest.approx(16.0)


def test_overload_ends_when_more_is_completed_than_is_due() -> None:
    classes = {"a": measured(0.1, 0.2, 25)}
    still = decide_depth(
        past(classes, depth=inf, max_outstanding=40, queued_due=25), overloaded=True
    )
    assert still is not None
    assert still.overloaded
    over = decide_depth(
        past(classes, depth=inf, max_outstanding=40, queued_due=15), overloaded=True
    )
    assert over is not None
    # The larger of L_RT = 40 x 0.1 / 0.2 and L_0 = 15 x 40 / 25.
    assert over.depth == pytest.approx(24.0)


def test_expected_arrivals_are_due_if_they_arrive_early_enough() -> None:
    classes = {
        "a": measured(0.1, 0.01, 25, admitted=20),
        "b": measured(0.6, 0.01, 1, admitted=50),
    }
    assert past(classes, outstanding=3, queued_due=2).due_next() == pytest.approx(
        3 + 2 + 16
    )


def test_completions_are_scaled_to_a_storage_that_is_never_idle() -> None:
    assert past({"a": measured(0.1, 0.01, 10)}, busy_share=0.5).completed == 20.0


def test_a_window_without_completions_changes_nothing() -> None:
    assert decide_depth(past({"a": ClassStatistics(0.1)}), overloaded=False) is None
    assert decide_depth(past({}), overloaded=True) is None
