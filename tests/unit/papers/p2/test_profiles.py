# SPDX-License-Identifier: MIT
"""Figures 1, 2 and 10 of target allocation: profiles, their classes and claims."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p2.profiles import fig1, fig2, fig10
from penstock.papers.p2.study import GENERATED
from support.claim_flips import assert_all_claims, assert_flips

FIGURES = {figure.name: figure for figure in (fig1, fig2, fig10)}
CLASSES = {"ascent", "descent", "peak", "neutral"}
Change = Callable[[pl.DataFrame], pl.DataFrame]


@cache
def _rows(name: str) -> pl.DataFrame:
    rows = FIGURES[name].rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return rows


def _tables(rows: pl.DataFrame) -> Tables:
    return Tables(rows, pl.DataFrame())


def _same(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def _flat(column: str) -> Change:
    return lambda rows: rows.with_columns(pl.lit(1.0).alias(column))


#: Figure, claim, change for which it holds, change for which it does not.
FLIPS: list[tuple[Reproduction, str, Change, Change]] = [
    (
        fig1,
        "four-behaviours",
        _same,
        lambda rows: rows.filter(pl.col("class") != "neutral"),
    ),
    (
        fig2,
        "impact-depends-on-the-application",
        lambda rows: rows.filter(pl.col("class") != "neutral"),
        lambda rows: rows.filter(pl.col("class") == "ascent"),
    ),
    *((f, "the-number-matters", _same, _flat("bandwidth")) for f in (fig1, fig2)),
    (fig10, "curves-keep-their-class", _same, _flat("curve")),
    (fig10, "best-number-kept", _same, _flat("curve")),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig1, fig2, fig10], [flip[1] for flip in FLIPS])


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"),
    FLIPS,
    ids=[f"{flip[0].name}-{flip[1]}" for flip in FLIPS],
)
def test_a_claim_holds_and_fails(
    figure: Reproduction, name: str, good: Change, bad: Change
) -> None:
    rows = _rows(figure.name)
    assert_flips(figure, name, _tables(good(rows)), _tables(bad(rows)))


@pytest.mark.parametrize(("name", "count"), [("p2-fig1", 189), ("p2-fig2", 301)])
def test_every_profile_has_a_row_per_number_of_targets(name: str, count: int) -> None:
    rows = _rows(name)
    by_profile = rows.group_by("profile").len()
    assert by_profile.height == count
    assert by_profile["len"].unique().to_list() == [8]
    assert set(rows["class"]) == CLASSES


@pytest.mark.parametrize("name", FIGURES)
def test_profiles_are_normalised_and_centred(name: str) -> None:
    by_profile = (
        _rows(name)
        .group_by("profile")
        .agg(
            pl.max("normalised"),
            pl.col("centred").log().mean().alias("mean_log"),
            pl.col("curve").log().mean().alias("mean_log_curve"),
        )
    )
    assert (by_profile["normalised"] == 1).all()
    for column in ("mean_log", "mean_log_curve"):
        assert by_profile.filter(pl.col(column).abs() > 1e-9).is_empty()


def test_one_curve_stands_for_all_profiles_of_a_class() -> None:
    curve = pl.col("curve")
    ranges = (
        _rows("p2-fig10")
        .group_by("class", "targets")
        .agg((curve.max() / curve.min() - 1).alias("range"))
    )
    assert ranges.height == 4 * 8
    assert ranges.filter(pl.col("range") > 1e-9).is_empty()


@pytest.mark.parametrize("name", FIGURES)
def test_the_drawing_has_a_panel_per_class(name: str) -> None:
    drawn = FIGURES[name].draw(_tables(_rows(name)))
    assert isinstance(drawn, Figure)
    assert {axis.get_title().split(" ")[0] for axis in drawn.axes} == CLASSES
    generated = drawn.get_suptitle() == GENERATED
    assert generated == (name == "p2-fig2")
