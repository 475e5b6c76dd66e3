# SPDX-License-Identifier: MIT
"""Claims of Figure 2 of bandwidth sharing (I/O pressure): each can hold and fail."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    BEST_NEXT_EVENT,
    FAIR_SHARE,
    GREEDY_COM,
    GREEDY_YIELD,
    LOOK_AHEAD,
    PERIODIC,
    YIELD_BASED,
)
from penstock.papers.p1.pressure import fig2
from penstock.papers.p1.synthetic import PRESSURES
from support.apex_tables import claim_of

#: (metric, policy) -> value at all pressures, or at one: (metric, policy, W) -> value.
Values = Mapping[tuple[str, str] | tuple[str, str, float], float]


def _tables(values: Values) -> Tables:
    """Return objectives of 0.9 at every pressure, unless `values` says otherwise."""
    rows = [
        {
            "instance": instance,
            "policy": policy,
            "aimed_pressure": pressure,
            "pressure": pressure + 0.01,
            "yields": [0.9],
            **{
                metric: values.get(
                    (metric, policy, pressure), values.get((metric, policy), 0.9)
                )
                for metric in ("min_yield", "efficiency", "utilization")
            },
        }
        for pressure in PRESSURES
        for policy in ALL_POLICIES
        for instance in range(2)
    ]
    return fig2.prepare(Tables(pl.DataFrame(rows), pl.DataFrame()))


def _min_yields(*policies: str, value: float) -> Values:
    return {("min_yield", policy): value for policy in policies}


OTHERS = tuple(policy for policy in ALL_POLICIES if policy not in YIELD_BASED)
#: The authors' published means.
PUBLISHED: Values = {
    ("min_yield", FAIR_SHARE, 0.5): 0.984,
    ("min_yield", FAIR_SHARE, 0.8): 0.932,
    ("min_yield", "fcfs", 0.5): 0.765,
    ("min_yield", "fcfs", 0.8): 0.577,
    ("min_yield", "set-10", 0.5): 0.986,
    ("min_yield", "set-10", 0.8): 0.935,
    ("min_yield", GREEDY_YIELD, 0.5): 0.991,
    ("min_yield", GREEDY_YIELD, 0.8): 0.965,
    ("min_yield", GREEDY_COM, 0.5): 0.986,
    ("min_yield", GREEDY_COM, 0.8): 0.934,
    ("min_yield", LOOK_AHEAD, 0.5): 0.992,
    ("min_yield", LOOK_AHEAD, 0.8): 0.965,
    ("min_yield", PERIODIC, 0.5): 0.991,
    ("min_yield", PERIODIC, 0.8): 0.964,
    ("min_yield", BEST_NEXT_EVENT, 0.5): 0.990,
    ("min_yield", BEST_NEXT_EVENT, 0.8): 0.962,
    ("efficiency", FAIR_SHARE, 0.5): 0.993,
    ("efficiency", FAIR_SHARE, 0.8): 0.968,
    ("efficiency", "fcfs", 0.5): 0.949,
    ("efficiency", "fcfs", 0.8): 0.880,
    ("efficiency", "set-10", 0.5): 0.993,
    ("efficiency", "set-10", 0.8): 0.976,
    ("efficiency", GREEDY_YIELD, 0.5): 0.992,
    ("efficiency", GREEDY_YIELD, 0.8): 0.966,
    ("efficiency", GREEDY_COM, 0.5): 0.997,
    ("efficiency", GREEDY_COM, 0.8): 0.988,
    ("efficiency", LOOK_AHEAD, 0.5): 0.993,
    ("efficiency", LOOK_AHEAD, 0.8): 0.969,
    ("efficiency", PERIODIC, 0.5): 0.992,
    ("efficiency", PERIODIC, 0.8): 0.966,
    ("efficiency", BEST_NEXT_EVENT, 0.5): 0.991,
    ("efficiency", BEST_NEXT_EVENT, 0.8): 0.967,
}


def _platform(policy: str, value: float) -> Values:
    return {(metric, policy): value for metric in ("efficiency", "utilization")}


#: Claim, objectives for which it holds, objectives for which it does not.
FLIPS: list[tuple[str, Values, Values]] = [
    (
        "others-fail",
        _min_yields(*OTHERS, value=0.89),
        {**_min_yields(*OTHERS, value=0.89), ("min_yield", FAIR_SHARE, 1.0): 0.9},
    ),
    (
        "yield-based-stay-high",
        _min_yields(*OTHERS, value=0.1),
        {("min_yield", BEST_NEXT_EVENT, 1.1): 0.89},
    ),
    (
        "yield-based-degrade-slowly",
        {("min_yield", policy, 1.1): 0.7 for policy in OTHERS},
        {("min_yield", policy, 1.1): 0.7 for policy in (*OTHERS, LOOK_AHEAD)},
    ),
    (
        "yield-based-ahead",
        _min_yields(*YIELD_BASED, value=0.95),
        {**_min_yields(*YIELD_BASED, value=0.95), ("min_yield", GREEDY_COM, 0.8): 0.96},
    ),
    (
        "yield-based-alike",
        {("min_yield", BEST_NEXT_EVENT): 0.86},
        {("min_yield", BEST_NEXT_EVENT, 1.1): 0.84},
    ),
    (
        "look-ahead-slightly-worse",
        _min_yields(LOOK_AHEAD, BEST_NEXT_EVENT, value=0.89),
        {
            **_min_yields(LOOK_AHEAD, BEST_NEXT_EVENT, value=0.89),
            ("min_yield", LOOK_AHEAD, 0.2): 0.91,
        },
    ),
    (
        "greedy-no-worse-than-best-next-event",
        {("min_yield", GREEDY_YIELD): 0.896},
        {("min_yield", GREEDY_YIELD, 0.5): 0.894},
    ),
    ("fcfs-worst", _platform("fcfs", 0.8), {("efficiency", "fcfs", 0.9): 0.91}),
    (
        "greedy-com-best",
        _platform(GREEDY_COM, 0.95),
        {**_platform(GREEDY_COM, 0.95), ("utilization", FAIR_SHARE, 1.0): 0.96},
    ),
    (
        "greedy-com-starves",
        {("min_yield", GREEDY_COM): 0.7},
        {("min_yield", GREEDY_COM): 0.7, ("min_yield", GREEDY_COM, 1.1): 0.9},
    ),
    (
        "loss-under-five-per-cent",
        _platform(BEST_NEXT_EVENT, 0.86),
        {("utilization", BEST_NEXT_EVENT, 0.2): 0.85},
    ),
    (
        "others-between",
        {**_platform("fcfs", 0.8), ("efficiency", FAIR_SHARE): 0.86},
        {**_platform("fcfs", 0.8), ("efficiency", FAIR_SHARE): 0.84},
    ),
    (
        "fairness-costs-efficiency",
        {**_min_yields(*YIELD_BASED, value=0.95), **_platform(FAIR_SHARE, 0.91)},
        {**_min_yields(*YIELD_BASED, value=0.95), **_platform(FAIR_SHARE, 0.89)},
    ),
    (
        "loss-at-the-largest-pressure-only",
        {("efficiency", BEST_NEXT_EVENT, 1.1): 0.8},
        {("efficiency", BEST_NEXT_EVENT, 1.0): 0.89},
    ),
    ("published-means", PUBLISHED, {**PUBLISHED, ("efficiency", "fcfs", 0.8): 0.882}),
    (
        "look-ahead-more-efficient",
        {**_platform(LOOK_AHEAD, 0.95), ("efficiency", LOOK_AHEAD, 1.1): 0.8},
        {**_platform(LOOK_AHEAD, 0.95), ("efficiency", LOOK_AHEAD, 1.0): 0.8},
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip[0] for flip in FLIPS} == {claim.name for claim in fig2.claims}


@pytest.mark.parametrize(("name", "good", "bad"), FLIPS, ids=[f[0] for f in FLIPS])
def test_a_claim_holds_and_fails(name: str, good: Values, bad: Values) -> None:
    check = claim_of(fig2, name).check
    held, failed = check(_tables(good)), check(_tables(bad))
    assert held.holds, held.numbers
    assert not failed.holds, failed.numbers


def test_a_published_mean_may_differ_by_the_sampling_error() -> None:
    """Two instances 0.75 and 0.79 have s = 0.028 and a wide Student quantile."""
    check = claim_of(fig2, "published-means").check
    tables = _tables(PUBLISHED)
    of_fcfs = (pl.col("policy") == "fcfs") & (pl.col("pressure") == 0.5)
    spread = pl.when(of_fcfs & (pl.col("instance") == 0)).then(0.75)
    other = spread.when(of_fcfs).then(0.79).otherwise(pl.col("min_yield"))
    rows = tables.rows.with_columns(other.alias("min_yield"))
    verdict = check(Tables(rows, tables.times))
    assert verdict.holds
    # Student's quantile for one degree of freedom is tan(pi (p - 1/2)).
    quantile = math.tan(math.pi * (0.5 - 0.025 / 32))
    largest = quantile * math.sqrt(2) * 0.02 * math.sqrt(1 / 2 + 1 / 10) + 0.0005
    number = verdict.numbers["fcfs"]["MinYield, W = 0.5"]
    assert number == pytest.approx((0.77 - 0.765) / largest)


def test_single_means_name_the_pressures_at_which_a_claim_holds() -> None:
    values: Values = {("min_yield", BEST_NEXT_EVENT, 1.1): 0.89}
    verdict = claim_of(fig2, "yield-based-stay-high").check(_tables(values))
    assert verdict.depends_on == "W"
    assert verdict.holds_at == ("0.2", "0.5", "0.8", "0.9", "1")


def test_rows_are_sorted_by_the_aimed_pressure() -> None:
    prepared = _tables({})
    assert "aimed_pressure" not in prepared.rows.columns
    assert prepared.rows["pressure"].unique().sort().to_list() == list(PRESSURES)


def test_the_table_beside_the_figure_leaves_out_single_yields() -> None:
    assert "yields" not in fig2.summary(_tables({})).columns


def test_the_drawing_has_a_panel_per_objective() -> None:
    drawn = fig2.draw(_tables({}))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 3
