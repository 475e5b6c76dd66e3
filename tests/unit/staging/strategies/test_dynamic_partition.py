# SPDX-License-Identifier: MIT
"""Strategy 3b: the targets are divided among the applications that write now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import InputError
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

EQUAL = [replace(application, phase_bytes=1.0) for application in (A, B, C)]


def test_the_example_of_section_iii_b() -> None:
    """48 and 16 bytes: 6 and 2 of 8 targets (burst-buffer coordination)."""
    plan = decide("3b", A, B)
    assert [order.targets for order in plan.orders] == [(0, 1, 2, 3, 4, 5), (6, 7)]


def test_an_application_that_is_alone_has_all_targets() -> None:
    assert widths(decide("3b", A, IDLE))[0] == 8
    assert widths(decide("3b", ended(A), B))[1] == 8


def test_an_idle_application_is_shown_the_part_that_it_would_have() -> None:
    """A would share with B: 48 to 16 bytes, after B in the order of arrival."""
    plan = decide("3b", ended(A), B)
    assert plan.orders[0].targets == (2, 3, 4, 5, 6, 7)
    assert widths(decide("3b", ended(A), ended(B))) == [8, 8]


def test_an_idle_application_is_shown_all_targets_if_no_part_is_left() -> None:
    assert widths(decide("3b", A, B, IDLE, targets=2)) == [1, 1, 2]


def test_parts_may_follow_the_processes() -> None:
    assert widths(decide("3b:by=processes", A, B)) == [4, 4]


def test_unknown_volumes_count_as_equal() -> None:
    unknown = [replace(application, phase_bytes=0.0) for application in (A, B)]
    assert widths(decide("3b", *unknown)) == [4, 4]


def test_every_arrival_takes_half_of_the_part_before_it() -> None:
    """The parts of Figure 14 of burst-buffer coordination: 4, 2 and 2 of 8."""
    assert widths(decide("3b:split=halve", *EQUAL[:2])) == [4, 4]
    assert widths(decide("3b:split=halve", *EQUAL)) == [4, 2, 2]
    assert widths(decide("3b", *EQUAL)) == [3, 3, 2]


def test_halves_go_by_arrival_and_not_by_index() -> None:
    assert widths(decide("3b:split=halve", *EQUAL[::-1])) == [2, 2, 4]


def test_one_target_cannot_be_halved() -> None:
    with pytest.raises(InputError, match="3 targets cannot be halved for 3"):
        decide("3b:split=halve", A, B, C, targets=3)


def test_no_application_stages_and_staged_data_are_drained() -> None:
    plan = decide("3b", with_data(A), with_data(B), with_data(IDLE))
    assert staging(plan) == [False, False, False]
    assert draining(plan) == [True, True, True]


def test_more_writers_than_targets_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"3 applications cannot .*use the strategy combined"
    ):
        decide("3b", A, B, C, targets=2)
