# SPDX-License-Identifier: MIT
"""Figures 5 to 10 of papers/1: they draw, and every claim can hold and can fail."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Claim, Tables, judge
from penstock.experiments.output.charts import binned, over_base
from penstock.experiments.output.plots import save_figure
from penstock.experiments.reproduction import Scale
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.experiments.study import Study, sweep
from penstock.papers import FIGURES, get_figure
from penstock.papers.p1.apex_claims import BY_FIGURE, timed
from penstock.papers.p1.policies_of_paper import EIGHT

NAMES = [name for name, entry in FIGURES.items() if entry.module.endswith("p1.apex")]
FACTS = {"version": "0", "command": "test"}


# --- The study and the figures ----------------------------------------------------


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return the tables of a small study: 5 days, 2 windows, 2 machines."""
    folder: Path = tmp_path_factory.mktemp("apex")
    fixed = {"days": 5.0, "windows": 2}
    swept = {"trace": ("NERSC", "TRILAB"), "machine": (0, 10)}
    study = Study("p1-apex", sweep("apex", fixed, swept), 2, EIGHT)
    rows = run_study(study, folder, Inline())
    return Tables(rows, pl.read_parquet(folder / "times.parquet"))


def test_there_are_six_figures() -> None:
    assert [f"p1-fig{number}" for number in range(5, 11)] == NAMES


def test_all_figures_share_one_study() -> None:
    for scale in Scale:
        digests = {get_figure(name).study(scale).digest() for name in NAMES}
        assert len(digests) == 1


def test_the_paper_has_100_schedules_of_20_windows_on_11_machines() -> None:
    study = get_figure("p1-fig5").study(Scale.PAPER)
    assert len(study.points) == 2 * 11
    assert study.instances == 100 * 20
    assert study.policies == EIGHT
    assert {piece.count for piece in study.pieces()} == {20}


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_draws(name: str, tables: Tables, tmp_path: Path) -> None:
    figure = get_figure(name)
    drawn = figure.draw(tables)
    assert isinstance(drawn, Figure)
    for kind in ("png", "svg"):
        path = tmp_path / f"figure.{kind}"
        save_figure(drawn, str(path), FACTS)
        assert path.stat().st_size > 5_000
    assert figure.summary(tables).height > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_claims_of_a_figure_are_judged(name: str, tables: Tables) -> None:
    claims = get_figure(name).claims
    records = judge(claims, tables)
    assert [r["name"] for r in records] == [c.name for c in claims]
    assert len({c.name for c in claims}) == len(claims)
    assert all(r["numbers"] for r in records)


def test_window_statistics(tables: Tables) -> None:
    found = get_figure("p1-fig5").summary(tables)
    assert found.select("trace", "machine", "windows").rows() == [
        ("NERSC", 0, 2),
        ("NERSC", 10, 2),
        ("TRILAB", 0, 2),
        ("TRILAB", 10, 2),
    ]
    assert found["usage"].is_between(0.5, 1.0).all()
    celio = found.row(0, named=True)
    assert celio["usage"] == pytest.approx(celio["nodes"] / 8894)


def test_ratios_have_a_line_per_window(tables: Tables) -> None:
    found = get_figure("p1-fig7").summary(tables)
    assert found.height == 4
    assert set(found["trace"]) == {"TRILAB"}
    assert set(EIGHT) <= set(found.columns)
    assert (found["fair-share"] == 1).all()


# --- What the figures are drawn from ----------------------------------------------


def test_over_base_divides_within_a_window() -> None:
    rows = _rows({"fair-share": 0.5, "fcfs": 0.25}, pressure=0.3)
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
    rows = _rows({}, pressure=0.7)
    found = binned(rows, "min_yield", "trace")
    assert found["pressure"].to_list() == [0.7] * 8
    assert found["deviation"].to_list() == [0.0] * 8


def test_timed_joins_by_window_and_policy() -> None:
    made = _tables(_rows({}, pressure=0.3), seconds={"fcfs": 0.25})
    shuffled = Tables(made.rows, made.times.reverse())
    found = timed(shuffled).filter(pl.col("policy") == "fcfs")
    assert found["seconds"].to_list() == [0.25]


# --- Claims, on tables made by hand -----------------------------------------------


def _rows(
    yields: Mapping[str, float],
    pressure: float,
    trace: str = "NERSC",
    point: int = 0,
    **columns: Any,
) -> pl.DataFrame:
    """Return the rows of one window: MinYield 0.5, but for the policies named.

    A column is a value for all policies, or a value for each of some, others 0.5.
    """
    values = {
        name: [c.get(p, 0.5) for p in EIGHT] if isinstance(c, Mapping) else [c] * 8
        for name, c in columns.items()
    }
    facts = {
        "machine": 0,
        "window": 7200.0,
        "applications": 10,
        "nodes": 1000,
        "efficiency": 0.5,
        "utilization": 0.5,
        "decisions": 10,
        **values,
    }
    return pl.DataFrame(
        {
            "point": [point] * 8,
            "instance": [0] * 8,
            "trace": [trace] * 8,
            "policy": EIGHT,
            "pressure": [pressure] * 8,
            "min_yield": [yields.get(p, 0.5) for p in EIGHT],
            **{k: v if isinstance(v, list) else [v] * 8 for k, v in facts.items()},
        }
    )


def _tables(*windows: pl.DataFrame, seconds: Mapping[str, float] | None = None) -> Any:
    """Return the tables of some windows; a run takes 1 ms, but for those named."""
    numbered = [
        rows.with_columns(pl.lit(number).alias("point"))
        for number, rows in enumerate(windows)
    ]
    rows = pl.concat(numbered)
    took = [(seconds or {}).get(policy, 1e-3) for policy in rows["policy"]]
    times = rows.select("point", "instance", "policy").with_columns(
        pl.Series("seconds", took)
    )
    return Tables(rows, times)


def _claim(figure: int, name: str) -> Claim:
    (claim,) = [c for c in BY_FIGURE[figure] if c.name == name]
    return claim


def _both(
    yields: Mapping[str, float], pressure: float, **columns: Any
) -> list[pl.DataFrame]:
    return [_rows(yields, pressure, trace, **columns) for trace in ("NERSC", "TRILAB")]


FAIR = "fair-share"
LOOK = "look-ahead-greedy-yield"
PERIODIC = "periodic-greedy-yield"
BEST = "best-next-event"
COM = "greedy-com"
YIELD = "greedy-yield"
SECOND = ("fcfs", "set-10", YIELD)
THIRD = (LOOK, PERIODIC, BEST)
SEVEN = (COM, *SECOND, *THIRD)
PRESSURES = (0.3, 0.7, 1.1)


def _bands(
    policies: tuple[str, ...], ratios: tuple[float, ...], trace: str
) -> list[pl.DataFrame]:
    """Return a window per band of pressure in which policies have these ratios."""
    return [
        _rows(dict.fromkeys(policies, 0.5 * ratio), pressure, trace)
        for ratio, pressure in zip(ratios, PRESSURES, strict=True)
    ]


#: Figure, claim, windows for which it holds, windows for which it does not.
FLIPS: list[tuple[int, str, list[pl.DataFrame], list[pl.DataFrame]]] = [
    (
        5,
        "nersc-high-at-low-pressure",
        [_rows({FAIR: 0.81}, 0.39), _rows({FAIR: 0.1}, 0.4)],
        [_rows({FAIR: 0.79}, 0.39)],
    ),
    (
        5,
        "nersc-falls",
        [_rows({FAIR: 1 - w / 2}, w) for w in PRESSURES],
        [_rows({FAIR: w / 2}, w) for w in PRESSURES],
    ),
    (
        5,
        "nersc-under-half-at-one",
        [_rows({FAIR: 0.9}, 1.0), _rows({FAIR: 0.4}, 1.0)],
        [_rows({FAIR: 0.6}, 1.0), _rows({FAIR: 0.4}, 1.2)],
    ),
    (
        5,
        "nersc-one-at-high-pressure",
        [_rows({FAIR: 1.0}, 1.3)],
        [_rows({FAIR: 1.0}, 0.9), _rows({FAIR: 0.9}, 1.3)],
    ),
    (
        5,
        "trilab-none-under",
        [_rows({FAIR: 0.41}, 1.3, "TRILAB")],
        [_rows({FAIR: 0.39}, 1.3, "TRILAB")],
    ),
    (
        5,
        "trilab-none-close-to-one",
        [_rows({FAIR: 0.9}, 1.3, "TRILAB"), _rows({FAIR: 1.0}, 0.9, "TRILAB")],
        [_rows({FAIR: 0.96}, 1.3, "TRILAB")],
    ),
    (
        5,
        "trilab-longer",
        [_rows({}, 1.0), _rows({}, 1.0, "TRILAB", window=36_000.0)],
        [_rows({}, 1.0), _rows({}, 1.0, "TRILAB", window=35_000.0)],
    ),
    (
        5,
        "nersc-celio-under-half",
        [_rows({}, 0.4), _rows({}, 0.9, machine=3)],
        [_rows({}, 0.5)],
    ),
    (
        5,
        "trilab-celio-saturates",
        [_rows({}, 1.0, "TRILAB")],
        [_rows({}, 0.9, "TRILAB"), _rows({}, 1.5, "TRILAB", machine=3)],
    ),
    (
        6,
        "greedy-com-uniform",
        [_rows({COM: 0.5 * r}, 1.0) for r in np.linspace(0.9, 1.1, 21)],
        [_rows({COM: 0.5}, 1.0)] * 21,
    ),
    (
        6,
        "greedy-com-unreliable",
        [_rows({COM: 0.4}, 1.0), _rows({COM: 0.6}, 1.0)],
        [_rows({COM: 0.6}, 1.0)],
    ),
    (
        6,
        "second-better-at-high-pressure",
        _bands(SECOND, (0.9, 1.0, 1.1), "NERSC"),
        _bands(SECOND, (0.8, 0.9, 0.95), "NERSC"),
    ),
    (
        6,
        "second-risky-everywhere",
        _bands(SECOND, (0.9, 0.9, 0.9), "NERSC"),
        _bands(SECOND, (0.9, 0.9, 0.96), "NERSC"),
    ),
    (
        6,
        "fcfs-as-set10",
        [_rows({"fcfs": 0.7, "set-10": 0.7}, 1.0)],
        [_rows({"fcfs": 0.7, "set-10": 0.7 + 1e-6}, 1.0)],
    ),
    (
        6,
        "third-improves",
        [_rows(dict.fromkeys(THIRD, 0.6), 1.0)],
        [_rows({**dict.fromkeys(THIRD, 0.6), LOOK: 0.5}, 1.0)],
    ),
    (
        6,
        "third-gain-grows",
        _bands(THIRD, (1.0, 1.1, 1.3), "NERSC"),
        _bands(THIRD, (1.0, 1.1, 1.1), "NERSC"),
    ),
    (
        6,
        "best-next-event-riskiest",
        [_rows({BEST: 0.49}, 1.0)],
        [_rows({LOOK: 0.49}, 1.0)],
    ),
    (
        6,
        "best-next-event-worst",
        [_rows({BEST: 0.48}, 1.0)],
        [_rows({BEST: 0.47}, 1.0)],
    ),
    (
        6,
        "periodic-never-lower",
        [_rows({PERIODIC: 0.4999}, 1.0)],
        [_rows({PERIODIC: 0.49}, 1.0)],
    ),
    (
        7,
        "greedy-com-few-lower",
        [_rows({COM: 0.5}, 0.9, "TRILAB"), _rows({COM: 0.1}, 1.1, "TRILAB")],
        [_rows({COM: 0.4}, 0.9, "TRILAB")],
    ),
    (
        7,
        "greedy-com-all-lower",
        [_rows({COM: 0.4}, 1.5, "TRILAB"), _rows({COM: 0.6}, 1.2, "TRILAB")],
        [_rows({COM: 0.6}, 1.5, "TRILAB"), _rows({COM: 0.4}, 1.2, "TRILAB")],
    ),
    (
        7,
        "fewer-lower",
        [_rows(dict.fromkeys(SEVEN, 0.4), 1.0), _rows({}, 1.0, "TRILAB")],
        [
            _rows(dict.fromkeys(SEVEN, 0.4), 1.0),
            _rows({COM: 0.4}, 1.0, "TRILAB"),
        ],
    ),
    (
        7,
        "gains-higher-at-high-pressure",
        [_rows({}, 1.2), _rows(dict.fromkeys(SEVEN[:4], 0.6), 1.2, "TRILAB")],
        [_rows({}, 1.2), _rows(dict.fromkeys(SEVEN[:3], 0.6), 1.2, "TRILAB")],
    ),
    (
        7,
        "third-slightly-lower",
        [_rows({}, 0.9, "TRILAB")] * 9 + [_rows({BEST: 0.48}, 0.9, "TRILAB")],
        [_rows({}, 0.9, "TRILAB")] * 9 + [_rows({BEST: 0.47}, 0.9, "TRILAB")],
    ),
    (
        7,
        "fcfs-as-set10",
        [_rows({"set-10": 0.504}, 1.0, "TRILAB")],
        [_rows({"set-10": 0.506}, 1.0, "TRILAB")],
    ),
    (
        7,
        "second-gains-at-saturation",
        _bands(SECOND, (0.9, 1.0, 1.2), "TRILAB"),
        _bands(SECOND[:2], (0.9, 1.0, 1.2), "TRILAB"),
    ),
    (
        7,
        "five-phases",
        [_rows({}, 1.0, "TRILAB", window=18_000.0)],
        [_rows({}, 1.0, "TRILAB", window=17_999.0)],
    ),
    (
        7,
        "checkpoints-short",
        [_rows({}, 1.0, "TRILAB", machine=0)],
        [_rows({}, 1.0, "TRILAB", machine=10)],
    ),
    (
        7,
        "naive-riskier",
        [_rows({COM: 0.4, "fcfs": 0.4, "set-10": 0.4}, 1.2, "TRILAB")],
        [_rows({COM: 0.4, "fcfs": 0.6, "set-10": 0.4}, 1.2, "TRILAB")],
    ),
    (7, "look-ahead-best", [_rows({LOOK: 0.6}, 1.0)], [_rows({COM: 0.6}, 1.0)]),
    (
        7,
        "look-ahead-closely-followed",
        [
            _rows({LOOK: 0.7, PERIODIC: 0.69, BEST: 0.69}, 1.0),
            _rows({LOOK: 0.69, PERIODIC: 0.7, BEST: 0.7}, 1.0),
        ],
        [
            _rows({LOOK: 0.8, PERIODIC: 0.69, BEST: 0.69}, 1.0),
            _rows({LOOK: 0.69, PERIODIC: 0.7, BEST: 0.7}, 1.0),
        ],
    ),
    (
        8,
        "nersc-drops-more",
        [_rows({}, 0.9, efficiency=0.9), _rows({}, 1.3, efficiency=0.7)]
        + [_rows({}, w, "TRILAB", efficiency=e) for w, e in ((0.9, 0.9), (1.3, 0.8))],
        [_rows({}, 0.9, efficiency=0.9), _rows({}, 1.3, efficiency=0.8)]
        + [_rows({}, w, "TRILAB", efficiency=e) for w, e in ((0.9, 0.9), (1.3, 0.7))],
    ),
    (
        8,
        "trilab-next-group",
        [_rows({}, 1.2, "TRILAB", efficiency={COM: 0.54, FAIR: 0.46})],
        [_rows({}, 1.2, "TRILAB", efficiency={COM: 0.54, FAIR: 0.44})],
    ),
    (
        8,
        "trilab-hidden",
        [_rows({}, 1.2, "TRILAB", efficiency={"set-10": 0.509})],
        [_rows({}, 1.2, "TRILAB", efficiency={"set-10": 0.511})],
    ),
    (
        8,
        "trilab-holds",
        [_rows({}, w, "TRILAB", efficiency=e) for w, e in ((0.2, 0.9), (0.9, 0.86))],
        [_rows({}, w, "TRILAB", efficiency=e) for w, e in ((0.2, 0.9), (0.9, 0.84))],
    ),
    (
        8,
        "trilab-greedy-com-first",
        [_rows({}, 1.2, "TRILAB", efficiency={COM: 0.6})],
        [_rows({}, 1.2, "TRILAB", efficiency={COM: 0.6, FAIR: 0.6})],
    ),
    (
        8,
        "trilab-last-group",
        [
            _rows(
                {}, 1.2, "TRILAB", efficiency={COM: 0.7, FAIR: 0.6, LOOK: 0.6, BEST: 1}
            )
        ],
        [_rows({}, 1.2, "TRILAB", efficiency={COM: 0.7, FAIR: 0.6, LOOK: 0.6})],
    ),
    (
        9,
        "nersc-less-used",
        [_rows({}, 1.0, nodes=8000), _rows({}, 1.0, "TRILAB", nodes=8001)],
        [_rows({}, 1.0, nodes=8001), _rows({}, 1.0, "TRILAB", nodes=8000)],
    ),
    (
        9,
        "greedy-com-worst-min-yield",
        _both({COM: 0.4}, 1.2),
        _both({COM: 0.4, FAIR: 0.4}, 1.2),
    ),
    (
        10,
        "periodic-twice",
        _both({}, 1.0, decisions={**dict.fromkeys(EIGHT, 10), PERIODIC: 20}),
        _both({}, 1.0, decisions={**dict.fromkeys(EIGHT, 10), PERIODIC: 30}),
    ),
]


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"), FLIPS, ids=[f"{f}-{n}" for f, n, _, _ in FLIPS]
)
def test_a_claim_holds_and_fails(
    figure: int, name: str, good: list[pl.DataFrame], bad: list[pl.DataFrame]
) -> None:
    claim = _claim(figure, name)
    held, failed = claim.check(_tables(*good)), claim.check(_tables(*bad))
    assert held.holds, held.numbers
    assert not failed.holds, failed.numbers


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("best-next-event-slowest", {BEST: 0.01}, {BEST: 0.01, "fcfs": 0.02}),
        ("best-next-event-by-far", {BEST: 0.01}, {BEST: 0.009}),
        ("under-a-minute", {BEST: 59.0}, {BEST: 61.0}),
        ("best-next-event-practical", {BEST: 71.0}, {BEST: 73.0}),
        ("look-ahead-second", {LOOK: 0.002}, {LOOK: 0.0009}),
        ("others-faster", {LOOK: 0.011}, {LOOK: 0.009}),
        ("periodic-short", {PERIODIC: 0.009}, {PERIODIC: 0.011}),
        ("look-ahead-costlier", {LOOK: 0.002}, {LOOK: 0.002, PERIODIC: 0.003}),
    ],
)
def test_a_claim_on_times_holds_and_fails(
    name: str, good: Mapping[str, float], bad: Mapping[str, float]
) -> None:
    claim, windows = _claim(10, name), _both({}, 1.0)
    assert claim.check(_tables(*windows, seconds=good)).holds
    assert not claim.check(_tables(*windows, seconds=bad)).holds


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        (5, "nersc-one-at-high-pressure"),
        (5, "trilab-none-close-to-one"),
        (6, "best-next-event-worst"),
        (7, "greedy-com-all-lower"),
        (7, "second-gains-at-saturation"),
        (8, "trilab-greedy-com-first"),
    ],
)
def test_a_claim_on_no_window_does_not_hold(figure: int, name: str) -> None:
    other = "TRILAB" if name.startswith(("nersc", "best")) else "NERSC"
    verdict = _claim(figure, name).check(_tables(_rows({}, 0.7, other)))
    assert not verdict.holds
    assert all(math.isnan(v) for v in verdict.numbers.values())
