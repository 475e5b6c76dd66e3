# SPDX-License-Identifier: MIT
"""The rule that strategies 1a, 1b, 2a and 2b share: one writes, the others stage."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import inf

import pytest

from penstock.staging import ApplicationStatus, Situation, StagingPlan
from penstock.staging.precedence import orders_for, stage_behind, wants_to_drain
from support.staging_plans import IDLE, A, B, C, draining, staging, with_data


def situation(*applications: ApplicationStatus) -> Situation:
    return Situation(10.0, 4, applications)


def plan(
    *applications: ApplicationStatus, precedence: list[int], blocks: bool = True
) -> StagingPlan:
    return stage_behind(
        situation(*applications), precedence, blocks=blocks, flush="all", window=1.0
    )


@pytest.mark.parametrize("precedence", list(permutations(range(3))))
def test_only_the_first_in_precedence_does_not_stage(precedence: tuple[int]) -> None:
    answer = plan(A, B, C, precedence=list(precedence))
    assert staging(answer) == [i != precedence[0] for i in range(3)]


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("blocks", [True, False])
def test_blocked_applications_drain_unless_the_strategy_blocks(
    first: int, blocks: bool
) -> None:
    full = [with_data(application, blocked=True) for application in (A, B, C)]
    order = sorted(range(3), key=lambda i: i != first)
    answer = plan(*full, precedence=order, blocks=blocks)
    assert draining(answer) == [i == first or not blocks for i in range(3)]


def test_without_writers_nothing_is_staged_and_leftovers_drain() -> None:
    answer = plan(IDLE, with_data(IDLE), precedence=[])
    assert staging(answer) == [False, False]
    assert draining(answer) == [False, True]


def test_an_empty_buffer_is_never_drained() -> None:
    now = situation(replace(A, is_blocked=True), replace(B, turn_began_s=8.0), IDLE)
    for ahead in ([], [0], [0, 1, 2]):
        assert wants_to_drain(now, ahead, blocks=False) == []


@pytest.mark.parametrize(
    ("application", "ahead", "blocks", "drains"),
    [
        (with_data(A), [0], True, True),
        (with_data(A), [1], True, False),
        (with_data(A), [1], False, False),
        (with_data(A, blocked=True), [1], False, True),
        (with_data(A, blocked=True), [1], True, False),
        (replace(with_data(A), turn_began_s=9.0), [1], False, True),
        (with_data(IDLE), [], True, True),
        (with_data(IDLE), [1], True, False),
        (with_data(IDLE, blocked=True), [1], False, False),
    ],
)
def test_which_buffers_are_to_be_drained(
    application: ApplicationStatus, ahead: list[int], blocks: bool, drains: bool
) -> None:
    now = situation(application, B)
    assert wants_to_drain(now, ahead, blocks=blocks) == [0] * drains


def test_orders_name_all_targets_and_no_rate() -> None:
    first, second = orders_for(situation(A, B), staging=[1], draining=[0])
    assert first.targets == second.targets == (0, 1, 2, 3)
    assert (first.stage, first.drain) == (False, True)
    assert (second.stage, second.drain) == (True, False)
    assert first.drain_bytes_per_s == second.drain_bytes_per_s == inf
