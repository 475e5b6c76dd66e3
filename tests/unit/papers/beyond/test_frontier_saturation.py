# SPDX-License-Identifier: MIT
"""Saturated storage: policies below the bound, and claims that can hold and fail."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.papers import get_figure
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.policies import RECOMMENDED

FIGURE = get_figure("frontier-saturation")


@pytest.fixture(scope="module")
def tables() -> Tables:
    rows = FIGURE.rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


def test_the_table_holds_all_policies_and_the_bound(tables: Tables) -> None:
    assert set(tables.rows["of"]) == {*ALL_POLICIES, RECOMMENDED, "bound"}
    bound = tables.rows.filter(pl.col("of") == "bound")
    assert bound["min_yield"].is_sorted()
    assert bound["efficiency"].is_sorted(descending=True)


def test_claims_hold_and_can_fail(tables: Tables) -> None:
    lower = tables.rows.with_columns(pl.col("bound") - 0.5)
    for claim in FIGURE.claims:
        assert claim.check(tables).holds
        assert not claim.check(Tables(lower, pl.DataFrame())).holds


def test_the_figure_draws(tables: Tables) -> None:
    assert isinstance(FIGURE.draw(tables), Figure)
