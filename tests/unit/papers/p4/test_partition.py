# SPDX-License-Identifier: MIT
"""Figures 9 and 10 of burst-buffer coordination: partitions of the servers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Outcome, Tables, judge
from penstock.experiments.reproduction import Scale
from penstock.papers.p4.partition import fig9, fig10
from support.claim_flips import assert_all_claims, assert_flips, failed_claims

FIGURES = {figure.name: figure for figure in (fig9, fig10)}
#: Claims of the paper that do not hold in our model, each with a reason.
FAIL = {"p4-fig9": {"up-to-40-per-cent"}, "p4-fig10": set()}
TESTS = ("50-50%", "75-25% D", "75-25% S")
ALONE, OWN = "8 servers, alone", "own servers, alone"
BOTH, PARTS = "8 servers, interfering", "own servers (3a)"

#: (case, test, application) or case -> bandwidth (MB/s).
Rates: TypeAlias = dict[str | tuple[str, str, str], float]
DEFAULTS: Rates = {ALONE: 170.0, OWN: 127.5, BOTH: 74.0, PARTS: 100.0}


def _static(rates: Rates) -> Tables:
    values = {**DEFAULTS, **rates}
    rows = [
        {
            "case": case,
            "test": test,
            "application": name,
            "rate": values.get((case, test, name), values[case]),
        }
        for case in (ALONE, OWN, BOTH, PARTS)
        for test in TESTS
        for name in ("A", "B")
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


#: Claim, bandwidths for which it holds, bandwidths for which it does not.
STATIC: list[tuple[str, Rates, Rates]] = [
    ("half-the-servers", {}, {OWN: 130.0}),
    ("interference-costs-more-than-half", {}, {BOTH: 85.0}),
    ("in-between", {}, {(PARTS, "75-25% S", "B"): 128.0}),
    ("up-to-40-per-cent", {}, {(PARTS, "50-50%", "A"): 120.0}),
]


@pytest.mark.parametrize(("name", "good", "bad"), STATIC, ids=[f[0] for f in STATIC])
def test_a_claim_on_static_partitions_holds_and_fails(
    name: str, good: Rates, bad: Rates
) -> None:
    assert_flips(fig9, name, _static(good), _static(bad))


#: The bandwidth (MB/s) of (strategy, application, D).
Rate: TypeAlias = Callable[[str, str, float], float]


def _fading(strategy: str, name: str, offset: float) -> float:
    """Return bandwidths that rise to 170 MB/s at D = 30 s; B has 125 MB/s with 3b."""
    if strategy == "3b" and name == "B":
        return 125.0
    start = 123.0 if strategy == "3b" else 72.0
    return start + (170.0 - start) * min(offset / 30, 1.0)


def _dynamic(rate: Rate) -> Tables:
    rows = [
        {
            "strategy": strategy,
            "application": name,
            "offset": offset,
            "rate": rate(strategy, name, offset),
        }
        for strategy in ("none", "3b")
        for offset in (40.0, 0.0, 20.0, 30.0)
        for name in ("A", "B")
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


def _but(strategy: str, name: str, offset: float, rate: float) -> Rate:
    """Return the same bandwidths but for one."""
    return lambda *key: rate if key == (strategy, name, offset) else _fading(*key)


#: Claim, bandwidths for which it does not hold. All hold for `_fading`.
DYNAMIC: list[tuple[str, Rate]] = [
    ("interfering-at-once", _but("none", "B", 0.0, 69.0)),
    ("interference-fades", _but("none", "B", 20.0, 71.0)),
    ("no-interference-after-30-s", _but("none", "A", 40.0, 160.0)),
    ("dynamic-at-once", _but("3b", "A", 0.0, 110.0)),
    ("dynamic-rises", _but("3b", "A", 30.0, 124.0)),
    ("second-is-stable", _but("3b", "B", 40.0, 170.0)),
]


@pytest.mark.parametrize(("name", "bad"), DYNAMIC, ids=[flip[0] for flip in DYNAMIC])
def test_a_claim_on_dynamic_partitions_holds_and_fails(name: str, bad: Rate) -> None:
    assert_flips(fig10, name, _dynamic(_fading), _dynamic(bad))


@pytest.mark.parametrize("name", ["interference-fades", "dynamic-rises"])
def test_a_constant_bandwidth_does_not_rise(name: str) -> None:
    assert_flips(fig10, name, _dynamic(_fading), _dynamic(lambda *_: 120.0))


def test_a_gain_that_no_figure_shows_does_not_hold() -> None:
    """The largest gain, 155 %, is neither the 40 % of the text nor 75 %."""
    records = judge(fig9.claims, _simulated("p4-fig9"))
    (record,) = [r for r in records if r["name"] == "up-to-40-per-cent"]
    assert record["outcome"] == Outcome.FAILS
    assert record["numbers"]["75-25% S"]["B"] == pytest.approx(1.55, abs=0.005)


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig9], [flip[0] for flip in STATIC])
    assert_all_claims([fig10], [flip[0] for flip in DYNAMIC])


@cache
def _simulated(name: str) -> Tables:
    rows = FIGURES[name].rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


@pytest.mark.parametrize("name", FIGURES)
def test_the_claims_that_fail_in_our_model_are_known(name: str) -> None:
    assert failed_claims(FIGURES[name], _simulated(name)) == FAIL[name]


def test_an_application_alone_has_170_mb_per_s() -> None:
    rows = _simulated("p4-fig9").rows.filter(case=ALONE, test="50-50%")
    assert rows["rate"].to_list() == pytest.approx([170.0, 170.0], rel=1e-3)


def test_the_drawings_have_a_panel_per_test_and_a_line_per_application() -> None:
    static, dynamic = (f.draw(_simulated(name)) for name, f in FIGURES.items())
    assert isinstance(static, Figure)
    assert tuple(axis.get_title() for axis in static.axes) == TESTS
    (axis,) = dynamic.axes
    assert len(axis.lines) == 4
