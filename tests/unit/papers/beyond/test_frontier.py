# SPDX-License-Identifier: MIT
"""The frontier: its points, its tables, and claims that can hold and can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.plots import save_figure
from penstock.experiments.reproduction import Scale
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.papers import FIGURES, get_figure
from penstock.papers.beyond.frontier_claims import (
    DOMINATION,
    GAINS,
    UTILIZATION,
    WINDOWS,
)
from penstock.papers.beyond.frontier_study import FrontierPoint, frontier_study
from penstock.papers.beyond.frontier_tables import (
    LOOK,
    count_dominations,
    differences,
    means,
    points_of,
    windows_under_base,
)
from penstock.papers.p1.policies import EIGHT
from penstock.policies import POLICIES, RECOMMENDED

NAMES = [
    name for name, entry in FIGURES.items() if entry.module.endswith("beyond.frontier")
]
FACTS = {"version": "0", "command": "test"}
WORSE = -0.05


# --- The study ---------------------------------------------------------------------


def test_all_figures_share_one_study() -> None:
    for scale in Scale:
        digests = {get_figure(name).study(scale).digest() for name in NAMES}
        assert digests == {frontier_study(scale).digest()}


def test_what_is_compared_at_paper_scale() -> None:
    study = frontier_study(Scale.PAPER)
    groups = [point.group for point in study.points]
    counts = {group: groups.count(group) for group in dict.fromkeys(groups)}
    assert counts == {
        "pressure": 6,
        "parameters": 12,
        "io-sets": 9,
        "NERSC": 11,
        "TRILAB": 11,
        "caps": 3,
        "history": 3,
    }
    assert study.instances >= 200
    assert study.bounded
    assert set(study.policies) == set(POLICIES)


def test_the_seed_of_the_report_was_not_trained_on() -> None:
    assert frontier_study(Scale.PAPER).seed not in {101, 102, 103, 104}


def test_every_point_has_a_name_of_its_own() -> None:
    labels = [point.label for point in frontier_study(Scale.PAPER).points]
    assert len(set(labels)) == len(labels)
    assert {"W=0.8", "W=1"} < set(labels)


def _point(variant: str) -> FrontierPoint:
    settings = (("pressure", 0.8), ("horizon", 20_000.0))
    return FrontierPoint("synthetic", settings, "group", "label", variant)


def test_unequal_caps() -> None:
    plain, varied = (_point(v).family().instance(7, 0) for v in ("", "caps"))
    assert set(varied.caps) == {0.25, 0.5, 1.0}
    assert {a.nodes for a in varied.applications} == {1, 2, 4, 8}
    assert varied.window.end >= plain.window.end
    for ours, theirs in zip(varied.applications, plain.applications, strict=True):
        np.testing.assert_array_equal(ours.volume, theirs.volume)
        np.testing.assert_array_equal(ours.work, theirs.work)


def test_history() -> None:
    plain, varied = (_point(v).family().instance(7, 0) for v in ("", "history"))
    assert varied.window == plain.window
    for application, cap in varied.with_caps():
        age = application.start - application.release
        assert 0 <= age <= 0.25 * varied.window.length
        assert 0 <= application.lost_at_start(cap) <= 0.1 * age + 1e-9
    assert len({a.release for a in varied.applications}) == 60


@pytest.mark.parametrize("variant", ["caps", "history"])
def test_a_varied_instance_is_the_same_every_time(variant: str) -> None:
    first, again, other = (
        _point(variant).family().instance(7, index).digest() for index in (0, 0, 1)
    )
    assert first == again != other


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return the tables of a small study: four short instances of five points."""
    study = frontier_study(Scale.SMOKE)
    wanted = {"W=0.8", "W=1", "NERSC M_0", "TRILAB M_8", "history W=0.8"}
    points = tuple(_short(p) for p in study.points if p.label in wanted)
    folder: Path = tmp_path_factory.mktemp("frontier")
    rows = run_study(replace(study, points=points), folder, Inline())
    return Tables(rows, pl.read_parquet(folder / "times.parquet"))


def _short(point: FrontierPoint) -> FrontierPoint:
    if point.workload != "synthetic":
        return point
    settings = tuple((k, 30_000.0 if k == "horizon" else v) for k, v in point.settings)
    return replace(point, settings=settings)


def test_rows_say_where_they_come_from(tables: Tables) -> None:
    rows = tables.rows
    assert rows.height == 5 * 4 * len(POLICIES)
    labels = dict(zip(rows["label"], rows["group"], strict=True))
    assert labels["NERSC M_0"] == "NERSC"
    assert labels["history W=0.8"] == "history"


def test_nobody_exceeds_the_bound(tables: Tables) -> None:
    assert (tables.rows["min_yield"] <= tables.rows["bound"] + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_draws(name: str, tables: Tables, tmp_path: Path) -> None:
    figure = get_figure(name)
    drawn = figure.draw(tables)
    assert isinstance(drawn, Figure)
    path = tmp_path / "figure.png"
    save_figure(drawn, str(path), FACTS)
    assert path.stat().st_size > 5_000
    assert figure.summary(tables).height > 0


# --- Tables, from numbers that are known -------------------------------------------


def _rows(
    gains: dict[str, tuple[float, float]],
    *,
    group: str = "pressure",
    label: str = "W=0.8",
    point: int = 0,
    spread: float = 0.01,
) -> pl.DataFrame:
    """Return a point where all policies are alike, but for some gains.

    Instances differ by `spread`, the gains do not. The bound is 0.1 above the rest.
    """
    rows = []
    for policy in (*EIGHT, RECOMMENDED):
        gain, efficiency = gains.get(policy, (0.0, 0.0))
        for instance in range(6):
            base = 0.8 + spread * instance
            rows.append(
                {
                    "point": point,
                    "group": group,
                    "label": label,
                    "instance": instance,
                    "policy": policy,
                    "min_yield": base + gain,
                    "efficiency": base + efficiency,
                    "utilization": base + efficiency,
                    "bound": base + 0.1,
                }
            )
    return pl.DataFrame(rows)


AHEAD = {"greedy-yield": (0.01, 0.0), LOOK: (0.0, 0.01), RECOMMENDED: (0.04, 0.03)}


def test_the_best_of_the_eight_is_by_min_yield() -> None:
    (point,) = points_of(_rows(AHEAD))
    assert point.best == "greedy-yield"
    assert point.gain(RECOMMENDED).mean == pytest.approx(0.03)
    assert point.efficiency_gain(RECOMMENDED).mean == pytest.approx(0.02)
    assert point.gap_closed(RECOMMENDED) == pytest.approx(0.03 / 0.09)


def test_domination_is_counted_per_pair() -> None:
    rows = pl.concat([_rows(AHEAD), _rows({}, point=1, label="W=1")])
    found = count_dominations(rows)
    ours = found.row(by_predicate=pl.col("policy") == RECOMMENDED, named=True)
    assert ours["points"] == 2
    assert ours["fcfs"] == ours[LOOK] == 1
    assert ours[RECOMMENDED] == 0
    theirs = found.row(by_predicate=pl.col("policy") == "fcfs", named=True)
    assert sum(theirs[p] for p in (*EIGHT, RECOMMENDED)) == 0


def test_one_better_objective_is_no_domination() -> None:
    (point,) = points_of(_rows({"greedy-com": (WORSE, 0.05)}))
    assert not point.dominates("greedy-com", RECOMMENDED)
    assert not point.dominates(RECOMMENDED, "greedy-com")


def test_differences_and_means_agree() -> None:
    rows = _rows(AHEAD)
    difference = differences(rows, (RECOMMENDED,)).row(0, named=True)
    mean = means(rows).row(by_predicate=pl.col("policy") == RECOMMENDED, named=True)
    assert difference["min_yield"] == mean["min_yield"]
    assert difference["both_significant"]
    assert mean["instances"] == 6
    assert mean["min_yield_error"] > 10 * difference["min_yield_gain_error"]


def test_windows_under_fair_share_are_counted() -> None:
    rows = _rows({RECOMMENDED: (-0.00805, 0.0)}, group="NERSC", label="NERSC M_3")
    found = windows_under_base(rows).row(
        by_predicate=pl.col("policy") == RECOMMENDED, named=True
    )
    # 0.00805 is more than 1 % of 0.80, and not of 0.81 or more.
    assert (found["windows"], found["under"]) == (6, 1)
    assert (found["lowest_point"], found["lowest_window"]) == ("NERSC M_3", 0)
    assert found["lowest"] == pytest.approx(1 - 0.00805 / 0.8)


# --- Claims ------------------------------------------------------------------------


def _all_groups(gains: dict[str, tuple[float, float]]) -> Tables:
    places = {
        "pressure": ("W=0.8", "W=1"),
        "io-sets": ("n_H=0",),
        "NERSC": ("NERSC M_0",),
        "TRILAB": ("TRILAB M_0",),
        "parameters": ("noise=0",),
        "caps": ("caps W=0.8",),
        "history": ("history W=0.8",),
    }
    named = [(group, label) for group, labels in places.items() for label in labels]
    parts = [
        _rows(gains, group=group, label=label, point=number)
        for number, (group, label) in enumerate(named)
    ]
    return Tables(pl.concat(parts), pl.DataFrame())


def _verdicts(tables: Tables) -> dict[str, Verdict]:
    claims = (*GAINS, *DOMINATION, *WINDOWS, *UTILIZATION)
    return {claim.name: claim.check(tables) for claim in claims}


def test_all_claims_hold_for_a_default_that_is_ahead() -> None:
    found = _verdicts(_all_groups(AHEAD))
    assert {name for name, verdict in found.items() if not verdict.holds} == set()
    assert found["default-ahead"].numbers == {"points": 5, "points missed": 0}


def test_no_claim_holds_for_a_default_that_is_behind() -> None:
    found = _verdicts(_all_groups({RECOMMENDED: (WORSE, WORSE)}))
    assert {name for name, verdict in found.items() if verdict.holds} == set()
    ahead = found["default-ahead"].numbers
    assert ahead["points missed"] == 5
    assert ahead["W=0.8 MinYield"] == pytest.approx(WORSE)


def test_a_miss_in_efficiency_alone_is_a_miss() -> None:
    found = _verdicts(_all_groups({**AHEAD, RECOMMENDED: (0.04, 0.005)}))
    assert not found["default-ahead"].holds
    assert found["default-ahead"].numbers["points missed"] == 5
    assert found["default-closes-a-quarter"].holds
