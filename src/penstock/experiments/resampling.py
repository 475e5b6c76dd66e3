# SPDX-License-Identifier: MIT
"""How certain a number is: bootstrap resamples of the instances of a table.

A study draws instances at random; other instances would give other numbers. A
*resample* is a table with as many instances as the original, drawn from it with
replacement. The standard deviation of a number over the resamples estimates how much
the number would differ on other instances. Of n instances, resamples show sqrt((n - 1)
/ n) of the standard error of a mean, which is itself uncertain if n is small. So the
95 % half-width of a number is t sqrt(n / (n - 1)) standard deviations, with the 97.5 %
quantile t of Student's distribution of n - 1 degrees of freedom: the usual interval if
the number is a mean (3.1 standard deviations for n = 5, 1.97 for n = 200).

All rows of an instance number stay together: the policies of a study are compared on
the same instances, and the resamples keep these pairs, over all points. Every drawn
instance gets a new number, so that a join by point and instance stays unique. The
resamples depend on the table alone (the seed is fixed): same table, same bytes.

Windows of one APEX schedule are not independent of each other: they show the same jobs.
Where the column ``windows`` says how many windows a schedule has, whole schedules are
drawn (instances 0 to 19, 20 to 39, ... for 20 windows), if there are enough of them.

A table without the column ``instance``, or with less than `FEWEST_INSTANCES`, has no
resamples: nothing is random there, or too little is known.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.random import default_rng
from scipy.special import stdtrit

__all__ = [
    "FEWEST_INSTANCES",
    "Spread",
    "Tables",
    "affordable_resamples",
    "group_count",
    "resampled",
    "spread_of",
]

#: Resamples of fewer instances say little.
FEWEST_INSTANCES: Final = 3
#: Probability below the upper end of a 95 % interval.
_UPPER: Final = 0.975
_SEED: Final = 1
#: Rows to check in all resamples of a figure together, and the fewest resamples.
_MOST_ROWS: Final = 5_000_000
_FEWEST_RESAMPLES: Final = 10
_KEY: Final = "instance"
_WINDOWS: Final = "windows"


@dataclass(frozen=True, slots=True)
class Tables:
    """The data behind a figure."""

    rows: pl.DataFrame
    """One row per instance and policy."""
    times: pl.DataFrame
    """Seconds per instance and policy; these differ from run to run."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How certain a verdict is."""

    half_widths: dict[str, Any]
    """95 % half-width of every number, with the same names as the numbers."""
    support: float | None
    """Share of the resamples in which the claim holds; None without resamples."""


def affordable_resamples(rows: int, most: int) -> int:
    """Return the number of resamples for a table with so many rows.

    RATIONALE: the claims of a figure of APEX windows take seconds on its table of up to
    44,000 rows. The number depends on the table and not on the time, so that results
    do not depend on the speed of the machine.
    """
    return min(most, max(_FEWEST_RESAMPLES, _MOST_ROWS // max(rows, 1)))


def resampled(tables: Tables, count: int) -> Iterator[Tables]:
    """Yield `count` resamples; none if the table has too few instances."""
    if count == 0 or _KEY not in tables.rows.columns:
        return
    groups, size = _groups(tables.rows)
    if len(groups) < FEWEST_INSTANCES:
        return
    generator = default_rng(_SEED)
    frames = (tables.rows, tables.times)
    parts = [_Grouped.of(frame, groups, size) for frame in frames]
    for _ in range(count):
        drawn = generator.integers(len(groups), size=len(groups))
        yield Tables(*(part.take(drawn) for part in parts))


def group_count(tables: Tables) -> int:
    """Return how many independent groups a resample draws: schedules or instances."""
    return len(_groups(tables.rows)[0]) if _KEY in tables.rows.columns else 0


def _groups(rows: pl.DataFrame) -> tuple[Any, int]:
    """Return the numbers of the groups that are drawn, and the instances of each."""
    numbers = rows[_KEY].drop_nulls().unique().sort().to_numpy()
    size = _group_size(rows)
    if len(np.unique(numbers // size)) < FEWEST_INSTANCES:
        size = 1
    return np.unique(numbers // size), size


def _group_size(rows: pl.DataFrame) -> int:
    """Return how many consecutive instances are drawn together."""
    if _WINDOWS not in rows.columns or not rows.schema[_WINDOWS].is_numeric():
        return 1
    most: Any = rows[_WINDOWS].max()
    return max(int(most or 1), 1)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """A table whose rows can be found by groups of instances."""

    frame: pl.DataFrame
    size: int
    """Instances in a group."""
    first: Any
    """Where the rows of each group begin in `positions`; None without instances."""
    positions: Any
    """Row numbers, those of one group together."""

    @classmethod
    def of(cls, frame: pl.DataFrame, groups: Any, size: int) -> _Grouped:
        """Sort the row numbers of a table by group."""
        if _KEY not in frame.columns:
            return cls(frame, size, None, None)
        ranks = np.searchsorted(groups, frame[_KEY].to_numpy() // size)
        positions = np.argsort(ranks, kind="stable")
        first = np.searchsorted(ranks[positions], np.arange(len(groups) + 1))
        return cls(frame, size, first, positions)

    def take(self, drawn: Any) -> pl.DataFrame:
        """Return the rows of the drawn groups, by point, under new numbers."""
        if self.first is None:
            return self.frame
        counts = self.first[drawn + 1] - self.first[drawn]
        ends = np.cumsum(counts)
        offsets = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        rows = self.positions[np.repeat(self.first[drawn], counts) + offsets]
        within = self.frame[_KEY].to_numpy()[rows] % self.size
        numbers = np.repeat(np.arange(len(drawn)) * self.size, counts) + within
        if "point" in self.frame.columns:
            order = np.argsort(self.frame["point"].to_numpy()[rows], kind="stable")
            rows, numbers = rows[order], numbers[order]
        taken: pl.DataFrame = self.frame[rows]
        dtype = self.frame.schema[_KEY]
        return taken.with_columns(pl.Series(_KEY, numbers, dtype=dtype))


def spread_of(
    verdicts: Sequence[tuple[bool, Mapping[str, Any]]], groups: int
) -> Spread:
    """Return the spread of the numbers of one claim over its resamples.

    A verdict is given as (holds, numbers), and every resample drew `groups` groups. A
    number that is not finite in a resample,
    or absent, does not count there; a number that is left in fewer than two resamples
    has no spread.
    """
    if not verdicts:
        return Spread({}, None)
    support = sum(bool(holds) for holds, _ in verdicts) / len(verdicts)
    quantile = float(stdtrit(groups - 1, _UPPER))
    factor = quantile * math.sqrt(groups / (groups - 1))
    return Spread(_half_widths([numbers for _, numbers in verdicts], factor), support)


def _half_widths(samples: Sequence[Mapping[str, Any]], factor: float) -> dict[str, Any]:
    """Return `factor` standard deviations of every number."""
    names = dict.fromkeys(name for sample in samples for name in sample)
    widths: dict[str, Any] = {}
    for name in names:
        values = [sample[name] for sample in samples if name in sample]
        if isinstance(values[0], Mapping):
            widths[name] = _half_widths(values, factor)
            continue
        finite = [float(value) for value in values if math.isfinite(value)]
        if len(finite) > 1:
            widths[name] = factor * statistics.stdev(finite)
    return widths
