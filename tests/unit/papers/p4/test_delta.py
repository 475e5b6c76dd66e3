# SPDX-License-Identifier: MIT
"""Figures 4 to 8 of burst-buffer coordination: delta-graphs, and claims on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p4.delta import fig4, fig5, fig6, fig7, fig8
from penstock.papers.p4.study import ALONE_S, DELAYS, GAIN, single_value
from support.claim_flips import assert_all_claims, assert_flips, failed_claims, holds

FIGURES = {figure.name: figure for figure in (fig4, fig5, fig6, fig7, fig8)}
#: Claims of the paper that do not hold in our model (at smoke scale), with a reason.
FAIL = {
    "p4-fig4": {"delays-lower-interference"},
    "p4-fig5": {"staging-range", "staging-beats-interference"},
    "p4-fig6": {
        *("kept-around-1.5", "lower-than-without", "newcomer-around-1.2"),
        *("lower-than-1a", "newcomer-slower-than-1a", "drops-to-1.2"),
    },
    "p4-fig7": {"second-at-once"},
    "p4-fig8": {
        *("first-around-1.2", "second-at-once", "second-falls"),
        *("second-falls-later-than-2a",),
    },
}
OFFSETS = (0.0, 20.0, 30.0, 40.0)

#: The interference factor of (strategy, application, d, D).
Factor: TypeAlias = Callable[[str, str, float, float], float]


def _tables(factor: Factor) -> Tables:
    """Return the rows of a delta-graph with these factors; alone both need 30 s."""
    rows = [
        {
            "strategy": strategy,
            "application": name,
            "delay": delay,
            "offset": offset,
            "alone": ALONE_S,
            "factor": factor(strategy, name, delay, offset),
        }
        for strategy in ("none", "1a", "1b", "2a", "2b")
        for delay in DELAYS
        for offset in OFFSETS
        for name in ("A", "B")
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


def _constant(value: float) -> Tables:
    """Return tables in which all factors are the same."""
    return _tables(lambda *_key: value)


def _no_strategy(delay: float, offset: float) -> float:
    """Return a factor as in Figure 4: it falls with d and fades with D."""
    return (2.3 if delay == 0 else 1.9) if offset <= 20 else 1.04


def _at(only: str, inside: float, outside: float) -> Tables:
    """Return tables with one factor for an application and another for the other."""
    return _tables(lambda _s, name, _d, _D: inside if name == only else outside)


def _gain(strategy: str, inside: float) -> Tables:
    """Return a factor of 2 without a strategy and `inside` with it."""
    return _tables(lambda s, _n, _d, _D: inside if s == strategy else 2.0)


def _late(value: float) -> Tables:
    """Return factors of 1.5 for D up to 30 s, and `value` for larger D."""
    return _tables(lambda _s, _n, _d, offset: value if offset > 30 else 1.5)


def _falling(until: dict[str, float]) -> Tables:
    """Return factors of 1.5 up to a last D for each strategy, and 1 beyond."""
    return _tables(
        lambda s, _n, _d, offset: 1.5 if offset <= until.get(s, 0.0) else 1.0
    )


#: Figure, claim, tables for which it holds, tables for which it does not.
FLIPS: list[tuple[Reproduction, str, Tables, Tables]] = [
    (
        fig4,
        "delays-lower-interference",
        _tables(lambda _s, _n, d, offset: _no_strategy(d, offset)),
        _tables(lambda _s, n, d, _D: 2.0 if n == "A" or d else 1.9),
    ),
    (
        fig4,
        "larger-than-two",
        _tables(lambda _s, _n, d, offset: _no_strategy(d, offset)),
        _tables(lambda _s, _n, _d, offset: 2.3 if offset == 0 else 1.9),
    ),
    (fig4, "significant-at-once", _constant(1.6), _constant(1.5)),
    (
        fig4,
        "fades-with-the-offset",
        _tables(lambda _s, _n, d, offset: _no_strategy(d, offset)),
        _tables(lambda _s, _n, _d, offset: 2.0 if offset < 30 else 1.1),
    ),
    (fig5, "newcomer-is-not-slowed-down", _at("B", 1.04, 2.0), _at("B", 1.1, 1.0)),
    (fig5, "staging-range", _at("A", 1.8, 2.0), _at("A", 1.9, 1.0)),
    (fig5, "staging-beats-interference", _gain("1a", 1.9), _gain("1a", 2.0)),
    (fig6, "kept-around-1.5", _at("A", 1.6, 2.0), _at("A", 1.2, 1.5)),
    (fig6, "drops-to-1.2", _late(1.2), _late(1.35)),
    (fig6, "drops-to-1.2", _late(1.2), _late(1.02)),
    (fig6, "lower-than-without", _gain("1b", 1.9), _gain("1a", 1.9)),
    (fig6, "lower-than-1a", _gain("1b", 1.9), _gain("1b", 2.0)),
    (fig6, "newcomer-slower-than-1a", _gain("1a", 1.9), _gain("1b", 1.9)),
    (fig6, "newcomer-around-1.2", _at("B", 1.3, 2.0), _at("B", 1.5, 1.2)),
    (fig7, "first-is-not-slowed-down", _at("A", 1.0, 2.0), _at("A", 1.2, 1.0)),
    (fig7, "second-at-once", _at("B", 1.55, 1.0), _at("B", 1.7, 1.55)),
    (fig7, "second-late", _late(1.1), _late(1.2)),
    (fig7, "second-late", _late(0.95), _late(0.8)),
    (fig8, "first-around-1.2", _at("A", 1.1, 2.0), _at("A", 1.5, 1.2)),
    (fig8, "second-at-once", _at("B", 1.65, 1.0), _at("B", 1.75, 1.6)),
    (
        fig8,
        "second-falls",
        _falling({"2b": 20.0}),
        _tables(lambda _s, _n, _d, offset: 1.0 if offset < 40 else 1.1),
    ),
    (
        fig8,
        "second-falls-later-than-2a",
        _falling({"2a": 20.0, "2b": 30.0}),
        _falling({"2a": 20.0, "2b": 20.0}),
    ),
]


def test_every_claim_is_tested() -> None:
    for figure in FIGURES.values():
        tested = [name for declared, name, *_ in FLIPS if declared is figure]
        assert_all_claims([figure], tested)


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"),
    FLIPS,
    ids=[f"{flip[0].name}-{flip[1]}" for flip in FLIPS],
)
def test_a_claim_holds_and_fails(
    figure: Reproduction, name: str, good: Tables, bad: Tables
) -> None:
    assert_flips(figure, name, good, bad)


@cache
def _simulated(name: str) -> Tables:
    rows = FIGURES[name].rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


@pytest.mark.parametrize("name", FIGURES)
def test_the_claims_that_fail_in_our_model_are_known(name: str) -> None:
    assert failed_claims(FIGURES[name], _simulated(name)) == FAIL[name]


@pytest.mark.parametrize("name", FIGURES)
def test_the_drawing_has_a_panel_per_application(name: str) -> None:
    drawn = FIGURES[name].draw(_simulated(name))
    assert isinstance(drawn, Figure)
    assert [a.get_title() for a in drawn.axes] == ["application A", "application B"]
    assert bool(drawn.get_supxlabel()) == (name != "p4-fig4")


@pytest.mark.parametrize(
    ("name", "strategy", "application"),
    [("p4-fig7", "2a", "B"), ("p4-fig5", "1a", "A")],
)
def test_staged_at_once_without_delays(
    name: str, strategy: str, application: str
) -> None:
    """It waits for T while the other one writes, and flushes in T / gain."""
    factor = single_value(
        _simulated(name).rows,
        "factor",
        strategy=strategy,
        application=application,
        delay=0.0,
        offset=0.0,
    )
    assert factor == pytest.approx(1 + 1 / GAIN, rel=1e-3)
    assert factor == pytest.approx(170 / 96, rel=1e-3)


def test_figure_8_also_simulates_2a() -> None:
    assert set(_simulated("p4-fig8").rows["strategy"]) == {"none", "2a", "2b"}
    assert set(_simulated("p4-fig4").rows["strategy"]) == {"none"}


@pytest.mark.parametrize("name", ["p4-fig5", "p4-fig6", "p4-fig7"])
def test_claims_without_rows_of_the_strategy_fail(name: str) -> None:
    rows = _simulated(name).rows.filter(pl.col("strategy") == "none")
    for claim in FIGURES[name].claims:
        assert not holds(FIGURES[name], claim.name, Tables(rows, pl.DataFrame()))
