# SPDX-License-Identifier: MIT
"""Order of drains: the runs, and claims that can hold and fail."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.papers.beyond.drains import drains
from support.apex_tables import claim_of

STRATEGIES = ("none", "2a")
POLICIES = ("fair-share", "fcfs", "greedy-com")


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    made = drains.rows(Scale.SMOKE)
    assert isinstance(made, pl.DataFrame)
    return made


def test_every_contender_runs_at_every_delay(rows: pl.DataFrame) -> None:
    counts = rows.group_by("delay", "contender").len()
    assert counts["len"].unique().to_list() == [4]
    assert counts.height == rows["delay"].n_unique() * rows["contender"].n_unique()
    assert set(rows["application"]) == {"A", "B", "C", "D"}


def test_no_application_is_faster_than_alone(rows: pl.DataFrame) -> None:
    assert (rows["factor"] >= 1 - 1e-9).all()


def test_the_summary_has_the_factor_of_the_first_application(
    rows: pl.DataFrame,
) -> None:
    summary = drains.summary(Tables(rows, pl.DataFrame()))
    first = rows.filter(pl.col("application") == "A")
    assert summary["first"].to_list() == first["factor"].to_list()
    assert (summary["largest"] >= summary["mean"]).all()


def test_the_drawing_has_a_panel_per_delay(rows: pl.DataFrame) -> None:
    drawn = drains.draw(Tables(rows, pl.DataFrame()))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == rows["delay"].n_unique()


def _tables(
    first: Mapping[str, float], other: Mapping[str, float], end: Mapping[str, float]
) -> Tables:
    """Return two applications with factors (1 and 2) and an end (100 s), if not given.

    Keys are names of strategies and policies.
    """
    rows = [
        {
            "contender": f"controlled, {name}" if name in POLICIES else name,
            "strategy": "controlled" if name in POLICIES else name,
            "delay": 0.5,
            "application": application,
            "factor": factors.get(name, default),
            "end": end.get(name, 100.0),
        }
        for name in (*STRATEGIES, *POLICIES)
        for application, factors, default in (("A", first, 1.0), ("B", other, 2.0))
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


Numbers = Mapping[str, float]
NONE: Numbers = {}
#: Claim, factors of A, factors of B and ends for which it holds, and does not hold.
FLIPS: list[tuple[str, tuple[Numbers, ...], tuple[Numbers, ...]]] = [
    (
        "first-is-undisturbed",
        ({"fcfs": 1.04, "none": 2.0}, NONE, NONE),
        ({"fcfs": 1.06}, NONE, NONE),
    ),
    (
        "done-sooner",
        (NONE, NONE, {"fcfs": 90.0, "greedy-com": 95.0, "fair-share": 120.0}),
        (NONE, NONE, {"fcfs": 90.0, "greedy-com": 105.0}),
    ),
    (
        "better-than-2a",
        (NONE, {"2a": 3.0}, NONE),
        (NONE, {"2a": 3.0, "fair-share": 3.5}, NONE),
    ),
    (
        "as-good-as-any",
        (NONE, {"none": 1.9, "fcfs": 1.95}, NONE),
        (NONE, {"none": 1.5}, NONE),
    ),
    (
        "order-matters",
        (NONE, {"fcfs": 1.2}, NONE),
        (NONE, {"fcfs": 1.5}, NONE),
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip[0] for flip in FLIPS} == {claim.name for claim in drains.claims}


@pytest.mark.parametrize(("name", "good", "bad"), FLIPS, ids=[f[0] for f in FLIPS])
def test_a_claim_holds_and_fails(
    name: str, good: tuple[Numbers, ...], bad: tuple[Numbers, ...]
) -> None:
    check = claim_of(drains, name).check
    held, failed = check(_tables(*good)), check(_tables(*bad))
    assert held.holds, held.numbers
    assert not failed.holds, failed.numbers
