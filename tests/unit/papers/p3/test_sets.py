# SPDX-License-Identifier: MIT
"""Figure 1 of IO-SETS and the ablation: studies, drawings, and claims on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.study import Study
from penstock.papers import FIGURES
from penstock.papers.p3.sets import ablation, fig1a, fig1b
from support.claim_flips import assert_all_claims, assert_flips, holds

EXCLUSIVE, FAIR, SET_10 = "exclusive-fcfs", "fair-share", "set-10:period=given"
SETS_ONLY, PRIORITIES_ONLY = (
    "set-fair-share:period=given",
    "share-priority:period=given",
)
POLICIES = (EXCLUSIVE, FAIR, SET_10, "set-10", SETS_ONLY, PRIORITIES_ONLY)
N_HIGH = (0, 10, 20, 30, 40)

#: (metric, policy) -> mean at every n_H, or at each of the five n_H.
Values: TypeAlias = Mapping[tuple[str, str], float | tuple[float, ...]]


def _at(values: Values, metric: str, policy: str, number: int) -> float:
    value = values.get((metric, policy), 0.8 if metric == "set_utilization" else 2.0)
    return value[number] if isinstance(value, tuple) else value


def _tables(values: Values, noisy: Values | None = None) -> Tables:
    """Return two workloads per n_H and noise.

    The Utilization is 0.8 and the Stretch is 2 unless `values` says otherwise. The
    second workload has a Stretch that is 0.2 higher.
    """
    rows: list[dict[str, Any]] = [
        {
            "point": (noise > 0) * 10 + number,
            "instance": instance,
            "policy": policy,
            "n_high": n_high,
            "noise": noise,
            "set_utilization": _at(level, "set_utilization", policy, number),
            "stretch": _at(level, "stretch", policy, number) + 0.2 * instance,
            "yields": [0.5, 0.9, 0.9],
        }
        for noise, level in ((0.0, values), (0.5, values if noisy is None else noisy))
        for number, n_high in enumerate(N_HIGH)
        for policy in POLICIES
        for instance in range(2)
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


def _utilization(policy: str, *values: float) -> Values:
    return {("set_utilization", policy): values if len(values) > 1 else values[0]}


def _stretch(policy: str, *values: float) -> Values:
    return {("stretch", policy): values if len(values) > 1 else values[0]}


def _correlated() -> Tables:
    """Return tables in which a high Utilization comes with a high Stretch."""
    values = (0.1, 0.2, 0.3, 0.4, 0.5)
    return _tables(
        {
            ("set_utilization", EXCLUSIVE): values,
            ("stretch", EXCLUSIVE): tuple(10 * v for v in values),
        }
    )


def _other_slowest() -> Tables:
    """Return tables in which another application has the lowest yield, for n_H = 20."""
    tables = _tables({})
    slow = pl.when(pl.col("n_high") == 20).then(pl.lit([0.9] * 30 + [0.5]))
    yields = slow.otherwise(pl.col("yields")).alias("yields")
    return Tables(tables.rows.with_columns(yields), tables.times)


HIGH = {("set_utilization", SET_10): 0.92}
FADING = (0.83, 0.83, 0.82, 0.81, 0.8)

#: Figure, claim, tables for which it holds, tables for which it does not.
FLIPS: list[tuple[Reproduction, str, Tables, Tables]] = [
    (
        fig1a,
        "set10-better-by-4-per-cent",
        _tables(_utilization(SET_10, *FADING)),
        _tables(_utilization(SET_10, 0.9, 0.9, 0.8, 0.8, 0.8)),
    ),
    (
        fig1a,
        "utilization-difference-fades",
        _tables(_utilization(SET_10, *FADING)),
        _tables(_utilization(SET_10, 0.83, 0.83, 0.83, 0.83, 0.81)),
    ),
    (
        fig1a,
        "high-and-stable",
        _tables({**_utilization(FAIR, 0.91, 0.91, 0.91, 0.91, 0.95), **HIGH}),
        _tables({**_utilization(FAIR, 0.91, 0.91, 0.91, 0.91, 0.97), **HIGH}),
    ),
    (
        fig1a,
        "high-and-stable",
        _tables({**_utilization(FAIR, 0.91), **HIGH}),
        _tables({**_utilization(FAIR, 0.89), **HIGH}),
    ),
    (
        fig1a,
        "exclusive-worst-utilization",
        _tables(_utilization(EXCLUSIVE, 0.7)),
        _tables(_utilization(EXCLUSIVE, 0.7, 0.7, 0.7, 0.81, 0.7)),
    ),
    (
        fig1a,
        "exclusive-better-when-large",
        _tables(_utilization(EXCLUSIVE, 0.7, 0.7, 0.6, 0.7, 0.7)),
        _tables(_utilization(EXCLUSIVE, 0.7, 0.7, 0.6, 0.8, 0.8)),
    ),
    (
        fig1b,
        "set10-better-by-15-per-cent",
        _tables(_stretch(SET_10, 1.7, 1.7, 2.0, 2.0, 2.0)),
        _tables(_stretch(SET_10, 1.9)),
    ),
    (
        fig1b,
        "stretch-difference-fades",
        _tables(_stretch(SET_10, 1.7, 1.7, 1.9, 1.9, 2.0)),
        _tables(_stretch(SET_10, 1.7, 1.7, 1.9, 1.8, 1.7)),
    ),
    (
        fig1b,
        "gain-for-low-frequency",
        _tables(_stretch(SET_10, 1.7, 1.7, 1.9, 1.9, 2.0)),
        _tables(_stretch(SET_10, 1.9, 1.9, 1.9, 1.7, 1.7)),
    ),
    (fig1b, "high-frequency-penalized", _tables({}), _other_slowest()),
    (
        fig1b,
        "exclusive-worst-stretch",
        _tables(_stretch(EXCLUSIVE, 3.0)),
        _tables(_stretch(EXCLUSIVE, 3.0, 3.0, 3.0, 3.0, 1.9)),
    ),
    (
        fig1b,
        "utilization-not-correlated",
        _tables(_utilization(EXCLUSIVE, 0.7, 0.5, 0.6, 0.5, 0.7)),
        _correlated(),
    ),
    (
        ablation,
        "both-parts-matter",
        _tables(_stretch(SET_10, 1.9), noisy={}),
        _tables(_stretch(PRIORITIES_ONLY, 1.9), noisy={}),
    ),
    (
        ablation,
        "noise-matters-little",
        _tables({}, noisy=_stretch(SET_10, 2.1)),
        _tables({}, noisy=_stretch(SET_10, 2.2)),
    ),
    (
        ablation,
        "learning-matters-little",
        _tables(_stretch("set-10", 2.1)),
        _tables(_stretch("set-10", 2.2)),
    ),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig1a, fig1b, ablation], [flip[1] for flip in FLIPS])


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"), FLIPS, ids=[flip[1] for flip in FLIPS]
)
def test_a_claim_holds_and_fails(
    figure: Reproduction, name: str, good: Tables, bad: Tables
) -> None:
    assert_flips(figure, name, good, bad)


def test_up_to_is_one_workload_and_a_plain_number_is_a_mean() -> None:
    """At n_H = 0 the Stretches are 1.795 against 2 and 1.995 against 2.2."""
    (claim,) = [c for c in fig1b.claims if c.name == "set10-better-by-15-per-cent"]
    verdict = claim.check(_tables(_stretch(SET_10, 1.795, 2.0, 2.0, 2.0, 2.0)))
    (numbers,) = verdict.numbers.values()
    assert numbers["one workload"] == pytest.approx(0.1025)
    assert numbers["mean of one n_H"] == pytest.approx((0.1025 + 0.205 / 2.2) / 2)
    assert not verdict.holds


@pytest.mark.parametrize(("last", "holds"), [(1.97, True), (1.94, False)])
def test_a_difference_has_disappeared_at_the_largest_n_high(
    last: float, holds: bool
) -> None:
    (claim,) = [c for c in fig1b.claims if c.name == "stretch-difference-fades"]
    verdict = claim.check(_tables(_stretch(SET_10, 1.6, 1.6, 1.8, 1.8, last)))
    assert verdict.holds is holds


def test_single_workloads_on_which_exclusive_is_not_the_worst_are_counted() -> None:
    (claim,) = [c for c in fig1b.claims if c.name == "exclusive-worst-stretch"]
    tables = _tables(_stretch(EXCLUSIVE, 2.3))
    better = (pl.col("policy") == EXCLUSIVE) & (pl.col("instance") == 0)
    better &= (pl.col("n_high") == 0) & (pl.col("noise") == 0)
    changed = pl.when(better).then(1.9).otherwise(pl.col("stretch")).alias("stretch")
    verdict = claim.check(Tables(tables.rows.with_columns(changed), tables.times))
    # One of the 20 workloads is better; the means at n_H = 0 are 2.2 and 2.1.
    assert verdict.numbers["single workloads not worst"] == pytest.approx(1 / 20)
    assert verdict.holds


def test_a_claim_without_rows_of_a_policy_fails() -> None:
    rows = _tables({}).rows.filter(pl.col("policy") != SETS_ONLY)
    assert not holds(ablation, "both-parts-matter", Tables(rows, pl.DataFrame()))


def _studied(figure: Reproduction, scale: Scale) -> Study:
    study = figure.study(scale)
    assert isinstance(study, Study)
    return study


def test_every_n_high_of_the_paper_has_20_workloads() -> None:
    study = _studied(fig1a, Scale.PAPER)
    assert study.instances == 20
    counts = [dict(point.settings)["n_high"] for point in study.points]
    assert counts == list(range(41))
    assert study.policies == (EXCLUSIVE, FAIR, SET_10)


@pytest.mark.parametrize("scale", Scale)
def test_both_parts_of_figure_1_share_a_study(scale: Scale) -> None:
    assert _studied(fig1a, scale).digest() == _studied(fig1b, scale).digest()


def test_the_ablation_adds_noise_and_policies() -> None:
    study = _studied(ablation, Scale.SMOKE)
    assert set(study.policies) == set(POLICIES)
    noises = {dict(point.settings)["noise"] for point in study.points}
    assert noises == {0.0, 0.5}


def test_all_three_are_in_the_catalogue() -> None:
    names = [name for name in FIGURES if name.startswith("p3-")]
    assert names == [figure.name for figure in (fig1a, fig1b, ablation)]


@pytest.mark.parametrize(("figure", "panels"), [(fig1a, 1), (fig1b, 1), (ablation, 4)])
def test_the_drawing_has_a_panel_per_metric(figure: Reproduction, panels: int) -> None:
    drawn = figure.draw(_tables({}))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == panels
