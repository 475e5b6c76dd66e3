# SPDX-License-Identifier: MIT
"""Strategy ``controlled``: drains need no permission; the policy sets their rates."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("stage", "alone", "three"),
    [
        ("behind", [False, False], [False, True, True]),
        ("contended", [False, False], [True, True, True]),
        ("always", [True, False], [True, True, True]),
    ],
)
def test_which_applications_stage(
    stage: str, alone: list[bool], three: list[bool]
) -> None:
    assert staging(decide(f"controlled:stage={stage}", A, IDLE)) == alone
    assert staging(decide(f"controlled:stage={stage}", A, B, C)) == three


def test_by_default_the_applications_of_2a_stage() -> None:
    assert staging(decide("controlled", C, A, B)) == staging(decide("2a", C, A, B))


@pytest.mark.parametrize("stage", ["behind", "contended", "always"])
def test_no_application_stages_outside_its_phase(stage: str) -> None:
    name = f"controlled:stage={stage}"
    assert staging(decide(name, ended(A), ended(B))) == [False, False]


def test_every_buffer_may_drain_while_another_application_writes() -> None:
    plan = decide("controlled", A, with_data(B), with_data(C), with_data(IDLE))
    assert draining(plan)[1:] == [True, True, True]


def test_drains_are_in_the_background_unless_they_count_as_equal() -> None:
    assert decide("controlled", A, with_data(B)).drains_in_background
    equal = decide("controlled:drains=equal", A, with_data(B))
    assert not equal.drains_in_background
    assert equal.orders == decide("controlled", A, with_data(B)).orders


def test_all_targets_serve_every_application() -> None:
    assert widths(decide("controlled", A, B, IDLE)) == [8, 8, 8]
