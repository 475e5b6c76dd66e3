# SPDX-License-Identifier: MIT
"""Strategy ``combined``: parts while there are enough targets; staging beyond.

The scenario of burst-buffer coordination, section V-C, for any number of applications.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.staging_plans import (
    IDLE,
    A,
    B,
    C,
    decide,
    draining,
    ended,
    staging,
    widths,
    with_data,
)


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        (1, [False, False, False]),
        (2, [False, False, False]),
        (3, [False, False, True]),
        (4, [False, False, True]),
        (5, [False, True, True]),
        (8, [False, True, True]),
        (100, [False, True, True]),
    ],
)
def test_8_targets_leave_room_for_8_over_least_writers(
    least: int, expected: list[bool]
) -> None:
    assert staging(decide(f"combined:least={least}", A, B, C)) == expected


def test_the_parts_of_the_writers_are_proportional_to_their_data() -> None:
    plan = decide("combined:least=4", A, B, C)
    assert [order.targets for order in plan.orders[:2]] == [
        (0, 1, 2, 3, 4, 5),
        (6, 7),
    ]
    by_processes = decide("combined:least=4,by=processes", A, B, C)
    assert widths(by_processes)[:2] == [4, 4]


def test_an_application_that_is_alone_writes_to_all_targets() -> None:
    plan = decide("combined:least=8", A, IDLE)
    assert (staging(plan), widths(plan)) == ([False, False], [8, 8])


def test_no_application_writes() -> None:
    plan = decide("combined", ended(A), with_data(IDLE))
    assert (staging(plan), draining(plan)) == ([False, False], [False, True])


def test_more_applications_than_targets_are_served() -> None:
    plan = decide("combined", A, with_data(B), with_data(C), targets=2)
    assert staging(plan) == [False, False, True]
    assert widths(plan)[:2] == [1, 1]
    assert draining(plan) == [False, True, False]


def test_when_a_writer_is_done_the_next_arrival_flushes_into_its_part() -> None:
    plan = decide("combined", ended(A), B, with_data(C), targets=2)
    assert (staging(plan), draining(plan)) == ([False] * 3, [False, False, True])
    assert [order.targets for order in plan.orders[1:]] == [(0,), (1,)]


def test_an_application_that_stages_waits_even_while_its_buffer_is_full() -> None:
    plan = decide("combined:least=8", A, with_data(B, blocked=True))
    assert draining(plan) == [False, False]


def test_one_writer_at_a_time_has_the_token() -> None:
    first = replace(with_data(A), turn_ended_s=9.0)
    plan = decide("combined:flush=token", first, with_data(B))
    assert draining(plan) == [False, True]
