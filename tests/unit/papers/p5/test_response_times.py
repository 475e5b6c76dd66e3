# SPDX-License-Identifier: MIT
"""Figure 5 of two-level scheduling: claims that can hold and fail."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, judge
from penstock.papers.p5.experiment import HOLDING, SENDING
from penstock.papers.p5.response_times import fig5
from support.claim_flips import assert_all_claims, assert_flips, failed_claims
from support.two_iors import (
    made_up,
    response_time,
    simulated,
    throughput,
)

#: Claims that do not hold with every memory in our model, and the memories (GB) with
#: which they hold; each has a reason.
FAIL: dict[str, tuple[str, ...]] = {
    "tight-bound-favoured-as-in-the-paper": (),
    "first-200-s-within-300-ms": ("2", "32"),
    "100-ms-is-difficult": (),
    "more-beyond-300-ms-later": ("0", "2"),
    "outliers-after-500-s": ("0", "2"),
}


#: Claim of Figure 5, tables for which it does not hold.
RESPONSES: list[tuple[str, Tables]] = [
    (
        "bound-met-when-not-overloaded",
        made_up(p95=lambda s, *key: 0.31 if s == SENDING else response_time(s, *key)),
    ),
    (
        "tight-bound-favoured",
        made_up(p95=lambda s, *key: 0.2 if s == HOLDING else response_time(s, *key)),
    ),
    (
        "tight-bound-favoured-as-in-the-paper",
        made_up(p95=lambda s, *key: 0.09 if s == SENDING else response_time(s, *key)),
    ),
    (
        "work-conserving",
        made_up(moved=lambda *key: throughput(*key) * (2 if key[0] == "fifo" else 1)),
    ),
    (
        "first-200-s-within-300-ms",
        made_up(p95=lambda s, n, t, on: 0.31 if t < 50 else response_time(s, n, t, on)),
    ),
    ("100-ms-is-difficult", made_up(p95=lambda *_key: 0.09)),
    ("more-beyond-300-ms-later", made_up(p95=lambda *_key: 0.2)),
    ("outliers-after-500-s", made_up(p95=lambda *_key: 1.5)),
]


@pytest.mark.parametrize(
    ("name", "bad"), RESPONSES, ids=[flip[0] for flip in RESPONSES]
)
def test_a_claim_on_response_times_holds_and_fails(name: str, bad: Tables) -> None:
    assert_flips(fig5, name, made_up(), bad)


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig5], [flip[0] for flip in RESPONSES])


def test_the_claims_that_fail_in_our_model_are_known() -> None:
    tables = simulated(fig5.name)
    assert failed_claims(fig5, tables) == set(FAIL)
    for record in judge(fig5.claims, tables):
        if record["name"] in FAIL:
            assert tuple(record.get("holds_at", ())) == FAIL[record["name"]]


def test_the_drawing_has_a_panel_per_scheduler_and_memory() -> None:
    drawn = fig5.draw(simulated(fig5.name))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 7
