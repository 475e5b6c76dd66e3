# SPDX-License-Identifier: MIT
"""The frontier at the horizon of the paper: study, table, drawing and claim."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study
from penstock.papers.beyond.frontier_horizon import horizon
from penstock.papers.p1.policies import LOOK_AHEAD
from penstock.policies import RECOMMENDED

PRESSURES = (0.5, 0.8, 1.0, 1.1)
POLICIES = ("greedy-yield", LOOK_AHEAD, "earliest-deadline", RECOMMENDED)


def _tables(gain: float, efficiency: float, pressures: tuple[float, ...]) -> Tables:
    """Return two instances per W; the default differs by the gains at some W."""
    rows = [
        {
            "aimed_pressure": w,
            "instance": instance,
            "policy": policy,
            "min_yield": 0.9 + gain * (policy == RECOMMENDED and w in pressures),
            "efficiency": 0.9 + efficiency * (policy == RECOMMENDED and w in pressures),
            "bound": 0.95 + 0.01 * instance,
        }
        for w in PRESSURES
        for policy in POLICIES
        for instance in range(2)
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


def _verdict(tables: Tables) -> Verdict:
    (claim,) = horizon.claims
    return claim.check(tables)


def test_the_study_has_the_horizon_of_the_paper_and_an_unused_seed() -> None:
    study = horizon.study(Scale.PAPER)
    assert isinstance(study, Study)
    assert study.seed == 2001
    assert study.bounded
    assert {dict(p.settings)["horizon"] for p in study.points} == {2_000_000.0}


def test_the_claim_holds_if_both_gains_are_positive_everywhere() -> None:
    verdict = _verdict(_tables(0.01, 0.02, PRESSURES))
    assert verdict.holds
    assert verdict.numbers["W = 0.8"] == pytest.approx(
        {"MinYield gain": 0.01, "Efficiency gain": 0.02}
    )


def test_a_miss_at_one_pressure_names_the_others() -> None:
    verdict = _verdict(_tables(-0.01, 0.02, (1.1,)))
    assert verdict.depends_on == "W"
    assert verdict.holds_at == ("0.5", "0.8", "1")


def test_the_claim_fails_if_efficiency_is_lower_everywhere() -> None:
    verdict = _verdict(_tables(0.01, -0.02, PRESSURES))
    assert not verdict.holds
    assert not verdict.depends_on


def test_the_table_holds_the_means() -> None:
    table = horizon.summary(_tables(0.01, 0.0, (0.8,)))
    assert table.height == len(PRESSURES) * len(POLICIES)
    row = table.row(
        by_predicate=(pl.col("aimed_pressure") == 0.8)
        & (pl.col("policy") == RECOMMENDED),
        named=True,
    )
    assert row["min_yield"] == pytest.approx(0.91)
    assert row["bound"] == pytest.approx(0.955)
    assert row["instances"] == 2


def test_the_drawing_has_a_panel_per_objective() -> None:
    drawn = horizon.draw(_tables(0.0, 0.0, ()))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 2
