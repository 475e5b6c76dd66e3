# SPDX-License-Identifier: MIT
"""Strategy 3a: targets of its own for every application, for the whole run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import InputError
from penstock.staging import ApplicationStatus
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


def test_the_example_of_section_iii_b() -> None:
    """48 and 16 bytes: 6 and 2 of 8 targets (burst-buffer coordination)."""
    plan = decide("3a", A, B)
    assert [order.targets for order in plan.orders] == [(0, 1, 2, 3, 4, 5), (6, 7)]


def test_parts_may_follow_the_processes() -> None:
    assert widths(decide("3a:by=processes", A, B)) == [4, 4]
    assert widths(decide("3a:by=processes", A, replace(B, processes=12))) == [2, 6]


@pytest.mark.parametrize(
    "applications", [(A, B), (ended(A), B), (A, ended(B)), (ended(A), ended(B))]
)
def test_the_parts_do_not_depend_on_which_applications_write(
    applications: tuple[ApplicationStatus, ...],
) -> None:
    assert widths(decide("3a", *applications)) == [6, 2]


def test_the_parts_are_disjoint_and_use_all_targets() -> None:
    plan = decide("3a", A, B, C, IDLE)
    numbers = [number for order in plan.orders for number in order.targets]
    assert sorted(numbers) == list(range(8))


def test_an_application_with_little_data_has_one_target() -> None:
    assert widths(decide("3a", A, replace(B, phase_bytes=1e-9))) == [7, 1]


def test_unknown_volumes_count_as_equal() -> None:
    unknown = [replace(application, phase_bytes=0.0) for application in (A, B)]
    assert widths(decide("3a", *unknown)) == [4, 4]


def test_no_application_stages_and_staged_data_are_drained() -> None:
    plan = decide("3a", with_data(A), with_data(B), with_data(IDLE))
    assert staging(plan) == [False, False, False]
    assert draining(plan) == [True, True, True]


def test_as_many_applications_as_targets_have_one_target_each() -> None:
    assert widths(decide("3a", A, B, C, targets=3)) == [1, 1, 1]


def test_more_applications_than_targets_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"3 applications cannot .*use the strategy combined"
    ):
        decide("3a", A, B, C, targets=2)
    # An idle application needs a part as well.
    with pytest.raises(InputError, match="2 applications cannot"):
        decide("3a", A, IDLE, targets=1)
