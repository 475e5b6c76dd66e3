# SPDX-License-Identifier: MIT
"""The studies behind the figures of target allocation, and summaries of their rows.

N = 20 targets and Q = 480 nodes are the numbers of the paper. It does not give the
number K of applications; we take K = 60 (6 large, 18 medium, 36 small): with three
applications per target it matters which applications share a target, and any I/O-load
below K / N = 3 can be drawn.

Rows are grouped by their minimum I/O-load, I/O-load(pi_sys), in intervals of width 0.1
around 0.1, 0.2, ... 1.2. Contenders are compared on the same problem ("set").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import polars as pl

from penstock.experiments.placement_study import (
    CLASSES,
    EXACT,
    Contender,
    PlacementStudy,
)
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import sweep
from penstock.papers.p2 import GENERATED

__all__ = [
    "ALLOCATIONS",
    "BEST_BANDWIDTH",
    "CLASS_COMBINATIONS",
    "CONCLUSIONS",
    "GC",
    "GENERATED",
    "GNC",
    "IO_NODES",
    "MCKP",
    "N_SYS",
    "OSTS",
    "PLACEMENTS",
    "RANDOM",
    "STATIC",
    "T_CPU",
    "binned",
    "case_study",
    "chosen",
    "means",
    "measured",
    "placed",
    "relative",
    "spread",
    "summary",
]

#: Source of the claims that the paper draws at its end.
CONCLUSIONS: Final = "target allocation, section 8"

#: The two sets of profiles.
IO_NODES: Final = "io-nodes"
OSTS: Final = "osts"

RANDOM: Final = "random"
STATIC: Final = "static"
BEST_BANDWIDTH: Final = "best-bandwidth"
N_SYS: Final = "n-sys"
T_CPU: Final = "t-cpu"
MCKP: Final = "mckp"
#: The names of the paper: GNC and GC.
GNC: Final = "greedy-non-clairvoyant"
GC: Final = "greedy-clairvoyant"
ALLOCATIONS: Final = (RANDOM, STATIC, BEST_BANDWIDTH, N_SYS, T_CPU)
PLACEMENTS: Final = (RANDOM, GNC, GC)
#: The combinations that section 6.2 runs with classes instead of exact profiles.
CLASS_COMBINATIONS: Final = ((T_CPU, GNC), (BEST_BANDWIDTH, GNC), (BEST_BANDWIDTH, GC))

_CONTENDERS: Final = (
    *(Contender(a, p) for a in ALLOCATIONS for p in PLACEMENTS),
    Contender(MCKP, "exclusive"),
    *(Contender(a, p, profiles=CLASSES) for a, p in CLASS_COMBINATIONS),
)
#: Aimed I/O-loads (Theta); the minimum I/O-load of a set is a little lower.
_LOADS: Final = {
    Scale.SMOKE: (0.1, 0.3, 0.5, 0.8, 1.2),
    Scale.PAPER: tuple(round(0.1 * k, 1) for k in range(1, 14)),
}
#: Sets per aimed load: at paper scale over 100 in every interval of load.
_SETS: Final = {Scale.SMOKE: 3, Scale.PAPER: 120}
#: Width of an interval of load.
_WIDTH: Final = 0.1
#: Middle of the last interval of load.
_HIGHEST: Final = 1.2

#: The columns that tell problems apart.
_PROBLEM: Final = ("case", "point", "instance")


def case_study(case: str) -> Callable[[Scale], PlacementStudy]:
    """Return the study that all figures of a set of profiles share."""

    def study(scale: Scale) -> PlacementStudy:
        points = sweep("striped", {"case": case}, {"load": _LOADS[scale]})
        return PlacementStudy(f"p2-{case}", points, _SETS[scale], _CONTENDERS)

    return study


def chosen(
    rows: pl.DataFrame,
    allocations: Sequence[str] = ALLOCATIONS,
    placements: Sequence[str] = PLACEMENTS,
    profiles: str = EXACT,
) -> pl.DataFrame:
    """Return the rows of some contenders."""
    return rows.filter(
        pl.col("allocation").is_in(allocations),
        pl.col("placement").is_in(placements),
        pl.col("told") == profiles,
    )


def placed(rows: pl.DataFrame, profiles: str = EXACT) -> pl.DataFrame:
    """Return the rows of all allocations with GNC, and of mckp with its own placement.

    Section 6.1.1 of the paper: "we only use GNC as a placement algorithm".
    """
    by_gnc = chosen(rows, ALLOCATIONS, (GNC,), profiles)
    return pl.concat([by_gnc, chosen(rows, (MCKP,), ("exclusive",), profiles)])


def relative(
    rows: pl.DataFrame, base: pl.DataFrame, metric: str, on: Sequence[str] = ()
) -> pl.DataFrame:
    """Return `rows` with column `ratio`: `metric` over that of `base`, minus 1.

    Rows of the same problem are compared; the columns `on` must agree as well. The
    ratio is null where one of both is not measured.
    """
    key = [*_PROBLEM, *on]
    reference = base.select(
        *key,
        pl.col(metric).alias("base"),
        pl.col("complete").alias("base_complete"),
    )
    return (
        rows.join(reference, on=key, maintain_order="left")
        .with_columns(
            (pl.col(metric) / pl.col("base") - 1).alias("ratio"),
            pl.col("complete") & pl.col("base_complete"),
        )
        .drop("base_complete")
    )


def binned(rows: pl.DataFrame, width: float = _WIDTH) -> pl.DataFrame:
    """Return the rows with column `bin`, the middle of their interval of load.

    Middles are multiples of `width` up to 1.2; rows outside are dropped.
    """
    number = (pl.col("minimum_load") / width + 0.5).floor()
    middle = (number * width).round(6)
    return rows.with_columns(middle.alias("bin")).filter(
        pl.col("bin").is_between(width, _HIGHEST)
    )


def summary(
    rows: pl.DataFrame, metric: str, by: str, width: float = _WIDTH
) -> pl.DataFrame:
    """Return mean and spread of `metric` by interval of load and column `by`.

    ``sets`` counts the problems measured, ``left_out`` those in which an application
    has hardly begun its I/O (see `measured`), ``complete`` the sets in which every
    application completed a phase. ``low`` and ``high`` are the 10th and 90th
    percentile, ``error`` is half the 95 % confidence interval of the mean.
    """
    value = pl.col(metric).drop_nulls()
    return (
        binned(rows, width)
        .group_by(by, "bin")
        .agg(
            pl.lit(metric).alias("metric"),
            value.len().alias("sets"),
            pl.col(metric).null_count().alias("left_out"),
            (pl.col("complete") & pl.col(metric).is_not_null()).sum().alias("complete"),
            value.mean().alias("mean"),
            value.quantile(0.1, "linear").alias("low"),
            value.quantile(0.9, "linear").alias("high"),
            (1.96 * value.std() / value.len().sqrt()).fill_null(0.0).alias("error"),
        )
        .sort(by, "bin")
    )


def measured(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a `summary` with at least half of the sets measured."""
    return table.filter(pl.col("sets") > 0, pl.col("sets") >= pl.col("left_out"))


def means(
    rows: pl.DataFrame, metric: str, by: str, width: float = _WIDTH
) -> dict[str, dict[float, float]]:
    """Return the mean of `metric` by value of `by` and interval of load."""
    by_name: dict[str, dict[float, float]] = {}
    table = measured(summary(rows, metric, by, width)).select(by, "bin", "mean")
    for name, middle, mean in table.iter_rows():
        by_name.setdefault(name, {})[middle] = mean
    return by_name


def spread(name: str, values: pl.Series) -> dict[str, float]:
    """Return mean, 10th and 90th percentile as numbers of a claim."""
    present = values.drop_nulls().to_numpy()
    if not present.size:
        return {f"{name}, sets": 0.0}
    low, high = np.percentile(present, (10, 90))
    return {
        f"{name}, mean": float(present.mean()),
        f"{name}, 10th": float(low),
        f"{name}, 90th": float(high),
    }
