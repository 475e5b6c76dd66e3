# SPDX-License-Identifier: MIT
"""Service on other servers: reports of totals, and the layout of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.qos import ReportedService, ServiceReporter
from penstock.qos.parts.remote_service import check_layout


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=20).flatmap(
        lambda steps: st.tuples(
            st.just(steps),
            st.permutations(range(len(steps))),
            st.sets(st.integers(0, len(steps) - 1)),
        )
    )
)
def test_once_the_last_report_has_arrived_the_total_is_known(
    case: tuple[list[int], list[int], set[int]],
) -> None:
    """Reports arrive in any order, and all but the last may be lost."""
    steps, order, lost = case
    totals = [sum(steps[: k + 1]) for k in range(len(steps))]
    service, known = ReportedService(), 0.0
    for report in order:
        if report not in lost or report == len(steps) - 1:
            known += service.new("s", {"a": totals[report]})["a"]
    assert known == totals[-1]
    assert service.new("s", {"a": totals[-1]}) == {"a": 0.0}


def test_servers_and_applications_are_kept_apart() -> None:
    service = ReportedService()
    assert service.new("s", {"a": 5.0, "b": 1.0}) == {"a": 5.0, "b": 1.0}
    assert service.new("t", {"a": 3.0}) == {"a": 3.0}


def test_a_layout_factor_is_at_least_one() -> None:
    check_layout({"a": 4, "b": 1})
    with pytest.raises(InputError, match="layout of a"):
        check_layout({"a": 0})


def test_a_report_is_due_when_one_total_has_grown_by_the_threshold() -> None:
    reporter = ServiceReporter(10.0)
    assert reporter.next_report({"a": 9}) is None
    assert reporter.next_report({"a": 10, "b": 1}) == {"a": 10, "b": 1}
    assert reporter.next_report({"a": 19, "b": 9}) is None
    assert reporter.next_report({"a": 19, "b": 11}) == {"a": 19, "b": 11}
    with pytest.raises(InputError, match="threshold"):
        ServiceReporter(0.0)
