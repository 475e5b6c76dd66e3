# SPDX-License-Identifier: MIT
"""Statistics of policies over instances: intervals, paired differences, domination.

All policies run on the same instances and are compared instance by instance, so the
difficulty of an instance cancels out. Intervals are confidence intervals of the mean
(Student's t distribution, 95 %).

Instances that are not independent of each other are given as *groups*: the windows of
one APEX schedule show the same jobs. What counts then is the number of groups. Ten
schedules of 20 windows are 10 independent observations, not 200.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

__all__ = ["CONFIDENCE", "Interval", "dominates", "gap_closed", "interval", "paired"]

#: Probability that an interval contains the true mean.
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over instances with its confidence interval."""

    mean: float
    half_width: float
    """Infinite for a single instance, or a single group of instances."""

    @property
    def above_zero(self) -> bool:
        """Return True if the whole interval is above 0."""
        return self.mean - self.half_width > 0.0


def interval(values: ArrayLike, groups: ArrayLike | None = None) -> Interval:
    """Return the mean of `values`, one per instance, with its interval.

    `groups` has the number of the group of every instance; without it, every instance
    is a group of its own. With n instances in G groups, the standard error e of the
    mean m comes from the sums of the groups:

        e^2 = G / (G - 1) sum_g (sum_{i in g} (x_i - m))^2 / n^2.

    Half the width of the interval is t e, where t is the quantile of Student's
    distribution with G - 1 degrees of freedom. For groups of equal size this is the
    interval of the means of the groups, and e = s / sqrt(n) for groups of one.
    """
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    sums = array - mean
    if groups is not None:
        _, numbers = np.unique(np.asarray(groups), return_inverse=True)
        sums = np.asarray(np.bincount(numbers, weights=sums), dtype=np.float64)
    count = sums.size
    if count < 2:
        return Interval(mean, math.inf)
    quantile = float(stdtrit(count - 1, 0.5 * (1.0 + CONFIDENCE)))
    error = math.sqrt(count / (count - 1) * float(np.dot(sums, sums))) / array.size
    return Interval(mean, quantile * error)


def paired(
    first: ArrayLike, second: ArrayLike, groups: ArrayLike | None = None
) -> Interval:
    """Return the mean of `first` minus `second` on the same instances."""
    return interval(np.subtract(first, second), groups)


def dominates(*differences: Interval) -> bool:
    """Return True if every difference is positive with its whole interval."""
    return all(difference.above_zero for difference in differences)


def gap_closed(value: float, best: float, bound: float) -> float:
    """Return the fraction of the gap from `best` to `bound` that `value` closes.

    Negative if `value` is worse than `best`; nan if there is no gap.
    """
    gap = bound - best
    return (value - best) / gap if gap > 0.0 else math.nan
