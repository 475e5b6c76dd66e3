# SPDX-License-Identifier: MIT
"""Figures 3 and 4 of bandwidth sharing: curves over ranks, and claims on them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    BEST_NEXT_EVENT,
    FAIR_SHARE,
    GREEDY_COM,
    GREEDY_YIELD,
    LOOK_AHEAD,
    PERIODIC,
)
from penstock.papers.p1.ranks import fig3, fig4
from penstock.workloads import Synthetic
from support.apex_tables import claim_of

PRESSURES = (0.5, 0.8, 1.1)
RANKS = 30
FLAT = np.full(RANKS, 0.9)
RAMP = np.linspace(0.0, 0.3, RANKS)
#: Up and down by turns, with a mean of 0.9.
ZIGZAG = FLAT + 0.01 * (-1.0) ** np.arange(RANKS)
#: Falling, and up and down by turns in the last third.
LATE = np.where(np.arange(RANKS) < 20, FLAT - RAMP, ZIGZAG - 0.2)
STEPS = np.repeat([0.9, 0.8, 0.7], RANKS // 3) + 0.01 * np.tile(np.arange(10) / 10, 3)

Curve = NDArray[np.float64]
#: Policy -> curve at all pressures, or (policy, W) -> curve at one.
Curves = Mapping[str | tuple[str, float], Curve]


def _tables(curves: Curves, omega_phi: float = 0.0) -> Tables:
    """Return prepared tables with flat curves, unless `curves` says otherwise."""
    rows = [
        {
            "pressure": pressure,
            "policy": policy,
            "instance": instance,
            "omega_phi": omega_phi,
            "yields": curves.get((policy, pressure), curves.get(policy, FLAT)).tolist(),
        }
        for pressure in PRESSURES
        for policy in ALL_POLICIES
        for instance in range(2)
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


def _fading(strengths: tuple[float, ...]) -> Curves:
    return {
        ("fcfs", pressure): FLAT - strength * RAMP
        for pressure, strength in zip(PRESSURES, strengths, strict=True)
    }


#: Figure, claim, curves for which it holds, curves for which it does not.
FLIPS: list[tuple[Reproduction, str, Curves, Curves]] = [
    (fig3, "differences-grow", _fading((0.1, 0.5, 1.0)), _fading((0.1, 1.0, 0.5))),
    (
        fig3,
        "omega-matters-little",
        {FAIR_SHARE: FLAT - 0.2 * RAMP, "fcfs": FLAT - RAMP},
        {FAIR_SHARE: FLAT - 0.4 * RAMP},
    ),
    (
        fig3,
        "yield-based-constant",
        {GREEDY_YIELD: FLAT - 0.1 * RAMP, FAIR_SHARE: FLAT - RAMP},
        {GREEDY_YIELD: FLAT - 0.2 * RAMP},
    ),
    (
        fig3,
        "fair-share-uncorrelated",
        {FAIR_SHARE: ZIGZAG},
        {FAIR_SHARE: FLAT - 0.1 * RAMP},
    ),
    (fig3, "fcfs-favours-long", {"fcfs": 0.5 + RAMP}, {"fcfs": 0.5 - RAMP}),
    (
        fig3,
        "greedy-com-favours-short",
        {GREEDY_COM: 0.9 - RAMP},
        {GREEDY_COM: 0.5 + RAMP},
    ),
    (fig3, "set10-steps", {"set-10": STEPS}, {"set-10": STEPS[::-1]}),
    (
        fig4,
        "look-ahead-differs-for-small",
        {LOOK_AHEAD: FLAT + 0.1 * RAMP[::-1], GREEDY_YIELD: FLAT},
        {LOOK_AHEAD: FLAT + 0.1 * RAMP, GREEDY_YIELD: FLAT},
    ),
    (
        fig4,
        "best-next-event-favours-small",
        {BEST_NEXT_EVENT: 0.9 - RAMP},
        {BEST_NEXT_EVENT: 0.5 + RAMP},
    ),
    (
        fig4,
        "fair-share-falls",
        dict.fromkeys(ALL_POLICIES, 0.9 - RAMP),
        dict.fromkeys(ALL_POLICIES, 0.5 + RAMP),
    ),
    (
        fig4,
        "only-fair-share",
        {**dict.fromkeys(ALL_POLICIES, 0.5 + RAMP), FAIR_SHARE: 0.9 - RAMP},
        dict.fromkeys(ALL_POLICIES, 0.9 - RAMP),
    ),
    (
        fig4,
        "periodic-hides-greedy-yield",
        {PERIODIC: FLAT - 0.01 * RAMP},
        {PERIODIC: FLAT - 0.02 * RAMP},
    ),
    (fig4, "fcfs-erratic", {"fcfs": ZIGZAG}, {"fcfs": ZIGZAG, GREEDY_COM: ZIGZAG}),
    (fig4, "greedy-com-not-monotonic", {GREEDY_COM: LATE}, {GREEDY_COM: 0.9 - RAMP}),
]


def test_every_claim_is_tested() -> None:
    for figure in (fig3, fig4):
        tested = {name for of, name, _, _ in FLIPS if of is figure}
        tested |= {"omega-and-phi-uncorrelated"} if figure is fig3 else set()
        assert tested == {claim.name for claim in figure.claims}


def test_omega_and_phi_must_not_be_correlated() -> None:
    check = claim_of(fig3, "omega-and-phi-uncorrelated").check
    assert check(_tables({}, omega_phi=-0.09)).holds
    assert not check(_tables({}, omega_phi=0.11)).holds


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"), FLIPS, ids=[flip[1] for flip in FLIPS]
)
def test_a_claim_holds_and_fails(
    figure: Reproduction, name: str, good: Curves, bad: Curves
) -> None:
    check = claim_of(figure, name).check
    held, failed = check(_tables(good)), check(_tables(bad))
    assert held.holds, held.numbers
    assert not failed.holds, failed.numbers


@pytest.mark.parametrize(("figure", "attribute"), [(fig3, "omega"), (fig4, "fraction")])
def test_a_curve_is_the_mean_yield_at_every_rank(
    figure: Reproduction, attribute: str
) -> None:
    """Yields that are equal to the ranks by `attribute` give the ranks themselves."""
    horizon = 20_000.0
    rows = []
    for pressure in PRESSURES:
        family = Synthetic(pressure=pressure, horizon=horizon)
        for instance in range(2):
            drawn = [getattr(c, attribute) for c in family.characters(1, instance)]
            ranks = np.argsort(np.argsort(drawn)) + 1.0
            rows.append(
                {
                    "policy": FAIR_SHARE,
                    "aimed_pressure": pressure,
                    "horizon": horizon,
                    "instance": instance,
                    "yields": (ranks + instance).tolist(),
                }
            )
    tables = figure.prepare(Tables(pl.DataFrame(rows), pl.DataFrame()))
    assert tables.rows["instance"].unique().sort().to_list() == [0, 1]
    assert tables.rows["omega_phi"].is_between(-1, 1).all()
    prepared = figure.summary(tables)
    assert prepared["pressure"].unique().sort().to_list() == list(PRESSURES)
    # The yields of the second instance are higher by 1: the mean is by 0.5.
    assert (prepared["yield"] - prepared["rank"]).to_numpy() == pytest.approx(0.5)


def test_the_drawing_has_a_panel_per_pressure() -> None:
    for figure in (fig3, fig4):
        drawn = figure.draw(_tables({}))
        assert isinstance(drawn, Figure)
        titles = [axis.get_title() for axis in drawn.axes]
        assert titles == ["W = 0.5", "W = 0.8", "W = 1.1"]
