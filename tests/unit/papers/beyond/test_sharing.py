# SPDX-License-Identifier: MIT
"""Sharing policies on many targets: the study, and claims that can hold and fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.placement_study import PlacementStudy
from penstock.experiments.reproduction import Scale
from penstock.papers.beyond.sharing import sharing
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    FAIR_SHARE,
    LOOK_AHEAD,
    PERIODIC,
    YIELD_BASED,
)
from penstock.papers.p2.study import BEST_BANDWIDTH, GNC, N_SYS, RANDOM, T_CPU
from support.apex_tables import claim_of

#: (allocation, placement, policy) -> values; None stands for any name.
Changes = Mapping[tuple[str | None, str | None, str | None], Mapping[str, float]]
SLOW = {"mean_io_slowdown": 1.5}
BETTER = {"min_yield": 0.6, "efficiency": 0.6, "mean_io_slowdown": 1.9}


def _study(scale: Scale) -> PlacementStudy:
    study = sharing.study(scale)
    assert isinstance(study, PlacementStudy)
    return study


def _problem(load: float, changes: Changes) -> list[dict[str, Any]]:
    """Return the rows of one problem: all alike, but for `changes`."""
    rows = []
    for contender in _study(Scale.SMOKE).contenders:
        row: dict[str, Any] = {
            **contender.labels(),
            "case": "io-nodes",
            "applications": 60,
            "minimum_load": load,
            "min_yield": 0.5,
            "efficiency": 0.5,
            "mean_io_slowdown": 2.0,
            "complete": True,
            "instance": 0,
        }
        names = (row["allocation"], row["placement"], row["policy"])
        for key, values in changes.items():
            if all(k in (None, name) for k, name in zip(key, names, strict=True)):
                row |= values
        rows.append(row)
    return rows


def _tables(*problems: tuple[float, Changes]) -> Tables:
    rows = [
        {**row, "point": number}
        for number, (load, changes) in enumerate(problems)
        for row in _problem(load, changes)
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return sharing.prepare(Tables(table, pl.DataFrame()))


def _min_yield(value: float) -> dict[str, float]:
    return {"min_yield": value}


#: Claim, problems (load, changes) for which it holds, problems for which it does not.
Problems = list[tuple[float, Changes]]
FLIPS: list[tuple[str, Problems, Problems]] = [
    (
        "yield-based-help-the-worst-off",
        [(0.4, {(None, None, p): _min_yield(0.6) for p in YIELD_BASED})],
        [(0.4, {(None, None, p): _min_yield(0.6) for p in YIELD_BASED[1:]})],
    ),
    (
        "no-free-lunch",
        [(0.4, {(None, None, LOOK_AHEAD): {**BETTER, "efficiency": 0.4}})],
        [(0.4, {(None, None, LOOK_AHEAD): BETTER})],
    ),
    (
        "placement-worth-less",
        [
            (
                0.4,
                {
                    (None, GNC, FAIR_SHARE): _min_yield(0.7),
                    (None, GNC, PERIODIC): _min_yield(0.6),
                },
            )
        ],
        [
            (
                0.4,
                {
                    (None, GNC, FAIR_SHARE): _min_yield(0.6),
                    (T_CPU, GNC, PERIODIC): _min_yield(0.7),
                },
            )
        ],
    ),
    (
        "placement-still-counts",
        [(0.4, {(None, GNC, None): SLOW})],
        [
            (
                0.4,
                {
                    (None, GNC, None): SLOW,
                    (None, GNC, "fcfs"): {"mean_io_slowdown": 2.1},
                },
            )
        ],
    ),
]


for _allocation in (N_SYS, T_CPU, BEST_BANDWIDTH):
    _changes: Changes = {(_allocation, RANDOM, PERIODIC): _min_yield(0.6)}
    FLIPS.append(
        (
            f"sharing-for-placement-{_allocation}",
            [(0.4, _changes), (1.0, _changes)],
            [(0.4, _changes), (1.0, {})],
        )
    )


def test_every_claim_is_tested() -> None:
    assert {flip[0] for flip in FLIPS} == {claim.name for claim in sharing.claims}


@pytest.mark.parametrize(("name", "good", "bad"), FLIPS, ids=[f[0] for f in FLIPS])
def test_a_claim_holds_and_fails(name: str, good: Problems, bad: Problems) -> None:
    check = claim_of(sharing, name).check
    held, failed = check(_tables(*good)), check(_tables(*bad))
    assert held.holds, held.numbers
    assert not failed.holds, failed.numbers


def test_all_policies_run_on_the_same_placements() -> None:
    study = _study(Scale.PAPER)
    assert study.objectives
    placements = {(c.allocation, c.placement) for c in study.contenders}
    assert len(study.contenders) == len(placements) * len(ALL_POLICIES)
    for pair in placements:
        policies = [
            c.policy for c in study.contenders if (c.allocation, c.placement) == pair
        ]
        assert policies == list(ALL_POLICIES)


def test_the_drawing_has_a_panel_per_objective_and_allocation() -> None:
    tables = _tables((0.4, {}), (1.0, {}))
    drawn = sharing.draw(tables)
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 3 * 3
    table = sharing.summary(tables)
    assert set(table["metric"]) == {"min_yield", "efficiency", "mean_io_slowdown"}
    assert set(table["allocation"]) == {N_SYS, T_CPU, BEST_BANDWIDTH}
