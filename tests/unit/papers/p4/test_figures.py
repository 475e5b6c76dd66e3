# SPDX-License-Identifier: MIT
"""Figures of papers/4: they draw, they say what the paper says, claims can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.errors import InputError
from penstock.experiments.claims import Tables, judge
from penstock.experiments.output.plots import save_figure
from penstock.experiments.reproduction import Scale
from penstock.papers import FIGURES, get_figure
from penstock.papers.p4.study import (
    ALONE_S,
    SERVERS,
    alone_time,
    group,
    one_of,
    storage,
)

NAMES = [name for name in FIGURES if name.startswith("p4-")]
FACTS = {"version": "0", "command": "test"}
#: Claims of the paper that do not hold in our model, each with a note.
FAIL = {
    "p4-fig5": {"staging-range", "staging-beats-interference"},
    "p4-fig6": {"kept-around-1.5", "lower-than-without", "newcomer-around-1.2"},
    "p4-fig8": {
        *("first-around-1.2", "second-at-once", "second-falls-later-than-2a"),
    },
    "p4-fig9": {"up-to-40-per-cent"},
    "p4-fig10": {"second-is-stable"},
    "p4-fig13": {"four-instances"},
    "p4-fig15": {"buffering-helps-without-delays", "buffering-hurts-with-delays"},
}


@cache
def tables(name: str) -> Tables:
    rows = get_figure(name).study(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


def verdicts(name: str, rows: pl.DataFrame) -> dict[str, bool]:
    judged = judge(get_figure(name).claims, Tables(rows, pl.DataFrame()))
    return {claim["name"]: claim["holds"] for claim in judged}


def test_every_figure_of_the_paper_is_there() -> None:
    expected = [*(f"p4-fig{n}" for n in range(4, 17)), "p4-drains"]
    assert expected == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_they_draw(name: str, tmp_path: Path) -> None:
    figure = get_figure(name)
    drawn = figure.draw(tables(name))
    assert isinstance(drawn, Figure)
    save_figure(drawn, str(tmp_path / "figure.png"), FACTS)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert not figure.summary(tables(name)).is_empty()


@pytest.mark.parametrize("name", NAMES)
def test_what_holds_and_what_does_not(name: str) -> None:
    judged = judge(get_figure(name).claims, tables(name))
    failed = {claim["name"] for claim in judged if not claim["holds"]}
    assert failed == FAIL.get(name, set())
    for claim in judged:
        assert claim["numbers"]
        assert claim["holds"] or claim["note"], claim["name"]


def _changed(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield tables with wrong numbers, of all rows or of some."""
    keys = ("application", "strategy", "case", "instances", "delay", "partner")
    where = [pl.lit(value=True)]
    for key in keys:
        if key in rows.columns:
            where += [pl.col(key) == value for value in rows[key].unique()]
    if "offset" in rows.columns:
        where += [pl.col("offset") >= 30, pl.col("offset") < 30]
    for column in ("factor", "rate", "io_time", "end", "duration"):
        if column not in rows.columns:
            continue
        value = pl.col(column)
        for some in where:
            for new in (
                *(value * factor for factor in (0.1, 0.5, 0.85, 0.9, 1.1, 1.25, 10.0)),
                *(pl.lit(constant) for constant in (1.0, 1.2, 1.5)),
            ):
                yield rows.with_columns(
                    pl.when(some).then(new).otherwise(value).alias(column)
                )


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_can_hold_and_can_fail(name: str) -> None:
    open_claims = {
        claim: {holds} for claim, holds in verdicts(name, tables(name).rows).items()
    }
    for rows in _changed(tables(name).rows):
        for claim, holds in verdicts(name, rows).items():
            open_claims[claim].add(holds)
        if all(len(seen) == 2 for seen in open_claims.values()):
            return
    assert {claim for claim, seen in open_claims.items() if len(seen) < 2} == set()


def test_the_testbed() -> None:
    here = storage(100.0)
    assert here.targets == SERVERS == 8
    assert here.profile[3] == pytest.approx(75.0)
    assert here.profile[7] == pytest.approx(100.0)
    assert 2 / here.efficiency == pytest.approx(2.3)
    benchmark = 32e6 * 256 / ALONE_S
    assert alone_time(storage(benchmark), group("A")) == pytest.approx(ALONE_S)


def test_rows_must_be_told_apart() -> None:
    rows = pl.DataFrame({"a": [1, 1], "b": [2.0, 3.0]})
    with pytest.raises(InputError, match="2 rows match"):
        one_of(rows, "b", a=1)
    assert one_of(rows, "b", b=3.0) == 3.0


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("p4-fig7", lambda t: one_of(t.rows, "factor", **_at("2a", "B"))),
        ("p4-fig5", lambda t: one_of(t.rows, "factor", **_at("1a", "A"))),
    ],
)
def test_staged_at_once_with_the_longest_delay(
    name: str, number: Callable[[Tables], float]
) -> None:
    """(T + P + T) / (T + P), with T = 30 s and P = 31 x 0.75 s."""
    pauses = 31 * 0.75
    expected = (2 * ALONE_S + pauses) / (ALONE_S + pauses)
    assert number(tables(name)) == pytest.approx(expected, rel=0.01)


def _at(strategy: str, application: str) -> dict[str, object]:
    return {
        "strategy": strategy,
        "application": application,
        "delay": 0.75,
        "offset": 0.0,
    }


def test_claims_without_rows_fail() -> None:
    rows = tables("p4-fig5").rows.filter(pl.col("strategy") == "none")
    assert not any(verdicts("p4-fig5", rows).values())
