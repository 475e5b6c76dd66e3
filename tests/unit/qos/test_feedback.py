# SPDX-License-Identifier: MIT
"""The depth of the next window, by hand from the quantities of papers/5."""

from __future__ import annotations

from math import inf

import pytest

from penstock.qos.feedback import Served, WindowStatistics, decide, percentile


def served(
    latency: float, time: float, count: int, *, wait: float = 0.0, came: int = 0
) -> Served:
    return Served(latency, [time] * count, wait * count, came)


def past(classes: dict[str, Served], **changes: float) -> WindowStatistics:
    facts = {
        "window": 0.5,
        "depth": 10.0,
        "most": 10,
        "busy": 1.0,
        "outstanding": 0,
        "queued": 0,
        "due": 0,
    }
    return WindowStatistics(classes=classes, **(facts | changes))  # type: ignore[arg-type]


def test_the_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0]) == 3.0
    assert percentile([float(k) for k in range(1, 21)]) == 19.0
    assert percentile([float(k) for k in range(1, 101)]) == 95.0


def test_l_rt_is_the_depth_that_keeps_the_latency() -> None:
    """At depth 10 it takes 200 ms; 300 ms less 60 ms of waiting bear 12."""
    decision = decide(
        past({"a": served(0.3, 0.2, 25, wait=0.06, came=25)}), overloaded=False
    )
    assert decision is not None
    assert decision.depth == pytest.approx(12.0)
    assert decision.threshold == pytest.approx(12.0)
    assert not decision.overloaded


def test_the_tightest_class_decides() -> None:
    classes = {"a": served(0.3, 0.1, 10), "b": served(0.1, 0.1, 15)}
    decision = decide(past(classes), overloaded=False)
    assert decision is not None
    assert decision.depth == pytest.approx(10.0)


def test_a_depth_that_was_not_used_up_says_nothing() -> None:
    """Only 3 were there at once: 60 ms each bear 15 in 300 ms, whatever the depth."""
    decision = decide(
        past({"a": served(0.3, 0.06, 10)}, depth=100.0, most=3), overloaded=False
    )
    assert decision is not None
    assert decision.depth == pytest.approx(15.0)


def test_where_little_comes_the_depth_grows_step_by_step() -> None:
    decision = decide(past({"a": served(0.3, 0.001, 5)}, depth=2.0), overloaded=False)
    assert decision is not None
    assert decision.depth == 4.0


def test_overload_is_when_what_is_due_takes_a_greater_depth() -> None:
    """L_0 = 40 x 10 / 25 = 16, and the latency bears only 5."""
    seen = {"a": served(0.1, 0.2, 25)}
    decision = decide(past(seen, outstanding=10, due=30), overloaded=False)
    assert decision is not None
    assert decision.overloaded
    assert decision.threshold == inf
    assert decision.least == pytest.approx(16.0)


def test_overload_ends_when_more_is_completed_than_is_due() -> None:
    seen = {"a": served(0.1, 0.2, 25)}
    still = decide(past(seen, depth=inf, most=40, due=25), overloaded=True)
    assert still is not None
    assert still.overloaded
    over = decide(past(seen, depth=inf, most=40, due=15), overloaded=True)
    assert over is not None
    # The larger of L_RT = 40 x 0.1 / 0.2 and L_0 = 15 x 40 / 25.
    assert over.depth == pytest.approx(24.0)


def test_those_that_will_come_are_due_if_they_come_early_enough() -> None:
    seen = {"a": served(0.1, 0.01, 25, came=20), "b": served(0.6, 0.01, 1, came=50)}
    assert past(seen, outstanding=3, due=2).due_next() == pytest.approx(3 + 2 + 16)


def test_an_idle_storage_could_have_done_more() -> None:
    assert past({"a": served(0.1, 0.01, 10)}, busy=0.5).completed == 20.0


def test_a_window_without_answers_changes_nothing() -> None:
    assert decide(past({"a": Served(0.1)}), overloaded=False) is None
    assert decide(past({}), overloaded=True) is None
