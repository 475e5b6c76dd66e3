# SPDX-License-Identifier: MIT
"""Figure 3 of two-level scheduling: claims that can hold and fail."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, judge
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.study import Declaration
from penstock.papers.p5.experiment import HOLDING, SENDING
from penstock.papers.p5.issue_rates import fig3
from penstock.papers.p5.response_times import fig5
from support.claim_flips import assert_all_claims, assert_flips, failed_claims, holds
from support.two_iors import (
    Value,
    issue_rate,
    made_up,
    simulated,
    throughput,
)

#: Claims that do not hold with every memory in our model, and the memories (GB) with
#: which they hold; each has a reason.
FAIL: dict[str, tuple[str, ...]] = {
    "saturated-when-both-are-on": ("0",),
    "too-much-alone-after-350-s": (),
}


def _slow(*key: object) -> float:
    """Return throughputs of half the issue rates."""
    return 0.5 * throughput(*key)  # type: ignore[arg-type]


def _less_for(name: str, value: Value) -> Value:
    """Return 90 % of the values of one application."""
    return lambda *key: value(*key) * (0.9 if key[1] == name else 1.0)


def _like(scheduler: str, value: Value) -> Value:
    """Return the values of one scheduler for all."""
    return lambda _scheduler, *key: value(scheduler, *key)


#: Claim of Figure 3, tables for which it does not hold.
RATES: list[tuple[str, Tables]] = [
    (
        "saturated-when-both-are-on",
        made_up(issued=lambda *key: 1.1 * issue_rate(*key)),
    ),
    ("alone-gets-its-rate", made_up(issued=_less_for("App2", issue_rate))),
    ("too-much-alone-after-350-s", made_up(issued=lambda *key: 1.1 * issue_rate(*key))),
    ("not-proportional-under-overload", made_up(moved=_like(HOLDING, throughput))),
    ("not-proportional-under-overload", made_up(moved=_slow)),
    ("held-back-shares-hold", made_up(moved=_like(SENDING, throughput))),
]


@pytest.mark.parametrize(("name", "bad"), RATES, ids=[flip[0] for flip in RATES])
def test_a_claim_on_rates_holds_and_fails(name: str, bad: Tables) -> None:
    assert_flips(fig3, name, made_up(), bad)


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig3], [flip[0] for flip in RATES])


def test_the_claims_that_fail_in_our_model_are_known() -> None:
    tables = simulated(fig3.name)
    assert failed_claims(fig3, tables) == set(FAIL)
    for record in judge(fig3.claims, tables):
        if record["name"] in FAIL:
            assert tuple(record.get("holds_at", ())) == FAIL[record["name"]]


def test_without_the_scheduler_of_the_paper_its_claims_fail() -> None:
    rows = simulated(fig3.name).rows.filter(pl.col("scheduler") == HOLDING)
    for claim in fig3.claims:
        if "not in the paper" not in claim.source:
            tables = Tables(rows, pl.DataFrame())
            assert not holds(fig3, claim.name, tables), claim.name


def test_the_drawing_has_a_panel_per_scheduler_and_memory() -> None:
    drawn = fig3.draw(simulated(fig3.name))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 4


def test_figures_3_and_5_are_computed_once() -> None:
    (first,) = _studies(fig3)
    (last,) = _studies(fig5)
    assert (first.name, first.digest()) == (last.name, last.digest())


def _studies(figure: Reproduction) -> tuple[Declaration, ...]:
    work = figure.study(Scale.SMOKE)
    return work if isinstance(work, tuple) else (work,)
