# SPDX-License-Identifier: MIT
"""Strategy 2a: stage behind earlier arrivals; flush when they are done.

The rule is that of burst-buffer coordination, section III-A.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.staging import Situation
from penstock.staging.strategies.wait_and_block import coordinate
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


def test_the_first_to_arrive_writes_and_the_others_stage() -> None:
    assert staging(decide("2a", A, B)) == [False, True]
    assert staging(decide("2a", A, B, C)) == [False, True, True]


def test_the_order_of_arrival_counts_and_not_the_index() -> None:
    assert staging(decide("2a", C, B, A)) == [True, True, False]


def test_of_equal_arrivals_the_lower_index_writes() -> None:
    assert staging(decide("2a", A, replace(B, phase_began_s=0.0))) == [False, True]


def test_an_application_outside_its_phase_does_not_stage() -> None:
    assert staging(decide("2a", A, IDLE)) == [False, False]
    assert staging(decide("2a", IDLE, B, C)) == [False, False, True]


def test_an_application_behind_waits_even_while_its_buffer_is_full() -> None:
    assert draining(decide("2a", A, with_data(B, blocked=True))) == [False, False]


def test_data_of_the_first_to_arrive_are_drained() -> None:
    assert draining(decide("2a", with_data(A), with_data(B))) == [True, False]


def test_when_the_first_is_done_the_next_drains_and_writes() -> None:
    plan = decide("2a", ended(A), with_data(B), with_data(C))
    assert staging(plan) == [False, False, True]
    assert draining(plan) == [False, True, False]


def test_data_left_by_a_phase_wait_until_no_application_writes() -> None:
    assert draining(decide("2a", A, with_data(IDLE))) == [False, False]
    assert draining(decide("2a", ended(A), with_data(IDLE))) == [False, True]


def test_several_leftovers_drain_together_or_with_a_token_one_by_one() -> None:
    first, second = with_data(ended(A)), with_data(ended(B))
    assert draining(decide("2a", first, second)) == [True, True]
    assert draining(decide("2a:flush=token", first, second)) == [True, False]


def test_all_targets_serve_every_application() -> None:
    assert widths(decide("2a", A, B, C)) == [8, 8, 8]


def test_the_token_of_a_window_is_passed_on_after_the_window() -> None:
    applications = (with_data(ended(A)), with_data(ended(B)))
    plan = coordinate(Situation(10.0, 8, applications), "window", 2.5)
    assert (draining(plan), plan.wake_s) == ([True, False], 12.5)
