# SPDX-License-Identifier: MIT
"""Every policy on the examples of Table 2: the table, and claims both ways."""

from __future__ import annotations

import math

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.papers import get_figure
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.policies import RECOMMENDED

FIGURE = get_figure("frontier-table2")


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    table = FIGURE.rows(Scale.SMOKE)
    assert isinstance(table, pl.DataFrame)
    return table


def _ratio(rows: pl.DataFrame, policy: str, example: int, objective: str) -> float:
    return float(
        rows.filter(
            (pl.col("policy") == policy)
            & (pl.col("example") == example)
            & (pl.col("objective") == objective)
        )["ratio"].item()
    )


def test_every_policy_runs_on_every_example(rows: pl.DataFrame) -> None:
    assert set(rows["policy"]) > {*ALL_POLICIES, RECOMMENDED}
    assert rows.height == rows["policy"].n_unique() * 8
    assert set(rows["example"]) == {1, 2, 3, 4, 5, 6}


def test_the_table_holds_the_bounds_of_the_paper(rows: pl.DataFrame) -> None:
    assert _ratio(rows, "fair-share", 1, "min_yield") == pytest.approx(8, rel=0.01)
    assert math.isinf(_ratio(rows, "greedy-yield", 2, "min_yield"))
    assert _ratio(rows, "greedy-yield", 3, "efficiency") == pytest.approx(8, rel=0.01)
    assert _ratio(rows, "periodic-greedy-yield", 4, "min_yield") > 1.8
    assert _ratio(rows, "best-next-event", 6, "min_yield") > 3


@pytest.mark.parametrize("policy", ["soft-deadline", "earliest-deadline"])
def test_deadline_policies_do_not_starve_in_example_6(
    rows: pl.DataFrame, policy: str
) -> None:
    assert _ratio(rows, policy, 6, "min_yield") == pytest.approx(1, rel=0.01)


def test_the_claims_hold_and_can_fail(rows: pl.DataFrame) -> None:
    ours = pl.col("policy") == RECOMMENDED
    worse = rows.with_columns(
        ratio=pl.when(ours).then(3 * pl.col("ratio")).otherwise(pl.col("ratio"))
    )
    for claim in FIGURE.claims:
        assert claim.check(Tables(rows, pl.DataFrame())).holds
        assert not claim.check(Tables(worse, pl.DataFrame())).holds


def test_the_figure_draws(rows: pl.DataFrame) -> None:
    assert isinstance(FIGURE.draw(Tables(rows, pl.DataFrame())), Figure)
