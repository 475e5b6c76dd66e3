# SPDX-License-Identifier: MIT
"""Comparing policies over instances: intervals, paired differences, domination.

All policies run on the same instances, so they are compared instance by instance: what
makes an instance hard for all of them cancels out. Intervals are those of Student's t
for the mean, at 95 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

__all__ = ["CONFIDENCE", "Interval", "dominates", "gap_closed", "interval", "paired"]

#: Probability with which an interval holds the true mean.
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over instances, and how far the true one may be off."""

    mean: float
    half_width: float
    """Infinite for a single instance."""

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.mean - self.half_width > 0.0


def interval(values: ArrayLike) -> Interval:
    """Return the mean of `values`, one per instance, and its interval.

    Half its width: t s / sqrt(n), where s^2 is the variance with n - 1 degrees of
    freedom and t the quantile of Student's distribution.
    """
    array = np.asarray(values, dtype=np.float64)
    count = array.size
    if count < 2:
        return Interval(float(array.mean()), math.inf)
    quantile = float(stdtrit(count - 1, 0.5 * (1.0 + CONFIDENCE)))
    error = float(array.std(ddof=1)) / math.sqrt(count)
    return Interval(float(array.mean()), quantile * error)


def paired(ours: ArrayLike, theirs: ArrayLike) -> Interval:
    """Return the mean of `ours` minus `theirs` on the same instances."""
    return interval(np.subtract(ours, theirs))


def dominates(*differences: Interval) -> bool:
    """Tell whether every objective is better, with its whole interval."""
    return all(difference.above_zero for difference in differences)


def gap_closed(ours: float, best: float, bound: float) -> float:
    """Return which part of the way from `best` to `bound` is gone; nan if none is left.

    Negative where `ours` is worse than `best`.
    """
    left = bound - best
    return (ours - best) / left if left > 0.0 else math.nan
