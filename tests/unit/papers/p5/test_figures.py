# SPDX-License-Identifier: MIT
"""Figures of papers/5: they draw, they say what the paper says, claims can fail."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, judge
from penstock.experiments.output.plots import save_figure
from penstock.experiments.reproduction import Scale
from penstock.papers import FIGURES, get_figure
from penstock.papers.p5.experiment import OURS

NAMES = [name for name in FIGURES if name.startswith("p5-")]
FACTS = {"version": "0", "command": "test"}
#: Claims of the paper that do not hold in our model, each with a note.
FAIL = {
    "p5-fig5": {"tight-bound-favoured-as-in-the-paper", "first-200-s-within-300-ms"},
}


@cache
def tables(name: str) -> Tables:
    rows = get_figure(name).study(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


def failed(name: str, rows: pl.DataFrame) -> set[str]:
    judged = judge(get_figure(name).claims, Tables(rows, pl.DataFrame()))
    return {claim["name"] for claim in judged if not claim["holds"]}


def test_every_figure_of_the_paper_is_there() -> None:
    assert NAMES == ["p5-fig1", "p5-fig3", "p5-fig4", "p5-fig5"]


@pytest.mark.parametrize("name", NAMES)
def test_they_draw(name: str, tmp_path: Path) -> None:
    drawn = get_figure(name).draw(tables(name))
    assert isinstance(drawn, Figure)
    save_figure(drawn, str(tmp_path / "figure.png"), FACTS)
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", NAMES)
def test_what_holds_and_what_does_not(name: str) -> None:
    judged = judge(get_figure(name).claims, tables(name))
    assert failed(name, tables(name).rows) == FAIL.get(name, set())
    for claim in judged:
        assert claim["numbers"]
        assert claim["holds"] or claim["note"], claim["name"]


def test_claims_on_response_times_can_fail() -> None:
    rows = tables("p5-fig5").rows
    slow = rows.with_columns(pl.lit(0.35).alias("p95"))
    assert failed("p5-fig5", slow) >= {
        "bound-met-when-not-overloaded",
        "tight-bound-favoured",
        "more-beyond-300-ms-later",
    }
    lazy = rows.with_columns(
        pl.when(pl.col("scheduler") == "fifo")
        .then(2 * pl.col("moved"))
        .otherwise(pl.col("moved"))
        .alias("moved")
    )
    assert "work-conserving" in failed("p5-fig5", lazy)


def test_claims_on_the_depth_can_fail() -> None:
    rows = tables("p5-fig4").rows
    deep = rows.with_columns(
        pl.when(pl.col("time") % 100 < 45).then(None).otherwise(32.0).alias("depth")
    )
    assert failed("p5-fig4", deep) >= {
        "small-to-infinite",
        "about-15-in-steady-state",
        "high-more-often-later",
    }
    late = rows.with_columns(
        pl.when(pl.col("time") % 100 < 80).then(None).otherwise(15.0).alias("depth")
    )
    assert "infinite-to-small" in failed("p5-fig4", late)


@pytest.mark.parametrize("depth", [8.0, None])
def test_a_depth_that_never_changes_fails_the_claims(depth: float | None) -> None:
    value = pl.lit(depth, dtype=pl.Float64).alias("depth")
    rows = tables("p5-fig4").rows.with_columns(value)
    found = failed("p5-fig4", rows)
    assert found >= {"small-to-infinite", "infinite-to-small", "high-more-often-later"}
    assert "about-15-in-steady-state" in found


@pytest.mark.parametrize("name", ["p5-fig3", "p5-fig4"])
def test_without_the_scheduler_of_the_paper_its_claims_fail(name: str) -> None:
    rows = tables(name).rows.filter(pl.col("scheduler") == OURS)
    about_paper = {c.name for c in get_figure(name).claims if "papers/5" in c.source}
    beyond = {c.name for c in get_figure(name).claims if "beyond" in c.source}
    assert failed(name, rows) >= about_paper - beyond


def test_claims_on_rates_can_fail() -> None:
    rows = tables("p5-fig3").rows
    halved = rows.with_columns(
        pl.col("issued") / 2,
        pl.when(pl.col("application") == "App1")
        .then(1.6 * pl.col("moved"))
        .otherwise(pl.col("moved"))
        .alias("moved"),
    )
    assert failed("p5-fig3", halved) == {c.name for c in get_figure("p5-fig3").claims}


def test_claims_on_interference_can_fail() -> None:
    rows = tables("p5-fig1").rows
    equal = rows.with_columns(pl.lit(0.9).alias("over_alone"))
    assert failed("p5-fig1", equal) == {c.name for c in get_figure("p5-fig1").claims}
