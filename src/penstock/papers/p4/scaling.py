# SPDX-License-Identifier: MIT
"""papers/4 Figures 13 and 14: more than two applications at a time.

80 processes per instance, as in the paper.
"""

from __future__ import annotations

from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p4.charts import bars
from penstock.papers.p4.study import group, one_of, run_rows, storage
from penstock.workloads.microbenchmark import SHAPES, Microbenchmark

__all__ = ["FIGURES"]

_PROCESSES: Final = 80
_BENCHMARK: Final = "benchmark"
_COUNTS: Final = (1, 2, 3, 4)
#: Strategy -> what it is called in the figure.
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
    here = storage(Microbenchmark().bandwidth)
    rows = []
    for kind in (_BENCHMARK, *SHAPES):
        count = SHAPES[kind].requests if kind in SHAPES else Microbenchmark().requests
        for instances in _COUNTS:
            writers = [
                group(f"{kind} {i}", processes=_PROCESSES, requests=count)
                for i in range(instances)
            ]
            facts = {"kind": kind, "instances": instances, "panel": "all at D = 0"}
            rows += run_rows(here, writers, "none", **facts)[:1]
    return pl.DataFrame(rows)


def _draw_instances(tables: Tables) -> Figure:
    names = {str(n): f"{n} instances" if n > 1 else "1 instance" for n in _COUNTS}
    label = "interference factor"
    return bars(tables.rows, "panel", "kind", "instances", "factor", label, names)


def _by_count(tables: Tables) -> dict[int, float]:
    """Return the mean interference factor by number of instances."""
    means = tables.rows.group_by("instances").agg(pl.mean("factor"))
    return dict(means.sort("instances").iter_rows())


def _numbered(factors: dict[int, float]) -> dict[str, float]:
    return {f"instances = {count}": factor for count, factor in factors.items()}


def _two(tables: Tables) -> Verdict:
    found = _by_count(tables)
    return Verdict(abs(found[2] - 2.4) <= 0.2, _numbered(found))


def _four(tables: Tables) -> Verdict:
    found = _by_count(tables)
    return Verdict(abs(found[4] - 3.9) <= 0.39, _numbered(found))


def _grows(tables: Tables) -> Verdict:
    found = _by_count(tables)
    factors = list(found.values())
    return Verdict(factors == sorted(factors), _numbered(found))


_FIG13: Final = "papers/4 section V-C, Figure 13"
_CLAIMS13: Final = (
    Claim(
        "two-instances",
        _FIG13,
        "Two concurrent instances have a factor of around 2.4 (± 0.2).",
        _two,
    ),
    Claim(
        "grows",
        _FIG13,
        "The situation gets worse with three and four instances.",
        _grows,
    ),
    Claim(
        "four-instances",
        _FIG13,
        "With four the factor reaches 3.9 (± 10 %).",
        _four,
        note="The model loses the same part of the capacity whether two or four "
        "applications are served at a time: 2.3 for two is 4.6 for four. A fourth of "
        "the storage alone makes a factor of 4: less than that means that one instance "
        "alone did not use all of it.",
    ),
)


# --- Figure 14 --------------------------------------------------------------------


def _three_rows(_scale: Scale) -> pl.DataFrame:
    here = storage(Microbenchmark().bandwidth)
    rows = []
    for strategy in _STRATEGIES:
        writers = [group(name, processes=_PROCESSES) for name in "ABC"]
        rows += run_rows(here, writers, strategy, panel="three applications, D = 0")
    return pl.DataFrame(rows)


def _draw_three(tables: Tables) -> Figure:
    label = "execution time (s)"
    return bars(
        tables.rows, "panel", "application", "strategy", "io_time", label, _STRATEGIES
    )


def _times(tables: Tables, strategy: str) -> dict[str, float]:
    return {
        name: one_of(tables.rows, "io_time", strategy=strategy, application=name)
        for name in "ABC"
    }


def _mirrored(tables: Tables) -> Verdict:
    first, second = _times(tables, "1a"), _times(tables, "2a")
    ratios = {n: first[n] / second[m] for n, m in zip("ABC", "CBA", strict=True)}
    holds = all(abs(ratio - 1) <= 0.05 for ratio in ratios.values())
    numbers = {f"{n} with 1 over its mirror with 2": r for n, r in ratios.items()}
    return Verdict(holds, numbers)


def _all_gain(tables: Tables) -> Verdict:
    base = _times(tables, "none")
    worst = {
        label: max(_times(tables, s)[n] / base[n] for n in "ABC")
        for s, label in _STRATEGIES.items()
        if s != "none"
    }
    return Verdict(max(worst.values()) < 1, worst)


def _ends(tables: Tables) -> dict[str, float]:
    return {label: max(_times(tables, s).values()) for s, label in _STRATEGIES.items()}


def _combination(tables: Tables) -> Verdict:
    ends = _ends(tables)
    others = ("interference", "strategy 1", "strategy 2")
    return Verdict(all(ends["combination"] < ends[o] for o in others), ends)


_FIG14: Final = "papers/4 section V-C, Figure 14"
_CLAIMS14: Final = (
    Claim(
        "strategies-1-and-2-mirror",
        _FIG14,
        "Strategies 1 and 2 mirror the effect of prioritising a certain application "
        "(within 5 %).",
        _mirrored,
    ),
    Claim(
        "all-gain",
        _FIG14,
        "The strategies make every application faster than interference (most of its "
        "time over that without).",
        _all_gain,
    ),
    Claim(
        "combination",
        _FIG14,
        "A combination of all is likely to be an overall efficient solution: all are "
        "served sooner than with strategies 1 and 2, and unlike strategy 3 it serves "
        "any number (seconds).",
        _combination,
    ),
)

FIGURES: Final = {
    "p4-fig13": Reproduction(
        name="p4-fig13",
        title="Interference of 1 to 4 equal applications",
        source=_FIG13,
        study=_instances_rows,
        draw=_draw_instances,
        claims=list(_CLAIMS13),
    ),
    "p4-fig14": Reproduction(
        name="p4-fig14",
        title="Three equal applications under all strategies",
        source=_FIG14,
        study=_three_rows,
        draw=_draw_three,
        claims=list(_CLAIMS14),
    ),
}
