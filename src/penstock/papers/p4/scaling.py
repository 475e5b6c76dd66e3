# SPDX-License-Identifier: MIT
"""Figures 13 and 14 of burst-buffer coordination: two to four applications at once.

All begin at the same time (D = 0). Each has 80 processes, as in the paper.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p4.charts import BarColumns, bars
from penstock.papers.p4.study import (
    BANDWIDTH,
    pattern_writer,
    run_rows,
    single_value,
    storage,
)
from penstock.workloads.microbenchmark import SHAPES, Microbenchmark, WritePattern

__all__ = ["fig13", "fig14"]

_PROCESSES: Final = 80
_SIZE: Final = 1e6
_BENCHMARK: Final = "benchmark"
_COUNTS: Final = (1, 2, 3, 4)
#: Strategy -> its name in the figure.
_STRATEGIES: Final = {
    "none": "interference",
    "1a": "strategy 1",
    "2a": "strategy 2",
    "3b:split=halve": "strategy 3",
    "combined:least=4": "combination",
}


# --- Figure 13 --------------------------------------------------------------------


def _instances_rows(_scale: Scale) -> pl.DataFrame:
    """Return a row per kind of application and number of instances."""
    rows = []
    for kind in (_BENCHMARK, *SHAPES):
        count = SHAPES[kind].requests if kind in SHAPES else Microbenchmark().requests
        pattern = WritePattern(_PROCESSES, count, _SIZE)
        for instances in _COUNTS:
            writers = [
                pattern_writer(f"{kind} {i}", pattern=pattern) for i in range(instances)
            ]
            facts = {"kind": kind, "instances": instances, "panel": "all at D = 0"}
            rows += run_rows(storage(BANDWIDTH), writers, "none", **facts)[:1]
    return pl.DataFrame(rows)


def _draw_instances(tables: Tables) -> Figure:
    names = {str(n): f"{n} instances" if n > 1 else "1 instance" for n in _COUNTS}
    columns = BarColumns("panel", "kind", "instances", "factor")
    return bars(tables.rows, columns, "interference factor", names)


fig13 = figure("p4-fig13", rows=_instances_rows, draw=_draw_instances)


def _by_count(tables: Tables) -> dict[int, float]:
    """Return the mean interference factor by number of instances."""
    means = tables.rows.group_by("instances").agg(pl.mean("factor"))
    return dict(means.sort("instances").iter_rows())


def _numbered(factors: dict[int, float]) -> dict[str, float]:
    return {f"instances = {count}": factor for count, factor in factors.items()}


@fig13.claim(
    "Two concurrent instances have a factor of around 2.4 (± 0.2).",
    contradicted="The same figure has 3.9 for four instances. Equal sharing alone "
    "makes 2 with two and 4 with four: so four instances, with twice the requests, "
    "would lose nothing to interference, and two would lose a fifth.",
)
def _two_instances(tables: Tables) -> Verdict:
    """Check the mean factor of two instances."""
    means = _by_count(tables)
    return Verdict(abs(means[2] - 2.4) <= 0.2, _numbered(means))


@fig13.claim("The situation gets worse with three and four instances.")
def _grows(tables: Tables) -> Verdict:
    """Check that the mean factor grows with the number of instances."""
    means = _by_count(tables)
    grows = all(few < more for few, more in pairwise(means.values()))
    return Verdict(grows, _numbered(means))


@fig13.claim("With four instances the factor reaches 3.9 (± 10 %).")
def _four_instances(tables: Tables) -> Verdict:
    """Check the mean factor of four instances."""
    means = _by_count(tables)
    return Verdict(abs(means[4] - 3.9) <= 0.39, _numbered(means))


# --- Figure 14 --------------------------------------------------------------------


def _three_rows(_scale: Scale) -> pl.DataFrame:
    pattern = WritePattern(_PROCESSES, Microbenchmark().requests, _SIZE)
    panel = "three applications, D = 0"
    rows = []
    for strategy in _STRATEGIES:
        writers = [
            pattern_writer(name, pattern=pattern, redirects=name == "A")
            for name in "ABC"
        ]
        rows += run_rows(storage(BANDWIDTH), writers, strategy, panel=panel)
    return pl.DataFrame(rows)


def _draw_three(tables: Tables) -> Figure:
    columns = BarColumns("panel", "application", "strategy", "io_time")
    return bars(tables.rows, columns, "execution time (s)", _STRATEGIES)


fig14 = figure("p4-fig14", rows=_three_rows, draw=_draw_three)


def _times(tables: Tables, strategy: str) -> dict[str, float]:
    """Return the I/O time of every application (s)."""
    return {
        name: single_value(tables.rows, "io_time", strategy=strategy, application=name)
        for name in "ABC"
    }


@fig14.claim(
    "Strategies 1 and 2 mirror the effect of prioritising a certain application "
    "(within 5 %; by construction, since the applications are equal)."
)
def _strategies_1_and_2_mirror(tables: Tables) -> Verdict:
    """Compare the times with 1 with those with 2 in reverse order."""
    first, second = _times(tables, "1a"), _times(tables, "2a")
    ratios = {n: first[n] / second[m] for n, m in zip("ABC", "CBA", strict=True)}
    holds = all(abs(ratio - 1) <= 0.05 for ratio in ratios.values())
    numbers = {f"{n} with 1 over its mirror with 2": r for n, r in ratios.items()}
    return Verdict(holds, numbers)


@fig14.claim(
    "The strategies make every application faster than interference (largest time of "
    "an application over that with interference)."
)
def _all_gain(tables: Tables) -> Verdict:
    """Compare every application with interference under every strategy."""
    base = _times(tables, "none")
    worst = {
        label: max(_times(tables, s)[n] / base[n] for n in "ABC")
        for s, label in _STRATEGIES.items()
        if s != "none"
    }
    return Verdict(max(worst.values()) < 1, worst)


def _ends(tables: Tables) -> dict[str, float]:
    """Return the time at which the last application is done, by strategy (s)."""
    return {label: max(_times(tables, s).values()) for s, label in _STRATEGIES.items()}


@fig14.claim(
    "A combination of all is likely to be an overall efficient solution: all are "
    "served sooner than with interference and with strategies 1 and 2 (seconds)."
)
def _combination(tables: Tables) -> Verdict:
    """Compare the times at which all applications are done."""
    ends = _ends(tables)
    others = ("interference", "strategy 1", "strategy 2")
    return Verdict(all(ends["combination"] < ends[o] for o in others), ends)
