# SPDX-License-Identifier: MIT
"""Strategy 1a: stage when another application arrives; flush when that one is done.

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
    widths,
    with_data,
)


def test_the_last_to_arrive_writes_and_the_others_stage() -> None:
    assert staging(decide("1a", A, B)) == [True, False]
    assert staging(decide("1a", A, B, C)) == [True, True, False]


def test_the_order_of_arrival_counts_and_not_the_index() -> None:
    assert staging(decide("1a", C, A, B)) == [False, True, True]


def test_of_equal_arrivals_the_higher_index_writes() -> None:
    assert staging(decide("1a", A, replace(B, phase_began_s=0.0))) == [True, False]


def test_an_application_that_is_alone_writes_through() -> None:
    plan = decide("1a", A, IDLE)
    assert staging(plan) == [False, False]
    assert widths(plan) == [8, 8]


def test_an_application_that_yielded_waits_even_while_its_buffer_is_full() -> None:
    assert draining(decide("1a", with_data(A, blocked=True), B)) == [False, False]


def test_when_the_last_is_done_the_one_before_drains_and_writes() -> None:
    plan = decide("1a", with_data(A), with_data(B), ended(C))
    assert staging(plan) == [True, False, False]
    assert draining(plan) == [False, True, False]


def test_data_left_by_a_phase_wait_until_no_application_writes() -> None:
    assert draining(decide("1a", A, with_data(IDLE))) == [False, False]
    assert draining(decide("1a", ended(A), with_data(IDLE))) == [False, True]


def test_the_plan_is_that_of_2a_with_the_arrivals_reversed() -> None:
    reversed_arrivals = [
        replace(application, phase_began_s=-application.phase_began_s)
        for application in (A, B, C)
    ]
    assert decide("1a", A, B, C).orders == decide("2a", *reversed_arrivals).orders
