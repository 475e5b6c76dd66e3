# SPDX-License-Identifier: MIT
"""Statistics of client requests per window."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.slo.windows import (
    AnsweredRequest,
    ClientWindow,
    GroupWindow,
    answered_requests,
    compliance,
    windows,
)

TIMES = st.lists(st.tuples(st.floats(0.0, 4.9), st.floats(0.0, 2.0)))


@given(TIMES)
def test_every_answer_is_in_one_window(times: list[tuple[float, float]]) -> None:
    answers = [AnsweredRequest(issued, issued + response) for issued, response in times]
    run = windows({"a": answers}, 0.5, 14, inf)
    assert answered_requests(run) == len(answers)
    assert sum(w.groups["a"].issued for w in run) == len(answers)
    assert not any(w.overloaded for w in run)


def test_a_window_with_more_requests_than_can_be_served_is_overloaded() -> None:
    answers = [
        AnsweredRequest(0.1, 0.2),
        AnsweredRequest(0.3, 0.9),
        AnsweredRequest(0.4, 1.2),
    ]
    run = windows({"a": answers}, 0.5, 3, 2)
    assert [w.overloaded for w in run] == [True, False, False]
    assert [w.groups["a"].answered for w in run] == [1, 1, 1]


def test_a_response_time_counts_where_the_request_was_issued() -> None:
    """Requests of an overload that are answered later say nothing about that time."""
    answers = [AnsweredRequest(0.4, 1.2), AnsweredRequest(1.1, 1.15)]
    run = windows({"a": answers}, 0.5, 3, inf)
    assert run[0].groups["a"].p95_s == pytest.approx(0.8)
    assert run[1].groups["a"] == GroupWindow(0, 0, None)
    assert run[2].groups["a"].p95_s == pytest.approx(0.05)
    assert [w.groups["a"].answered for w in run] == [0, 0, 2]


def window(p95: dict[str, float | None], *, overloaded: bool) -> ClientWindow:
    groups = {name: GroupWindow(0, 0 if t is None else 1, t) for name, t in p95.items()}
    return ClientWindow(0.0, overloaded, groups)


def test_only_windows_with_requests_count() -> None:
    run = [
        window({"a": 0.05, "b": 0.2}, overloaded=True),
        window({"a": 0.15, "b": None}, overloaded=True),
        window({"a": 0.05, "b": 0.05}, overloaded=False),
    ]
    bounds = {"a": 0.1, "b": 0.1}
    assert compliance(run, bounds, overloaded=True) == {"a": (1, 2), "b": (0, 1)}
    assert compliance(run, bounds, overloaded=False) == {"a": (1, 1), "b": (1, 1)}
