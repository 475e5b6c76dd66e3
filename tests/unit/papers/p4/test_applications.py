# SPDX-License-Identifier: MIT
"""Figures 11 and 12 of burst-buffer coordination: real applications, two at a time."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p4.applications import fig11, fig12
from support.claim_flips import assert_all_claims, assert_flips, failed_claims

FIGURES = {figure.name: figure for figure in (fig11, fig12)}
STRATEGIES = ("none", "1a", "2a", "3b")
APP1, APP2, CM1 = "lanl-app1", "lanl-app2", "cm1"

#: (application, partner, strategy) -> factor; None stands for any name.
Factors: TypeAlias = dict[tuple[str | None, str | None, str | None], float]


def _tables(factors: Factors) -> Tables:
    """Return factors of 2, but for `factors`; the last key that matches counts."""
    rows = []
    for first, partner in ((APP1, APP2), (APP1, CM1), (CM1, APP1), (CM1, APP2)):
        for strategy in STRATEGIES:
            for name in (first, partner):
                key = (name, partner, strategy)
                factor = 2.0
                for pattern, value in factors.items():
                    if all(p in (None, k) for p, k in zip(pattern, key, strict=True)):
                        factor = value
                rows.append(
                    {
                        "application": name,
                        "partner": f"with {partner}",
                        "strategy": strategy,
                        "factor": factor,
                    }
                )
    return Tables(pl.DataFrame(rows), pl.DataFrame())


ALL_HELP: Factors = {
    (CM1, None, "1a"): 1.5,
    (CM1, None, "2a"): 1.0,
    (CM1, None, "3b"): 1.4,
}

#: Figure, claim, factors for which it holds, factors for which it does not.
FLIPS: list[tuple[Reproduction, str, Factors, Factors]] = [
    (
        fig11,
        "app1-interferes",
        {(APP1, APP2, "none"): 2.3},
        {(APP1, APP2, "none"): 2.4},
    ),
    (fig11, "app1-strategy-1", {}, {(APP1, APP2, "1a"): 1.7}),
    (fig11, "app1-strategy-2", {(APP1, APP2, "2a"): 1.04}, {(APP1, APP2, "2a"): 1.1}),
    (fig11, "app1-strategy-3", {(APP1, APP2, "3b"): 1.9}, {}),
    (fig11, "up-to-twice", {(APP1, CM1, "2a"): 1.1}, {(APP1, CM1, "2a"): 1.2}),
    (fig11, "app1-and-cm1", {(APP1, CM1, None): 2.1}, {(APP1, CM1, "3b"): 1.8}),
    (fig12, "all-help", ALL_HELP, {**ALL_HELP, (CM1, APP1, "1a"): 2.0}),
    (fig12, "all-help", ALL_HELP, {**ALL_HELP, (CM1, APP2, "3b"): 2.1}),
    (fig12, "slightly-lower", {(CM1, None, "none"): 1.9}, {(CM1, None, "none"): 1.7}),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig11, fig12], [flip[1] for flip in FLIPS])


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"), FLIPS, ids=[flip[1] for flip in FLIPS]
)
def test_a_claim_holds_and_fails(
    figure: Reproduction, name: str, good: Factors, bad: Factors
) -> None:
    assert_flips(figure, name, _tables(good), _tables(bad))


@pytest.mark.parametrize("partner", [APP1, APP2])
def test_cm1_must_be_lower_than_each_partner(partner: str) -> None:
    lower: Factors = {(CM1, None, "none"): 1.99}
    equal: Factors = {**lower, (CM1, partner, "none"): 2.0}
    assert_flips(fig12, "slightly-lower", _tables(lower), _tables(equal))


@cache
def _simulated(name: str) -> Tables:
    rows = FIGURES[name].rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


@pytest.mark.parametrize("name", FIGURES)
def test_all_claims_hold_in_our_model(name: str) -> None:
    assert failed_claims(FIGURES[name], _simulated(name)) == set()


@pytest.mark.parametrize("name", FIGURES)
def test_every_strategy_runs_with_both_partners(name: str) -> None:
    rows = _simulated(name).rows
    counts = rows.group_by("partner", "strategy").len()
    assert counts.height == 2 * len(STRATEGIES)
    assert counts["len"].unique().to_list() == [2]
    assert (rows["factor"] >= 1 - 1e-9).all()


@pytest.mark.parametrize(("name", "first"), [("p4-fig11", APP1), ("p4-fig12", CM1)])
def test_the_drawing_shows_the_first_application_beside_both(
    name: str, first: str
) -> None:
    drawn = FIGURES[name].draw(_simulated(name))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 2
    assert drawn.axes[0].get_ylabel() == f"interference factor of {first}"
