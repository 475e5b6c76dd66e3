# SPDX-License-Identifier: MIT
"""Strategy 2b: stage behind earlier arrivals; flush when blocked.

The rule is that of burst-buffer coordination, section III-A.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

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
    with_data,
)


@pytest.mark.parametrize("applications", [(A,), (A, B), (C, A, B), (IDLE, B, C)])
def test_the_same_applications_stage_as_with_2a(
    applications: tuple[ApplicationStatus, ...],
) -> None:
    assert staging(decide("2b", *applications)) == staging(decide("2a", *applications))


def test_a_blocked_application_drains_while_the_first_writes() -> None:
    plan = decide("2b", A, with_data(B, blocked=True), with_data(C))
    assert staging(plan) == [False, True, True]
    assert draining(plan) == [False, True, False]


def test_all_blocked_applications_drain_at_once() -> None:
    blocked = [with_data(application, blocked=True) for application in (A, B, C)]
    assert draining(decide("2b", *blocked)) == [True, True, True]


def test_an_application_that_is_not_blocked_waits() -> None:
    assert draining(decide("2b", with_data(A), with_data(B))) == [True, False]


def test_a_flush_goes_on_until_the_buffer_is_empty() -> None:
    begun = replace(with_data(B), turn_began_s=8.0)
    assert draining(decide("2b", A, begun)) == [False, True]
    emptied = replace(begun, staged_bytes=0.0)
    assert draining(decide("2b", A, emptied)) == [False, False]


def test_data_left_by_a_phase_are_not_flushed_although_a_turn_had_begun() -> None:
    left = replace(with_data(IDLE), turn_began_s=8.0)
    assert draining(decide("2b", A, left)) == [False, False]
    assert draining(decide("2b", ended(A), left)) == [False, True]


def test_the_operator_decides_which_blocked_application_drains() -> None:
    b = with_data(B, blocked=True)
    c = replace(with_data(C, blocked=True), priority=1.0)
    assert draining(decide("2b:flush=priority", A, b, c)) == [False, False, True]
