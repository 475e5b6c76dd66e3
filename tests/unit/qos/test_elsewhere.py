# SPDX-License-Identifier: MIT
"""What servers tell one another: totals, so that lost and late messages do no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.qos import Layout, ReportedService, ServiceReporter


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=20).flatmap(
        lambda steps: st.tuples(
            st.just(steps),
            st.permutations(range(len(steps))),
            st.sets(st.integers(0, len(steps) - 1)),
        )
    )
)
def test_once_the_last_message_is_there_all_is_known(
    case: tuple[list[int], list[int], set[int]],
) -> None:
    """In any order, with any others lost, and asked in between."""
    steps, order, lost = case
    totals = [sum(steps[: k + 1]) for k in range(len(steps))]
    heard, known = ReportedService(), 0.0
    for message in order:
        if message not in lost or message == len(steps) - 1:
            heard.hear("s", {"a": totals[message]})
            known += heard.since("a", 0)
    assert known == totals[-1]
    assert heard.since("a", 0) == 0.0


def test_servers_and_applications_are_kept_apart() -> None:
    heard = ReportedService()
    heard.hear("s", {"a": 5.0, "b": 1.0})
    heard.hear("t", {"a": 3.0})
    assert heard.since("a", 0) == 8.0
    assert heard.since("b", 0) == 1.0


def test_layout_multiplies_the_last_request() -> None:
    layout = Layout({"a": 4})
    assert layout.since("a", 10) == 30.0
    assert layout.since("b", 10) == 0.0
    with pytest.raises(InputError, match="layout of a"):
        Layout({"a": 0})


def test_others_are_told_when_it_is_worth_it() -> None:
    teller = ServiceReporter(10.0)
    assert teller.news({"a": 9}) is None
    assert teller.news({"a": 10, "b": 1}) == {"a": 10, "b": 1}
    assert teller.news({"a": 19, "b": 9}) is None
    assert teller.news({"a": 19, "b": 11}) == {"a": 19, "b": 11}
    with pytest.raises(InputError, match="threshold"):
        ServiceReporter(0.0)
