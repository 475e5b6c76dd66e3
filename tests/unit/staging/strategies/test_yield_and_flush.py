# SPDX-License-Identifier: MIT
"""Strategy 1b: stage when another application arrives; flush when blocked.

The rule is that of burst-buffer coordination, section III-A.
"""

from __future__ import annotations

from dataclasses import replace

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


def test_the_last_to_arrive_writes_and_the_others_stage() -> None:
    assert staging(decide("1b", A, B, C)) == [True, True, False]
    assert staging(decide("1b", A, IDLE)) == [False, False]


def test_an_application_that_yielded_drains_only_if_it_is_blocked() -> None:
    assert draining(decide("1b", with_data(A), B)) == [False, False]
    assert draining(decide("1b", with_data(A, blocked=True), B)) == [True, False]


def test_an_application_that_flushes_goes_on_staging() -> None:
    assert staging(decide("1b", with_data(A, blocked=True), B)) == [True, False]


def test_a_flush_goes_on_until_the_buffer_is_empty() -> None:
    begun = replace(with_data(A), turn_began_s=8.0)
    assert draining(decide("1b", begun, B)) == [True, False]
    assert draining(decide("1b", replace(begun, staged_bytes=0.0), B)) == [False] * 2


def test_a_blocked_application_without_data_has_nothing_to_drain() -> None:
    assert draining(decide("1b", replace(A, is_blocked=True), B)) == [False, False]


def test_when_the_last_is_done_the_one_before_writes() -> None:
    plan = decide("1b", with_data(A), with_data(B), ended(C))
    assert staging(plan) == [True, False, False]
    assert draining(plan) == [False, True, False]


def test_one_blocked_application_at_a_time_has_the_token() -> None:
    blocked = [with_data(application, blocked=True) for application in (A, B)]
    assert draining(decide("1b:flush=token", *blocked, C)) == [True, False, False]
    second = [replace(blocked[0], turn_ended_s=9.0), blocked[1]]
    assert draining(decide("1b:flush=token", *second, C)) == [False, True, False]
