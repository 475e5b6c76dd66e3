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


def test_parts_may_follow_the_nodes() -> None:
    assert widths(decide("3a:by=nodes", A, B)) == [4, 4]
    assert widths(decide("3a:by=nodes", replace(A, nodes=7), B)) == [7, 1]


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


# --- Applications that come one after the other ------------------------------------


def _with_orders(
    *applications: ApplicationStatus, name: str = "3a"
) -> list[ApplicationStatus]:
    """Return the applications with the targets that they are given now."""
    plan = decide(name, *applications)
    return [
        replace(application, targets=order.targets)
        for application, order in zip(applications, plan.orders, strict=True)
    ]


def test_a_part_is_left_for_an_application_that_may_come() -> None:
    (first,) = _with_orders(A)
    assert first.targets == (0, 1, 2, 3)
    assert _with_orders(first, B)[1].targets == (4, 5, 6, 7)


def test_the_number_of_applications_to_come_can_be_set() -> None:
    (first,) = _with_orders(A, name="3a:applications=4")
    assert first.targets == (0, 1)
    (only,) = _with_orders(A, name="3a:applications=1")
    assert only.targets == tuple(range(8))
    # No more than there are targets.
    assert widths(decide("3a:applications=9", A, targets=2)) == [1]


def test_a_part_does_not_change_when_more_is_known_of_the_data() -> None:
    unknown = [replace(each, phase_bytes=0.0) for each in (A, B)]
    first, second = _with_orders(*unknown)
    for sizes in ((7.0, 1.0), (1.0, 7.0), (0.0, 1e9)):
        now_known = [
            replace(each, phase_bytes=size)
            for each, size in zip((first, second), sizes, strict=True)
        ]
        assert widths(decide("3a", *now_known)) == [4, 4]


def test_a_part_does_not_change_when_others_come_and_go() -> None:
    first, second, third = _with_orders(*_with_orders(A, B), C)
    assert (first.targets, second.targets) == ((0, 1, 2, 3, 4, 5), (6, 7))
    # No target was free: it shares the largest part.
    assert third.targets == first.targets
    assert _with_orders(second)[0].targets == (6, 7)


def test_targets_of_an_application_that_has_ended_are_given_to_the_next() -> None:
    _, second = _with_orders(A, B)
    second, later = _with_orders(second, IDLE)
    assert second.targets == (6, 7)
    assert later.targets == (0, 1, 2, 3, 4, 5)


def test_two_that_come_together_have_parts_of_their_own() -> None:
    (first,) = _with_orders(A)
    _, second, third = _with_orders(first, B, C)
    assert not set(second.targets) & set(third.targets)
    assert not set(first.targets) & {*second.targets, *third.targets}
