# SPDX-License-Identifier: MIT
"""The studies behind the figures of target allocation, with one row per problem.

N = 20 targets and Q = 480 nodes are the numbers of the paper. It does not give the
number K of applications, on which many results depend: the studies run with K = 20, 40
and 60 (one to three applications per target), figures have a row of panels for each of
them, and claims are checked at each (`at_every_number`). The I/O-load of a problem is
below K / N, so that with K = 20 no problem has an I/O-load of 1 or more.

A *problem* is a set of applications that need targets. `per_problem` turns the rows of
a study into one row per problem, with a column per metric and contender: contenders are
compared on the same problem. Problems are grouped by their minimum I/O-load,
I/O-load(pi_sys), in intervals of width 0.1 around 0.1, 0.2, ... 1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl

from penstock.experiments.claims import NoRowsError, Tables, Verdict, over
from penstock.experiments.placement_study import (
    CLASS,
    EXACT,
    Contender,
    PlacementStudy,
)
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import sweep
from penstock.model import Column
from penstock.papers.p2 import GENERATED

__all__ = [
    "ALLOCATIONS",
    "BEST_BANDWIDTH",
    "CLASS_COMBINATIONS",
    "CONCLUSIONS",
    "GC",
    "GENERATED",
    "GNC",
    "IDLETIME",
    "INFORMED",
    "IO_NODES",
    "LARGER_LOAD",
    "MCKP",
    "NUMBERS",
    "N_SYS",
    "OSTS",
    "PLACEMENTS",
    "RANDOM",
    "SHORT_NAMES",
    "SLOWDOWN",
    "STATIC",
    "T_CPU",
    "Problems",
    "at_every_number",
    "case_study",
    "label",
    "per_problem",
    "problems_by_number",
    "summary",
]

#: Source of the claims that the paper draws at its end.
CONCLUSIONS: Final = "target allocation, section 8"

#: The columns of Mean-I/O-SlowDown and Machine-Idletime.
SLOWDOWN: Final = "mean_io_slowdown"
IDLETIME: Final = "machine_idletime"
#: The I/O-load from which section 6.1.2 speaks of larger loads.
LARGER_LOAD: Final = 0.65

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
#: The placements, as figures and numbers name them.
SHORT_NAMES: Final = {GC: "GC", GNC: "GNC", RANDOM: "random"}
#: The placement of mckp.
_EXCLUSIVE: Final = "exclusive"
ALLOCATIONS: Final = (RANDOM, STATIC, BEST_BANDWIDTH, N_SYS, T_CPU)
#: The allocations that use what they know of the applications.
INFORMED: Final = (STATIC, BEST_BANDWIDTH, N_SYS, T_CPU)
PLACEMENTS: Final = (RANDOM, GNC, GC)
#: The combinations that section 6.2 runs with classes instead of exact profiles.
CLASS_COMBINATIONS: Final = ((T_CPU, GNC), (BEST_BANDWIDTH, GNC), (BEST_BANDWIDTH, GC))

_ALL_EXACT: Final = (
    *(Contender(a, p) for a in ALLOCATIONS for p in PLACEMENTS),
    Contender(MCKP, _EXCLUSIVE),
)
#: Section 6.2, on information by class, is about I/O nodes only.
_CONTENDERS: Final = {
    IO_NODES: (
        *_ALL_EXACT,
        *(Contender(a, p, CLASS) for a, p in CLASS_COMBINATIONS),
    ),
    OSTS: _ALL_EXACT,
}
#: Numbers K of applications.
NUMBERS: Final = (20, 40, 60)
#: Targets of a problem (N); the workload's default.
_TARGETS: Final = 20
#: Aimed I/O-loads (Theta); the minimum I/O-load of a problem is a little lower.
_LOADS: Final = {
    Scale.SMOKE: (0.1, 0.3, 0.5, 0.8, 1.2),
    Scale.PAPER: tuple(round(0.1 * k, 1) for k in range(1, 14)),
}
#: Problems per aimed load and K: section 5.4 has over 100 per scenario.
_SETS: Final = {Scale.SMOKE: 3, Scale.PAPER: 120}
#: Width of an interval of load.
_WIDTH: Final = 0.1
#: Middle of the last interval of load.
_HIGHEST: Final = 1.2

#: The columns of `per_problem` that are no measurements.
_KEY: Final = ("case", "applications", "point", "instance", "bin")
_SUMMARY: Final = {
    "K": pl.Int64,
    "bin": pl.Float64,
    **dict.fromkeys(("sets", "left_out", "complete"), pl.Int64),
    **dict.fromkeys(("mean", "low", "high", "error"), pl.Float64),
}

_Values: TypeAlias = Callable[["Problems"], Column]


def case_study(case: str) -> Callable[[Scale], PlacementStudy]:
    """Return the study that all figures of a set of profiles share."""

    def study(scale: Scale) -> PlacementStudy:
        points = tuple(
            point
            for applications in NUMBERS
            for point in sweep(
                "striped",
                {"case": case, "applications": applications},
                {"load": [x for x in _LOADS[scale] if x < applications / _TARGETS]},
            )
        )
        return PlacementStudy(f"p2-{case}", points, _SETS[scale], _CONTENDERS[case])

    return study


def label(allocation: str, placement: str = GNC, information: str = EXACT) -> str:
    """Return the name of a contender, as in the columns of `per_problem`.

    The placement of mckp is always its own. Section 6.1.1 of the paper: "we only use
    GNC as a placement algorithm".
    """
    parts = [allocation, _EXCLUSIVE if allocation == MCKP else placement]
    return " + ".join(parts if information == EXACT else [*parts, information])


def per_problem(
    metrics: Sequence[str], contenders: Iterable[str], width: float = _WIDTH
) -> Callable[[Tables], Tables]:
    """Return the function that prepares the tables of a figure: one row per problem.

    A column "METRIC: CONTENDER" is added for each of both, and "complete: CONTENDER".
    ``bin`` is the middle of the interval of load, a multiple of `width` up to 1.2;
    problems outside the intervals are dropped.
    """
    names = tuple(contenders)

    def prepare(tables: Tables) -> Tables:
        middle = ((pl.col("minimum_load") / width + 0.5).floor() * width).round(6)
        rows = tables.rows.with_columns(middle.alias("bin"), _label_column()).filter(
            pl.col("bin").is_between(width, _HIGHEST),
            pl.col("contender").is_in(names),
        )
        wide = rows.pivot(
            "contender", index=_KEY, values=["complete", *metrics], separator=": "
        )
        return Tables(wide, pl.DataFrame())

    return prepare


def _label_column() -> pl.Expr:
    """Return the expression of `label`; a policy other than fair-share is added."""
    information, policy = pl.col("profile_information"), pl.col("policy")
    return pl.concat_str(
        pl.col("allocation"),
        pl.col("placement"),
        pl.when(information != EXACT).then(information),
        pl.when(policy != "fair-share").then(policy),
        separator=" + ",
        ignore_nulls=True,
    ).alias("contender")


@dataclass(frozen=True, eq=False, slots=True)
class Problems:
    """The problems of one K and one set of profiles, as `per_problem` prepares them."""

    rows: pl.DataFrame

    def values(self, metric: str, contender: str) -> Column:
        """Return a metric of a contender by problem; NaN where it is not measured."""
        values: Column = self.rows[f"{metric}: {contender}"].cast(pl.Float64).to_numpy()
        return values

    def ratios(self, metric: str, one: str, other: str) -> Column:
        """Return the metric of `one` over that of `other`, minus 1, by problem."""
        return self.values(metric, one) / self.values(metric, other) - 1

    def by_load(self, values: Column) -> dict[float, float]:
        """Return the mean by interval of load.

        Intervals in which less than half of the problems are measured are left out.
        """
        means = {}
        for load, at_load in self.at_loads(values):
            present = at_load[~np.isnan(at_load)]
            if 0 < 2 * present.size >= at_load.size:
                means[load] = float(present.mean())
        return means

    def means(self, metric: str, contender: str) -> dict[float, float]:
        """Return the mean of a metric of a contender by interval of load."""
        return self.by_load(self.values(metric, contender))

    def mean(
        self, values: Column, low: float = 0.0, high: float = float("inf")
    ) -> float:
        """Return the mean of the measured values at loads from `low` to `high`.

        Raises
        ------
        NoRowsError
            If there is none.
        """
        loads = self.rows["bin"].to_numpy()
        chosen = values[(loads >= low) & (loads <= high) & ~np.isnan(values)]
        if not chosen.size:
            raise NoRowsError
        return float(chosen.mean())

    def at_loads(self, values: Column) -> Iterator[tuple[float, Column]]:
        """Yield every interval of load with its values, in ascending order."""
        loads = self.rows["bin"].to_numpy()
        for load in np.unique(loads).tolist():
            yield load, values[loads == load]


def problems_by_number(tables: Tables, case: str = "") -> dict[int, Problems]:
    """Return the problems by K, of one set of profiles if `case` is given."""
    rows = tables.rows.filter(pl.col("case") == case) if case else tables.rows
    numbers = rows["applications"].unique().sort().to_list()
    return {k: Problems(rows.filter(pl.col("applications") == k)) for k in numbers}


def at_every_number(
    check: Callable[..., Verdict], cases: Sequence[str] = ("",)
) -> Callable[..., Verdict]:
    """Turn a check of the problems of one K into a check of a figure, over all K.

    The check takes the problems of every one of the `cases` (sets of profiles); by
    default, all problems as one. Only a K that all cases have counts.
    A K at which the check finds no problems (`NoRowsError`) does not count: with K = 20
    there is no high I/O-load.
    """

    @wraps(check)
    def checked(tables: Tables, **arguments: Any) -> Verdict:
        verdicts = {}
        first, *others = (problems_by_number(tables, case) for case in cases)
        for number, problems in first.items():
            if not all(number in other for other in others):
                continue
            try:
                verdicts[number] = check(
                    problems, *(other[number] for other in others), **arguments
                )
            except NoRowsError:
                continue
        return over("K", verdicts)

    return checked


def summary(
    tables: Tables, metric: str, contender: str, values: _Values | None = None
) -> pl.DataFrame:
    """Return mean and spread of a metric of a contender by K and interval of load.

    `values` gives other numbers for the problems than the metric itself, such as a
    ratio. ``sets`` counts the problems measured, ``left_out`` those in which an
    application has hardly begun its I/O, ``complete`` the measured problems in which
    every application completed a phase. ``low`` and ``high`` are the 10th and 90th
    percentile, ``error`` is half the 95 % confidence interval of the mean.
    """
    rows = []
    for number, problems in problems_by_number(tables).items():
        numbers = values(problems) if values else problems.values(metric, contender)
        complete = problems.values("complete", contender)
        ends = zip(problems.at_loads(numbers), problems.at_loads(complete), strict=True)
        for (load, at_load), (_, whole) in ends:
            rows.append({"K": number, "bin": load, **_statistics(at_load, whole)})
    fixed = {"metric": metric, "contender": contender}
    return pl.DataFrame(rows, schema=_SUMMARY).select(
        *(pl.lit(text).alias(name) for name, text in fixed.items()), pl.all()
    )


def _statistics(values: Column, complete: Column) -> dict[str, float | int | None]:
    """Return the statistics of `summary` for the problems of one interval of load."""
    there = ~np.isnan(values)
    present = values[there]
    count = present.size
    counts = {
        "sets": count,
        "left_out": values.size - count,
        "complete": int(np.nansum(complete[there])),
    }
    if not count:
        return counts | dict.fromkeys(("mean", "low", "high", "error"))
    low, high = np.percentile(present, (10, 90)).tolist()
    deviation = float(present.std(ddof=1)) if count > 1 else 0.0
    error = 1.96 * deviation / float(np.sqrt(count))
    mean = float(present.mean())
    return counts | {"mean": mean, "low": low, "high": high, "error": error}
