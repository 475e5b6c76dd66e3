# SPDX-License-Identifier: MIT
"""Figure 10 of bandwidth sharing (run times): each claim can hold and fail."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.experiments.claims import Tables
from penstock.papers.p1.apex.times import fig10
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    BEST_NEXT_EVENT,
    LOOK_AHEAD,
    PERIODIC,
)
from support.apex_tables import (
    Flip,
    assert_flips,
    both_traces,
    claim_of,
    tables_of,
    window,
)

#: Claim, seconds of a run for which it holds, seconds for which it does not.
TIMES: list[tuple[str, Mapping[str, float], Mapping[str, float]]] = [
    (
        "best-next-event-slowest",
        {BEST_NEXT_EVENT: 0.01},
        {BEST_NEXT_EVENT: 0.01, "fcfs": 0.02},
    ),
    ("best-next-event-by-far", {BEST_NEXT_EVENT: 0.01}, {BEST_NEXT_EVENT: 0.009}),
    ("under-a-minute", {BEST_NEXT_EVENT: 59.0}, {BEST_NEXT_EVENT: 61.0}),
    ("best-next-event-practical", {BEST_NEXT_EVENT: 71.0}, {BEST_NEXT_EVENT: 73.0}),
    ("look-ahead-second", {LOOK_AHEAD: 0.002}, {LOOK_AHEAD: 0.0009}),
    ("others-faster", {LOOK_AHEAD: 0.011}, {LOOK_AHEAD: 0.009}),
    ("periodic-short", {PERIODIC: 0.009}, {PERIODIC: 0.011}),
    ("look-ahead-costlier", {LOOK_AHEAD: 0.002}, {LOOK_AHEAD: 0.002, PERIODIC: 0.003}),
]


def test_every_claim_is_tested() -> None:
    tested = {name for name, _, _ in TIMES} | {"periodic-twice"}
    assert tested == {claim.name for claim in fig10.claims}


@pytest.mark.parametrize(("name", "good", "bad"), TIMES, ids=[t[0] for t in TIMES])
def test_a_claim_on_times_holds_and_fails(
    name: str, good: Mapping[str, float], bad: Mapping[str, float]
) -> None:
    check, windows = claim_of(fig10, name).check, both_traces({}, 1.0)
    assert check(fig10.prepare(tables_of(*windows, seconds=good))).holds
    assert not check(fig10.prepare(tables_of(*windows, seconds=bad))).holds


def test_the_number_of_decisions_is_compared() -> None:
    decisions = dict.fromkeys(ALL_POLICIES, 10)
    assert_flips(
        fig10,
        Flip(
            "periodic-twice",
            both_traces({}, 1.0, decisions={**decisions, PERIODIC: 20}),
            both_traces({}, 1.0, decisions={**decisions, PERIODIC: 30}),
        ),
    )


def test_times_are_joined_by_window_and_policy() -> None:
    tables = tables_of(window({}, 0.6), window({}, 0.7), seconds={"fcfs": 0.25})
    rows = fig10.prepare(Tables(tables.rows, tables.times.reverse())).rows
    assert rows["pressure"].to_list() == [0.6, 0.7]
    assert rows["seconds fcfs"].to_list() == [0.25, 0.25]
    assert rows["seconds set-10"].to_list() == [1e-3, 1e-3]
