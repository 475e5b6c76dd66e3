# SPDX-License-Identifier: MIT
"""The OST profiles: a family fitted to real measurements, and 301 drawn from it.

The 301 configurations that papers/2 measured on PlaFRIM (IOR, all writing one shared
file) are not at hand. ``data/ost_profiles.csv`` is made here instead, from writes of
one shared file on other machines (``data/ost_measurements.csv``).

Family (the universal scalability law of Gunther): alone on n targets

    b(n) = b(1) n / (1 + sigma (n - 1) + kappa n (n - 1)),    sigma, kappa >= 0,

sigma: what the targets cannot do side by side; kappa: what it costs to keep them in
step. sigma = kappa = 0 is linear, sigma = 1 flat; kappa > 0 has a peak.

Fit: n / b(n) is linear in 1, sigma, kappa over b(1); least squares of its relative
error with no negative coefficient, over 1 to 10 targets.

Draw: one of the fitted configurations, each alike; b(1), sigma and kappa each times
exp(s Z), Z standard normal, s the root mean square of log(fitted / measured): a drawn
profile differs from a fitted one by as much as a fit does from its measurements.
Profile i has the stream (seed, i) to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from scipy.optimize import nnls

from penstock.errors import InputError
from penstock.model import Column
from penstock.workloads.profiles.profiles import Measurements, Profile, measured

__all__ = [
    "COUNT",
    "SEED",
    "Fit",
    "Scaling",
    "draw_profiles",
    "fit_measurements",
    "fit_scaling",
]

#: How many profiles are drawn for ``data/ost_profiles.csv``, and from which seed.
COUNT: Final = 301
SEED: Final = 2024

#: Most targets in the fit: the smallest number at or above 8 in all its sources.
_MOST_FITTED: Final = 10
_LONGEST: Final = 8


@dataclass(frozen=True, slots=True)
class Scaling:
    """One member of the family."""

    single: float
    """b(1) (bytes/s)."""
    sigma: float
    kappa: float

    def bandwidth(self, targets: Sequence[int] | Column) -> Column:
        """Return b(n) for every n of `targets` (bytes/s)."""
        n = np.asarray(targets, dtype=np.float64)
        slowed: Column = 1 + self.sigma * (n - 1) + self.kappa * n * (n - 1)
        return self.single * n / slowed


@dataclass(frozen=True, slots=True)
class Fit:
    """A configuration that was measured, and the member of the family nearest it."""

    measurements: Measurements
    scaling: Scaling

    def error(self, low: int = 1, high: int = _MOST_FITTED) -> Column:
        """Return fitted over measured, minus 1, where low <= n <= high."""
        targets, means = _within(self.measurements, low, high)
        return self.scaling.bandwidth(targets) / means - 1

    @property
    def determination(self) -> float:
        """R^2: the part of the variance over n that the fit explains."""
        targets, means = _within(self.measurements, 1, _MOST_FITTED)
        left = self.scaling.bandwidth(targets) - means
        return 1 - float(np.sum(left**2) / np.sum((means - means.mean()) ** 2))


def fit_scaling(targets: Sequence[int] | Column, bandwidth: Column) -> Scaling:
    """Return the member of the family nearest to b(n) at some n (bytes/s)."""
    n = np.asarray(targets, dtype=np.float64)
    if len(set(n.tolist())) < 3:
        raise InputError(
            f"{len(n)} measurements for three parameters",
            remedy="measure on at least three numbers of targets",
        )
    scale = float(bandwidth[0])
    terms = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    weights = bandwidth / (scale * n)
    (first, *rest), _ = nnls(terms * weights[:, np.newaxis], np.ones_like(n))
    if not first > 0:
        raise InputError(
            "no member of the family is near the measurements",
            remedy="repeat those that stand out",
        )
    sigma, kappa = (float(value / first) for value in rest)
    return Scaling(scale / float(first), sigma, kappa)


def fit_measurements() -> list[Fit]:
    """Return the fits of all configurations in ``data/ost_measurements.csv``."""
    return [
        Fit(item, fit_scaling(*_within(item, 1, _MOST_FITTED)))
        for item in measured("ost_measurements.csv")
    ]


def draw_profiles(
    fits: Sequence[Fit], count: int = COUNT, seed: int = SEED
) -> list[Profile]:
    """Draw profiles b(1..8) from the family (the rule of this module's docstring)."""
    spread = _spread(fits)
    scalings = [item.scaling for item in fits]
    generators = [default_rng(stream) for stream in SeedSequence(seed).spawn(count)]
    return [
        Profile(f"ost{number}", _drawn(scalings, spread, generator))
        for number, generator in enumerate(generators)
    ]


def _drawn(scalings: list[Scaling], spread: float, generator: Generator) -> Column:
    """Draw one profile: b(1..8) (bytes/s)."""
    origin = scalings[int(generator.integers(len(scalings)))]
    factors = np.exp(spread * generator.standard_normal(3)).tolist()
    parameters = (origin.single, origin.sigma, origin.kappa)
    scaling = Scaling(*(p * f for p, f in zip(parameters, factors, strict=True)))
    return scaling.bandwidth(range(1, _LONGEST + 1))


def _within(item: Measurements, low: int, high: int) -> tuple[Column, Column]:
    """Return the n between two bounds, and the mean bandwidths there (bytes/s)."""
    targets = np.array(item.targets, dtype=np.float64)
    inside = (targets >= low) & (targets <= high)
    return targets[inside], np.array(item.means)[inside]


def _spread(fits: Sequence[Fit]) -> float:
    """Return the root mean square of log(fitted / measured) over all fits."""
    errors = np.concatenate([np.log1p(item.error()) for item in fits])
    return float(np.sqrt(np.mean(errors**2)))
