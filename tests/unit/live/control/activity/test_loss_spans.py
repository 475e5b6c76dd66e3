# SPDX-License-Identifier: MIT
"""Lost time as users see it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.live.control.activity.loss_spans import LossSpans


def test_an_operation_loses_at_most_what_its_calls_were_held_up() -> None:
    spans = LossSpans()
    spans.begin(7.0, 3.0, is_free=False)
    assert spans.lost_s(9.0, 3.0) == 0.0
    assert spans.lost_s(9.0, 4.0) == 1.0
    assert spans.lost_s(9.0, 13.0) == 2.0


def test_a_free_job_loses_nothing() -> None:
    spans = LossSpans()
    spans.begin(0.0, 0.0, is_free=True)
    spans.begin(2.0, 0.0, is_free=False)
    # What its grants cost on paper while it was free is not made up for later.
    assert spans.lost_s(3.0, 9.0) == 1.0
    spans.begin(3.0, 9.0, is_free=True)
    assert spans.lost_s(5.0, 20.0) == 1.0


def test_what_a_limit_takes_is_not_counted_for_earlier_grants() -> None:
    spans = LossSpans()
    spans.begin(0.0, 0.0, is_free=False)
    # The storage is slow: half of the time is lost on paper, and nobody is held up.
    spans.begin(5.0, 0.0, is_free=False)
    # The limit holds it up for 4 s; it is granted all that the limit allows.
    assert spans.lost_s(5.0, 4.0) == 0.0


def test_time_that_is_given_back_is_not_lost() -> None:
    spans = LossSpans()
    spans.begin(5.0, 0.0, is_free=False)
    assert spans.lost_s(4.9, 1.0) == 0.0


_STEPS = st.lists(st.tuples(*[st.floats(0.0, 9.0)] * 2, st.booleans()), max_size=9)


@given(_STEPS)
def test_the_sum_is_bounded_by_both_and_grows(
    steps: list[tuple[float, float, bool]],
) -> None:
    spans, by_grants_s, held_up_s, before = LossSpans(), 0.0, 0.0, 0.0
    for more_s, held_s, is_free in steps:
        spans.begin(by_grants_s, held_up_s, is_free=is_free)
        by_grants_s, held_up_s = by_grants_s + more_s, held_up_s + held_s
        lost_s = spans.lost_s(by_grants_s, held_up_s)
        assert before <= lost_s <= min(by_grants_s, held_up_s) + 1e-9
        before = lost_s
