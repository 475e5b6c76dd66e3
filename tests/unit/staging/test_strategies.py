# SPDX-License-Identifier: MIT
"""What every strategy of papers/4 answers, for two applications and for more."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.staging import (
    STRATEGIES,
    ApplicationStatus,
    Situation,
    StagingPlan,
    get_strategy,
)
from penstock.staging.partition import halved, parts, proportional
from penstock.staging.strategy import Strategy

A = ApplicationStatus("A", phase_began_s=0.0, phase_bytes=48.0, processes=4)
B = ApplicationStatus("B", phase_began_s=5.0, phase_bytes=16.0, processes=4)
C = ApplicationStatus("C", phase_began_s=9.0, phase_bytes=16.0, processes=4)
IDLE = ApplicationStatus("idle", phase_bytes=16.0, processes=4)


def plan(
    name: str, *standings: ApplicationStatus, now: float = 10.0, targets: int = 8
) -> StagingPlan:
    return get_strategy(name).decide(Situation(now, targets, standings))


def stages(it: StagingPlan) -> list[bool]:
    return [order.stage for order in it.orders]


def drains(it: StagingPlan) -> list[bool]:
    return [order.drain for order in it.orders]


def widths(it: StagingPlan) -> list[int]:
    return [len(order.targets) for order in it.orders]


def full(standing: ApplicationStatus, **changes: object) -> ApplicationStatus:
    return replace(standing, staged_bytes=10.0, **changes)  # type: ignore[arg-type]


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
    it = plan(name, A, IDLE)
    assert stages(it) == [False, False]
    if name != "3a":
        assert widths(it)[0] == 8


def test_always_means_always() -> None:
    assert stages(plan("controlled:stage=always", A, IDLE)) == [True, False]


def test_equal_arrivals_go_by_index() -> None:
    same = replace(B, phase_began_s=0.0)
    assert stages(plan("2a", A, same)) == [False, True]
    assert stages(plan("1a", A, same)) == [True, False]


# --- Who drains -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1a", "2a"])
def test_a_strategy_that_blocks_lets_only_the_first_drain(name: str) -> None:
    it = plan(name, full(A, is_blocked=True), full(B, is_blocked=True))
    assert drains(it) == [not staging for staging in stages(it)]


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
    it = plan("2a", replace(A, phase_began_s=inf), full(B), full(C))
    assert stages(it) == [False, False, True]
    assert drains(it) == [False, True, False]


def test_drains_in_the_background_need_no_permission() -> None:
    it = plan("controlled", A, full(B), full(C))
    assert drains(it)[1:] == [True, True]
    assert it.drains_in_background
    assert not plan("controlled:drains=equal", A, full(B)).drains_in_background


# --- Coordinated flushes ----------------------------------------------------------


def test_the_token_stays_until_the_buffer_is_empty() -> None:
    b, c = full(B, is_blocked=True, turn_began_s=1.0), full(C, is_blocked=True)
    assert drains(plan("2b:flush=token", A, b, c, now=1e6)) == [False, True, False]
    emptied = replace(b, staged_bytes=0.0)
    assert drains(plan("2b:flush=token", A, emptied, c)) == [False, False, True]


def test_the_token_goes_to_who_was_without_it_longest() -> None:
    b, c = (
        full(B, is_blocked=True, turn_ended_s=9.0),
        full(C, is_blocked=True, turn_ended_s=7.0),
    )
    assert drains(plan("2b:flush=token", A, b, c)) == [False, False, True]
    never = replace(b, turn_ended_s=-inf)
    assert drains(plan("2b:flush=token", A, never, c)) == [False, True, False]


def test_a_window_is_passed_on_in_time() -> None:
    b, c = full(B, is_blocked=True, turn_began_s=8.0), full(C, is_blocked=True)
    name = "2b:flush=window,window=3"
    during = plan(name, A, b, c, now=10.0)
    assert (drains(during), during.wake_s) == ([False, True, False], 11.0)
    after = plan(name, A, b, c, now=11.0)
    assert (drains(after), after.wake_s) == ([False, False, True], 14.0)


def test_a_window_that_nobody_else_wants_goes_on() -> None:
    b = full(B, is_blocked=True, turn_began_s=8.0)
    alone = plan("2b:flush=window,window=3", A, b, now=50.0)
    assert (drains(alone), alone.wake_s) == ([False, True], inf)


def test_priority_goes_first_at_any_moment() -> None:
    b = full(B, is_blocked=True, turn_began_s=1.0)
    c = full(C, is_blocked=True, priority=2.0)
    assert drains(plan("2b:flush=priority", A, b, c)) == [False, False, True]
    equal = replace(c, priority=0.0)
    assert drains(plan("2b:flush=priority", A, b, equal)) == [False, True, False]


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
    it = plan("combined", A, full(B), full(C), targets=2)
    assert stages(it) == [False, False, True]
    assert widths(it)[:2] == [1, 1]
    assert drains(it) == [False, True, False]


def test_unknown_volumes_are_taken_as_equal() -> None:
    unknown = [replace(x, phase_bytes=0.0) for x in (A, B)]
    assert widths(plan("3b", *unknown)) == [4, 4]


def test_parts_of_several_sizes() -> None:
    assert proportional([1.0, 1.0, 1.0], 8) == [3, 3, 2]
    assert proportional([1e9, 1.0, 1.0], 4) == [2, 1, 1]
    assert proportional([0.0, 1.0], 4) == [1, 3]
    assert halved(1, 5) == [5]
    assert halved(3, 8) == [4, 2, 2]
    assert parts([2, 1]) == [(0, 1), (2,)]


# --- Limits (section V-D) ---------------------------------------------------------

PACED = replace(
    B,
    processes=256,
    mean_request_bytes=256.0,
    mean_pause_s=0.75,
    bytes_per_s_alone=170.0,
)


def warnings(name: str, *standings: ApplicationStatus) -> list[str]:
    strategy = get_strategy(name)
    situation = Situation(10.0, 8, standings)
    return strategy.warnings(situation, strategy.decide(situation))


def test_flushing_at_once_what_is_paced_is_warned_of() -> None:
    (said,) = warnings("2a", A, PACED)
    assert "strategy 2a: B: 256 processes" in said
    assert "pauses of 0.75 s (33% of the time)" in said


@pytest.mark.parametrize(
    "harmless",
    [
        replace(PACED, mean_pause_s=0.0),
        replace(PACED, mean_pause_s=0.1),
        replace(PACED, processes=1),
        replace(PACED, mean_request_bytes=0.0),
    ],
)
def test_nothing_to_warn_of(harmless: ApplicationStatus) -> None:
    assert warnings("2a", A, harmless) == []


def test_who_writes_through_is_not_warned_of() -> None:
    assert warnings("none", A, PACED) == []
    assert warnings("1a", A, PACED) == []


# --- Names and mistakes -----------------------------------------------------------


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_strategy("2c")
    for name in STRATEGIES:
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2a:flush=ticket", "unknown value 'ticket'"),
        ("2a:window=0", "out of range"),
        ("2a:tempo=1", "unknown parameter 'tempo'"),
        ("3a:by=colour", "unknown value 'colour'"),
        ("combined:least=0.5", "not a whole number"),
        ("none:flush=all", "unknown parameter 'flush'"),
    ],
)
def test_bad_parameters(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        get_strategy(text)


def test_labels_show_what_is_not_default() -> None:
    assert get_strategy("2b:window=2,flush=window").label == "2b:flush=window,window=2"
    assert get_strategy("2b:flush=all").label == "2b"


def _failing(_situation: Situation) -> StagingPlan:
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "no order for every application"),
        (StagingPlan([]), "no order for every application"),
        (replace(plan("none", A), wake_s=10.0), "not after now"),
    ],
)
def test_bad_answers_are_the_strategys_fault(answer: object, said: str) -> None:
    strategy = Strategy("mine", "mine", lambda _situation: answer, {})
    with pytest.raises(PolicyError, match=f"strategy mine: .*{said}"):
        strategy.decide(Situation(10.0, 8, (A,)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"targets": ()}, "not different targets"),
        ({"targets": (0, 0)}, "not different targets"),
        ({"targets": (8,)}, "not different targets of 0 to 7"),
        ({"drain_bytes_per_s": 0.0}, "may drain at 0.0"),
    ],
)
def test_bad_orders(change: dict[str, object], said: str) -> None:
    (order,) = plan("none", A).orders
    answer = StagingPlan([replace(order, **change)])  # type: ignore[arg-type]
    strategy = Strategy("mine", "mine", lambda _situation: answer, {})
    with pytest.raises(PolicyError, match=said):
        strategy.decide(Situation(10.0, 8, (A,)))


def test_a_strategy_that_fails_says_why() -> None:
    with pytest.raises(PolicyError, match="strategy mine failed: ValueError: no idea"):
        Strategy("mine", "mine", _failing, {}).decide(Situation(0.0, 1, (A,)))
