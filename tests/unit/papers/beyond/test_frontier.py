# SPDX-License-Identifier: MIT
"""Figures of the frontier draw, and their claims can hold and fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.plots import save_figure
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.papers.beyond.frontier import (
    domination,
    frontier,
    gains,
    utilization,
    windows,
)
from penstock.papers.beyond.frontier_study import FrontierPoint, frontier_study
from penstock.papers.p1.policies import LOOK_AHEAD
from penstock.policies import POLICIES, RECOMMENDED
from support.frontier_rows import AHEAD, WORSE, point_rows

ALL = (frontier, utilization, gains, domination, windows)
FACTS = {"version": "0", "command": "test"}


def test_all_figures_share_one_study() -> None:
    assert {figure.study for figure in ALL} == {frontier_study}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return the tables of a small study: four short instances of five points."""
    study = frontier_study(Scale.SMOKE)
    wanted = {"W=0.8", "W=1", "NERSC M_0", "TRILAB M_8", "history W=0.8"}
    points = tuple(
        _short(p)
        for p in study.points
        if isinstance(p, FrontierPoint) and p.label in wanted
    )
    folder: Path = tmp_path_factory.mktemp("frontier")
    rows = run_study(replace(study, points=points), folder, Inline())
    return frontier.prepare(Tables(rows, pl.read_parquet(folder / "times.parquet")))


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


def test_no_policy_exceeds_the_bound(tables: Tables) -> None:
    assert (tables.rows["min_yield"] <= tables.rows["bound"] + 1e-9).all()


@pytest.mark.parametrize("figure", ALL, ids=[figure.name for figure in ALL])
def test_a_figure_draws(figure: Reproduction, tables: Tables, tmp_path: Path) -> None:
    drawn = figure.draw(tables)
    assert isinstance(drawn, Figure)
    path = tmp_path / "figure.png"
    save_figure(drawn, str(path), FACTS)
    assert path.stat().st_size > 5_000
    assert figure.summary(tables).height > 0


# --- Claims, on rows made by hand --------------------------------------------------


def _all_groups(gains_of: dict[str, tuple[float, float]]) -> Tables:
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
        point_rows(gains_of, group=group, label=label, point=number)
        for number, (group, label) in enumerate(named)
    ]
    return Tables(pl.concat(parts), pl.DataFrame())


def _verdicts(tables: Tables) -> dict[str, Verdict]:
    claims = [claim for figure in ALL for claim in figure.claims]
    return {claim.name: claim.check(tables) for claim in claims}


def test_all_claims_hold_for_a_default_that_is_ahead() -> None:
    verdicts = _verdicts(_all_groups(AHEAD))
    assert {name for name, verdict in verdicts.items() if not verdict.holds} == set()
    assert verdicts["default-ahead"].numbers == {"points": 5, "points missed": 0}


def test_no_claim_holds_for_a_default_that_is_behind() -> None:
    verdicts = _verdicts(_all_groups({RECOMMENDED: (WORSE, WORSE)}))
    assert {name for name, verdict in verdicts.items() if verdict.holds} == set()
    ahead = verdicts["default-ahead"].numbers
    assert ahead["points missed"] == 5
    assert ahead["W=0.8"]["MinYield gain"] == pytest.approx(WORSE)
    regret = verdicts["default-least-regret"].numbers
    assert regret[RECOMMENDED]["largest distance"] == pytest.approx(-WORSE)


def test_a_miss_in_efficiency_alone_is_a_miss() -> None:
    verdicts = _verdicts(_all_groups({**AHEAD, RECOMMENDED: (0.04, 0.005)}))
    assert not verdicts["default-ahead"].holds
    assert verdicts["default-ahead"].numbers["points missed"] == 5
    assert verdicts["default-closes-a-quarter"].holds


def test_every_claim_is_counted_once() -> None:
    names = [claim.name for figure in ALL for claim in figure.claims]
    assert len(names) == len(set(names)) == 8
    assert all(figure.claims for figure in ALL)


def test_one_schedule_says_nothing_about_significance(tables: Tables) -> None:
    """Four windows of an APEX point are of one schedule: the interval is unknown."""
    widths = gains.summary(tables).filter(pl.col("group").is_in(["NERSC", "TRILAB"]))
    assert widths["min_yield_gain_error"].is_infinite().all()
    assert not widths["both_significant"].any()


def test_the_worst_case_is_that_of_the_worst_point() -> None:
    """Every policy of the eight is 0.02 behind somewhere, the default 0.01."""
    parts = []
    for number, best in enumerate(("greedy-yield", LOOK_AHEAD)):
        of_point = {best: (0.02, 0.0), RECOMMENDED: (0.01, 0.0)}
        parts.append(point_rows(of_point, label=f"W={number}", point=number))
    verdict = _verdicts(Tables(pl.concat(parts), pl.DataFrame()))[
        "default-least-regret"
    ]
    assert verdict.holds
    far = {policy: row["largest distance"] for policy, row in verdict.numbers.items()}
    assert far[RECOMMENDED] == pytest.approx(0.01)
    assert far[LOOK_AHEAD] == far["fcfs"] == pytest.approx(0.02)
