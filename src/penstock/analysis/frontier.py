# SPDX-License-Identifier: MIT
"""Statistics of policies over instances: intervals, paired differences, domination.

All policies run on the same instances and are compared instance by instance, so the
difficulty of an instance cancels out. Intervals are confidence intervals of the mean
(Student's t distribution, 95 %).
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
    """Infinite for a single instance."""

    @property
    def above_zero(self) -> bool:
        """Return True if the whole interval is above 0."""
        return self.mean - self.half_width > 0.0


def interval(values: ArrayLike) -> Interval:
    """Return the mean of `values`, one per instance, with its interval.

    Half the width of the interval is t s / sqrt(n), where s^2 is the variance with
    n - 1 degrees of freedom and t the quantile of Student's distribution.
    """
    array = np.asarray(values, dtype=np.float64)
    count = array.size
    if count < 2:
        return Interval(float(array.mean()), math.inf)
    quantile = float(stdtrit(count - 1, 0.5 * (1.0 + CONFIDENCE)))
    error = float(array.std(ddof=1)) / math.sqrt(count)
    return Interval(float(array.mean()), quantile * error)


def paired(first: ArrayLike, second: ArrayLike) -> Interval:
    """Return the mean of `first` minus `second` on the same instances."""
    return interval(np.subtract(first, second))


def dominates(*differences: Interval) -> bool:
    """Return True if every difference is positive with its whole interval."""
    return all(difference.above_zero for difference in differences)


def gap_closed(value: float, best: float, bound: float) -> float:
    """Return the fraction of the gap from `best` to `bound` that `value` closes.

    Negative if `value` is worse than `best`; nan if there is no gap.
    """
    gap = bound - best
    return (value - best) / gap if gap > 0.0 else math.nan
