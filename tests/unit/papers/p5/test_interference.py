# SPDX-License-Identifier: MIT
"""Figure 1 of two-level scheduling: BTIO beside IOR, and claims on it."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.papers.p5.interference import fig1
from support.claim_flips import assert_all_claims, assert_flips, failed_claims

ALONE, BESIDE = "alone", "with IOR"
DSFQ, TWO_LEVEL = "with IOR, DSFQ", "with IOR, two-level"
SIZES = ("large", "small")

#: (size, case) -> throughput over that alone.
Shares: TypeAlias = dict[tuple[str, str], float]
#: The numbers of the paper, and a guess for the two-level scheduler.
PAPER: Shares = {
    ("large", ALONE): 1.0,
    ("small", ALONE): 1.0,
    ("large", BESIDE): 0.312,
    ("small", BESIDE): 0.031,
    ("large", DSFQ): 0.588,
    ("small", DSFQ): 0.112,
    ("large", TWO_LEVEL): 0.6,
    ("small", TWO_LEVEL): 0.3,
}


def _tables(shares: Shares) -> Tables:
    rows = [
        {"btio": size, "case": case, "over_alone": share}
        for (size, case), share in {**PAPER, **shares}.items()
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


#: Claim, shares for which it does not hold. All hold for those of the paper.
FLIPS: list[tuple[str, Shares]] = [
    ("small-slowed-more", {("large", BESIDE): 0.45}),
    ("small-slowed-more", {("small", BESIDE): 0.1}),
    ("small-restored-less", {("large", DSFQ): 0.8}),
    ("small-restored-less", {("small", DSFQ): 0.25}),
    ("two-level-restores-small", {("small", TWO_LEVEL): 0.2}),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig1], [flip[0] for flip in FLIPS])


@pytest.mark.parametrize(("name", "bad"), FLIPS)
def test_a_claim_holds_and_fails(name: str, bad: Shares) -> None:
    assert_flips(fig1, name, _tables({}), _tables(bad))


@cache
def _simulated() -> Tables:
    rows = fig1.rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


def test_all_claims_hold_in_our_model() -> None:
    assert failed_claims(fig1, _simulated()) == set()


def test_throughputs_are_relative_to_those_alone() -> None:
    rows = _simulated().rows
    assert rows.filter(case=ALONE)["over_alone"].to_list() == [1.0, 1.0]
    for size in SIZES:
        own = rows.filter(btio=size)
        alone = own.filter(case=ALONE)["throughput"][0]
        ratios = (own["throughput"] / alone).to_list()
        assert own["over_alone"].to_list() == pytest.approx(ratios)


def test_alone_the_storage_serves_one_request_after_the_other() -> None:
    """A large request takes 1 MB and the overhead of 256 KB at 50 MB/s."""
    rows = _simulated().rows.filter(btio="large", case=ALONE)
    assert rows["throughput"][0] == pytest.approx(50e6 / 1.256, rel=0.01)


def test_the_drawing_has_a_bar_per_size_and_case() -> None:
    drawn = fig1.draw(_simulated())
    assert isinstance(drawn, Figure)
    (axis,) = drawn.axes
    assert len(axis.patches) == 2 * 4
