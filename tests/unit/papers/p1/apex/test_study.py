# SPDX-License-Identifier: MIT
"""The study behind Figures 5 to 10 of bandwidth sharing, and their drawings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, judge
from penstock.experiments.output.charts import binned, over_base
from penstock.experiments.output.plots import save_figure
from penstock.experiments.reproduction import Scale
from penstock.experiments.resampling import group_count
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.experiments.study import Study, sweep
from penstock.papers import get_figure
from penstock.papers.p1.apex.bands import TRACES
from penstock.papers.p1.policies import ALL_POLICIES
from support.apex_tables import tables_of, window

NAMES = ["p1-windows", *(f"p1-fig{number}" for number in range(5, 11))]
FACTS = {"version": "0", "command": "test"}


# --- The study and the figures ----------------------------------------------------


def _study(name: str, scale: Scale) -> Study:
    study = get_figure(name).study(scale)
    assert isinstance(study, Study)
    return study


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return the tables of a small study: 5 days, 3 windows, 3 machines."""
    folder: Path = tmp_path_factory.mktemp("apex")
    fixed = {"days": 5.0, "windows": 3}
    swept: dict[str, Sequence[float | str]] = {"trace": TRACES, "machine": (0, 6, 10)}
    study = Study("p1-apex", sweep("apex", fixed, swept), 3, ALL_POLICIES)
    rows = run_study(study, folder, Inline())
    return Tables(rows, pl.read_parquet(folder / "times.parquet"))


def test_all_figures_share_one_study() -> None:
    for scale in Scale:
        digests = {_study(name, scale).digest() for name in NAMES}
        assert len(digests) == 1


def test_the_paper_has_100_schedules_of_20_windows_on_11_machines() -> None:
    study = _study("p1-fig5", Scale.PAPER)
    assert len(study.points) == 2 * 11
    assert study.instances == 100 * 20
    assert study.policies == ALL_POLICIES
    assert {piece.count for piece in study.pieces()} == {20}


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_draws(name: str, tables: Tables, tmp_path: Path) -> None:
    figure = get_figure(name)
    prepared = figure.prepare(tables)
    drawn = figure.draw(prepared)
    assert isinstance(drawn, Figure)
    for kind in ("png", "svg"):
        path = tmp_path / f"figure.{kind}"
        save_figure(drawn, str(path), FACTS)
        assert path.stat().st_size > 5_000
    assert figure.summary(prepared).height > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_claims_of_a_figure_are_judged(name: str, tables: Tables) -> None:
    figure = get_figure(name)
    records = judge(figure.claims, figure.prepare(tables))
    assert [r["name"] for r in records] == [c.name for c in figure.claims]
    assert all(r["numbers"] for r in records)


@pytest.mark.parametrize("name", NAMES)
def test_resamples_of_a_figure_draw_whole_schedules(name: str, tables: Tables) -> None:
    """The tables have one schedule of three windows; here are four copies of it."""
    copies = [tables.rows.with_columns(pl.col("instance") + 3 * n) for n in range(4)]
    times = [tables.times.with_columns(pl.col("instance") + 3 * n) for n in range(4)]
    # Every window is in the range of W that the figure shows.
    rows = pl.concat(copies).with_columns(pressure=pl.lit(1.0))
    prepared = get_figure(name).prepare(Tables(rows, pl.concat(times)))
    assert prepared.rows["instance"].n_unique() == 12
    assert group_count(prepared) == 4


def test_every_window_is_in_the_table_of_windows(tables: Tables) -> None:
    windows = get_figure("p1-windows")
    found = windows.summary(windows.prepare(tables))
    assert found.select("trace", "machine", "windows").rows() == [
        (trace, machine, 3) for trace in TRACES for machine in (0, 6, 10)
    ]
    celio = found.row(0, named=True)
    assert celio["usage"] == pytest.approx(celio["nodes"] / 8894)
    assert 0 < celio["mean_capped_nodes"] <= 167


@pytest.mark.parametrize(("name", "low"), [("p1-fig5", 0.4), ("p1-fig8", 0.5)])
def test_a_figure_shows_the_range_of_the_paper(
    name: str, low: float, tables: Tables
) -> None:
    figure = get_figure(name)
    prepared = figure.prepare(tables)
    assert prepared.rows["pressure"].is_between(low, 1.4).all()
    for axis in figure.draw(prepared).axes[:2]:
        assert axis.get_xlim() == (low, 1.4)


def test_figure_7_keeps_a_row_per_window(tables: Tables) -> None:
    figure = get_figure("p1-fig7")
    prepared = figure.prepare(tables)
    found = figure.summary(prepared)
    assert found.height == prepared.rows.filter(pl.col("trace") == "TRILAB").height
    assert set(ALL_POLICIES) <= set(found.columns)
    assert (found["fair-share"] == 1).all()


# --- The rows that the figures show ----------------------------------------------


def test_over_base_divides_within_a_window() -> None:
    rows = tables_of(window({"fair-share": 0.5, "fcfs": 0.25}, 0.3)).rows
    found = over_base(rows, "min_yield", "fair-share")
    ratios = dict(zip(found["policy"], found["ratio"], strict=True))
    assert ratios["fcfs"] == 0.5
    assert ratios["fair-share"] == 1


def test_binned_has_25_intervals_and_both_ends() -> None:
    middles = 0.52 + 0.04 * np.arange(25)
    pressures = np.array([0.5, *middles, 1.5])
    rows = pl.DataFrame(
        {"trace": "NERSC", "policy": "fcfs", "pressure": pressures, "value": pressures}
    )
    found = binned(rows, "value", "trace")
    assert found["pressure"].to_list() == pytest.approx(middles)
    assert found["windows"].to_list() == [2, *[1] * 23, 2]
    assert found["mean"].to_list() == pytest.approx([0.51, *middles[1:-1], 1.49])
    assert found["deviation"][-1] == pytest.approx(0.01)


def test_binned_with_a_single_window() -> None:
    rows = window({}, 0.7)
    found = binned(rows, "min_yield", "trace")
    assert found["pressure"].to_list() == [0.7] * 8
    assert found["deviation"].to_list() == [0.0] * 8
