# SPDX-License-Identifier: MIT
"""Figure 4 of two-level scheduling: claims that can hold and fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, judge
from penstock.papers.p5.depth import fig4
from penstock.papers.p5.experiment import HOLDING, SENDING
from support.claim_flips import assert_all_claims, assert_flips, failed_claims, holds
from support.two_iors import (
    simulated,
)

#: Claims that do not hold with every memory in our model, and the memories (GB) with
#: which they hold; each has a reason.
FAIL: dict[str, tuple[str, ...]] = {
    "small-to-infinite": ("0",),
    "infinite-to-small": ("0",),
    "about-15-in-steady-state": ("0",),
    "high-more-often-later": ("0", "2"),
    "high-from-425-to-500-s": (),
}


#: Time (s) -> depth; None: infinite.
Depth: TypeAlias = Callable[[float], float | None]


def _depth(time_s: float) -> float | None:
    """Return the depths of the paper: infinite while App1 is on, and often later."""
    late = time_s >= 580 or 450 <= time_s < 500
    return None if time_s % 100 < 50 or late else 15.0


def _depths(depth: Depth) -> Tables:
    rows = [
        {
            "scheduler": SENDING,
            "memory_gb": 0,
            "instance": 1,
            "window": window,
            "time": window / 2,
            "on": window / 2 % 100 < 50,
            "depth": depth(window / 2),
        }
        for window in range(1200)
    ]
    return Tables(
        pl.DataFrame(rows, schema_overrides={"depth": pl.Float64}), pl.DataFrame()
    )


#: Claim of Figure 4, depths for which it does not hold.
DEPTHS: list[tuple[str, Depth]] = [
    ("small-to-infinite", lambda t: None if t % 100 < 50 else 30.0),
    ("small-to-infinite", lambda t: None if 4 <= t % 100 < 50 else 15.0),
    ("infinite-to-small", lambda t: None if t % 100 < 70 else 15.0),
    ("infinite-to-small", lambda t: None if t % 100 < 40 else 15.0),
    ("about-15-in-steady-state", lambda t: None if t % 100 < 50 else 32.0),
    ("high-more-often-later", lambda t: None if t % 100 < 50 else 15.0),
    ("high-from-425-to-500-s", lambda t: None if t % 100 < 50 else 15.0),
]


@pytest.mark.parametrize(("name", "bad"), DEPTHS)
def test_a_claim_on_the_depth_holds_and_fails(name: str, bad: Depth) -> None:
    assert_flips(fig4, name, _depths(_depth), _depths(bad))


@pytest.mark.parametrize("depth", [8.0, None])
def test_a_depth_that_never_changes_fails_all_claims(depth: float | None) -> None:
    """Except that an infinite one is also high when the paper says that it is."""
    tables = _depths(lambda _time: depth)
    for claim in fig4.claims:
        if depth is None and claim.name == "high-from-425-to-500-s":
            continue
        assert not holds(fig4, claim.name, tables), claim.name


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig4], [flip[0] for flip in DEPTHS])


def test_the_claims_that_fail_in_our_model_are_known() -> None:
    tables = simulated(fig4.name)
    assert failed_claims(fig4, tables) == set(FAIL)
    for record in judge(fig4.claims, tables):
        if record["name"] in FAIL:
            assert tuple(record.get("holds_at", ())) == FAIL[record["name"]]


def test_without_the_scheduler_of_the_paper_its_claims_fail() -> None:
    rows = simulated(fig4.name).rows.filter(pl.col("scheduler") == HOLDING)
    for claim in fig4.claims:
        if "not in the paper" not in claim.source:
            tables = Tables(rows, pl.DataFrame())
            assert not holds(fig4, claim.name, tables), claim.name


def test_the_drawing_has_a_panel_per_scheduler_and_memory() -> None:
    drawn = fig4.draw(simulated(fig4.name))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 4
