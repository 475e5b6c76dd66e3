# SPDX-License-Identifier: MIT
"""Figures 15 and 16 of burst-buffer coordination: single processes, and buffering."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.papers.p4.limits import fig15, fig16
from penstock.papers.p4.study import DELAYS
from support.claim_flips import assert_all_claims, assert_flips, failed_claims

FIGURES = {figure.name: figure for figure in (fig15, fig16)}
#: Claims of the paper that do not hold in our model, each with a reason.
FAIL = {"p4-fig15": {"buffering-hurts-with-delays"}, "p4-fig16": set()}

#: (case, d) -> bandwidth of A (MB/s).
Rates: TypeAlias = dict[tuple[str, float], float]
#: The numbers of the paper.
PAPER: Rates = {
    ("alone", 0.0): 170.0,
    ("alone", 0.75): 162.0,
    ("interfering", 0.0): 75.0,
    ("interfering", 0.75): 90.0,
    ("buffering", 0.0): 96.0,
    ("buffering", 0.75): 87.0,
}


def _buffering(rates: Rates) -> Tables:
    rows = [
        {"case": case, "delay": delay, "rate": rate}
        for (case, delay), rate in {**PAPER, **rates}.items()
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


#: Claim, bandwidths for which it does not hold. All hold for those of the paper.
BUFFERING: list[tuple[str, Rates]] = [
    ("delay-costs-little-alone", {("alone", 0.75): 158.0}),
    ("delay-costs-little-alone", {("alone", 0.0): 85.0, ("alone", 0.75): 81.0}),
    ("interfering-bandwidths", {("interfering", 0.75): 110.0}),
    ("factor-falls-with-the-delay", {("interfering", 0.75): 70.0}),
    ("buffering-helps-without-delays", {("buffering", 0.0): 80.0}),
    ("buffering-hurts-with-delays", {("buffering", 0.75): 91.0}),
]


@pytest.mark.parametrize(
    ("name", "bad"), BUFFERING, ids=[flip[0] for flip in BUFFERING]
)
def test_a_claim_on_buffering_holds_and_fails(name: str, bad: Rates) -> None:
    assert_flips(fig15, name, _buffering({}), _buffering(bad))


def _durations(*means: float) -> Tables:
    """Return the mean durations of requests by delay, from two requests each."""
    rows = [
        {"delay": delay, "node": 0, "request": request, "duration": mean + change}
        for delay, mean in zip(DELAYS, means, strict=True)
        for request, change in ((0, -0.1), (1, 0.1))
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


#: Claim, mean durations for which it does not hold. All hold for 1.5, 1.25, 1, 0.75.
DURATIONS: list[tuple[str, tuple[float, ...]]] = [
    ("durations-fall-with-the-delay", (1.5, 1.25, 1.25, 0.75)),
    ("self-stabilising", (1.5, 1.4, 1.0, 0.75)),
]


@pytest.mark.parametrize(
    ("name", "bad"), DURATIONS, ids=[flip[0] for flip in DURATIONS]
)
def test_a_claim_on_durations_holds_and_fails(
    name: str, bad: tuple[float, ...]
) -> None:
    assert_flips(fig16, name, _durations(1.5, 1.25, 1.0, 0.75), _durations(*bad))


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig15], [flip[0] for flip in BUFFERING])
    assert_all_claims([fig16], [flip[0] for flip in DURATIONS])


@cache
def _simulated(name: str) -> Tables:
    rows = FIGURES[name].rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


@pytest.mark.parametrize("name", FIGURES)
def test_the_claims_that_fail_in_our_model_are_known(name: str) -> None:
    assert failed_claims(FIGURES[name], _simulated(name)) == FAIL[name]


def test_alone_without_delays_the_bandwidth_is_that_of_the_storage() -> None:
    rows = _simulated("p4-fig15").rows.filter(case="alone", delay=0.0)
    assert rows["rate"].to_list() == pytest.approx([170.0] * 5, rel=1e-3)


def test_requests_without_delays_wait_for_all_processes() -> None:
    """All 256 processes share the storage, and run in step."""
    rows = _simulated("p4-fig16").rows.filter(pl.col("delay") == 0)
    assert rows.height == 5 * 32
    expected = [256 * 1e6 / 170e6] * rows.height
    assert rows["duration"].to_list() == pytest.approx(expected, rel=1e-3)


def test_requests_become_shorter_when_the_processes_have_drifted_apart() -> None:
    rows = _simulated("p4-fig16").rows.filter(pl.col("delay") == 0.75)
    assert rows.height == 5 * 32 * 32
    means = rows.group_by("request").agg(pl.mean("duration")).sort("request")
    first, last = means["duration"][0], means["duration"][-10:].to_numpy().mean()
    assert first == pytest.approx(256 * 1e6 / 170e6, rel=1e-3)
    assert last < 0.6 * first


def test_the_drawings_have_bars_and_a_panel_per_delay() -> None:
    bars, lines = (f.draw(_simulated(name)) for name, f in FIGURES.items())
    assert isinstance(bars, Figure)
    assert len(bars.axes) == 1
    assert len(lines.axes) == len(DELAYS)
