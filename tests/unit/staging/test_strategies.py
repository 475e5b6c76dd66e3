# SPDX-License-Identifier: MIT
"""The plans of all strategies, for two applications and for more."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.errors import InputError
from penstock.staging import (
    STRATEGIES,
    ApplicationStatus,
    Situation,
    StagingPlan,
    get_strategy,
)

A = ApplicationStatus("A", phase_began_s=0.0, phase_bytes=48.0, processes=4)
B = ApplicationStatus("B", phase_began_s=5.0, phase_bytes=16.0, processes=4)
C = ApplicationStatus("C", phase_began_s=9.0, phase_bytes=16.0, processes=4)
IDLE = ApplicationStatus("idle", phase_bytes=16.0, processes=4)


def plan(
    name: str, *applications: ApplicationStatus, now: float = 10.0, targets: int = 8
) -> StagingPlan:
    return get_strategy(name).decide(Situation(now, targets, applications))


def stages(answer: StagingPlan) -> list[bool]:
    return [order.stage for order in answer.orders]


def drains(answer: StagingPlan) -> list[bool]:
    return [order.drain for order in answer.orders]


def widths(answer: StagingPlan) -> list[int]:
    return [len(order.targets) for order in answer.orders]


def full(application: ApplicationStatus, **changes: object) -> ApplicationStatus:
    return replace(application, staged_bytes=10.0, **changes)  # type: ignore[arg-type]


# --- Who stages -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", [False, False, False]),
        ("1a", [True, True, False]),
        ("1b", [True, True, False]),
        ("2a", [False, True, True]),
        ("2b", [False, True, True]),
        ("3a", [False, False, False]),
        ("3b", [False, False, False]),
        ("combined", [False, False, False]),
        ("combined:least=4", [False, False, True]),
        ("combined:least=8", [False, True, True]),
        ("controlled", [False, True, True]),
        ("controlled:stage=contended", [True, True, True]),
    ],
)
def test_who_stages_of_three(name: str, expected: list[bool]) -> None:
    assert stages(plan(name, A, B, C)) == expected


@pytest.mark.parametrize("name", STRATEGIES)
def test_who_is_alone_writes_through(name: str) -> None:
    answer = plan(name, A, IDLE)
    assert stages(answer) == [False, False]
    if name != "3a":
        assert widths(answer)[0] == 8


def test_always_means_always() -> None:
    assert stages(plan("controlled:stage=always", A, IDLE)) == [True, False]


def test_equal_arrivals_go_by_index() -> None:
    same = replace(B, phase_began_s=0.0)
    assert stages(plan("2a", A, same)) == [False, True]
    assert stages(plan("1a", A, same)) == [True, False]


# --- Who drains -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1a", "2a"])
def test_a_strategy_that_blocks_lets_only_the_first_drain(name: str) -> None:
    answer = plan(name, full(A, is_blocked=True), full(B, is_blocked=True))
    assert drains(answer) == [not staging for staging in stages(answer)]


@pytest.mark.parametrize("name", ["1b", "2b"])
def test_a_strategy_that_flushes_lets_the_blocked_drain(name: str) -> None:
    assert drains(plan(name, full(A, is_blocked=True), full(B, is_blocked=True))) == [
        True,
        True,
    ]
    behind = plan(name, full(A), full(B))
    assert drains(behind) == [not staging for staging in stages(behind)]


def test_a_flush_goes_on_until_the_buffer_is_empty() -> None:
    begun = full(B, turn_began_s=8.0)
    assert drains(plan("2b", A, begun)) == [False, True]
    assert drains(plan("2b", A, replace(begun, staged_bytes=0.0))) == [False, False]


def test_what_a_phase_left_behind_waits_until_nobody_writes() -> None:
    left = full(IDLE)
    assert drains(plan("2b", A, left)) == [False, False]
    assert drains(plan("2a", replace(A, phase_began_s=inf), left)) == [False, True]


def test_when_the_first_is_done_the_next_goes_on() -> None:
    answer = plan("2a", replace(A, phase_began_s=inf), full(B), full(C))
    assert stages(answer) == [False, False, True]
    assert drains(answer) == [False, True, False]


def test_drains_in_the_background_need_no_permission() -> None:
    answer = plan("controlled", A, full(B), full(C))
    assert drains(answer)[1:] == [True, True]
    assert answer.drains_in_background
    assert not plan("controlled:drains=equal", A, full(B)).drains_in_background


# --- Partitions -------------------------------------------------------------------


def test_the_example_of_section_iii_b() -> None:
    """48 MB and 16 MB per process: 6 and 2 of 8 servers."""
    for name in ("3a", "3b"):
        orders = plan(name, A, B).orders
        assert [o.targets for o in orders] == [(0, 1, 2, 3, 4, 5), (6, 7)]
    assert widths(plan("3b:by=processes", A, B)) == [4, 4]


def test_a_static_partition_does_not_change_and_a_dynamic_one_does() -> None:
    gone = replace(A, phase_began_s=inf)
    assert widths(plan("3a", gone, B)) == [6, 2]
    # B has all of it; A is shown what it would have if it came back.
    assert widths(plan("3b", gone, B)) == [6, 8]
    nobody = replace(B, phase_began_s=inf)
    assert widths(plan("3b", gone, nobody)) == [8, 8]


def test_the_parts_of_figure_14() -> None:
    same = [replace(x, phase_bytes=1.0) for x in (A, B, C)]
    assert widths(plan("3b:split=halve", *same)) == [4, 2, 2]
    assert widths(plan("3b", *same)) == [3, 3, 2]


@pytest.mark.parametrize("name", ["3a", "3b"])
def test_more_applications_than_targets(name: str) -> None:
    with pytest.raises(
        InputError, match=r"3 applications cannot .*use the strategy combined"
    ):
        plan(name, A, B, C, targets=2)


def test_halving_what_cannot_be_halved() -> None:
    with pytest.raises(InputError, match="cannot be halved"):
        plan("3b:split=halve", A, B, C, targets=3)


def test_the_combination_serves_more_applications_than_targets() -> None:
    answer = plan("combined", A, full(B), full(C), targets=2)
    assert stages(answer) == [False, False, True]
    assert widths(answer)[:2] == [1, 1]
    assert drains(answer) == [False, True, False]


def test_unknown_volumes_are_taken_as_equal() -> None:
    unknown = [replace(x, phase_bytes=0.0) for x in (A, B)]
    assert widths(plan("3b", *unknown)) == [4, 4]
