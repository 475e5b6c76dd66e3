# SPDX-License-Identifier: MIT
"""OST profiles: a family of curves fitted to measurements, and 301 random members.

The 301 configurations that target allocation measured on PlaFRIM (IOR, one shared file)
are not published. This module generates ``data/ost_profiles.csv`` instead, from
measurements of one shared file on other machines (``data/ost_measurements.csv``).

Family (universal scalability law of Gunther): alone on n targets

    b(n) = b(1) n / (1 + sigma (n - 1) + kappa n (n - 1)),    sigma, kappa >= 0.

sigma is the fraction that the targets cannot do in parallel; kappa is the cost of
keeping them consistent. The curve is linear for sigma = kappa = 0, flat for sigma = 1,
and has a peak for kappa > 0.

Fit: n / b(n) is linear in (1, sigma, kappa) / b(1). Non-negative least squares of the
relative error, over 1 to 10 targets.

Draw: choose one of the fitted configurations uniformly. Multiply b(1), sigma and kappa
each by exp(s Z), where Z is standard normal and s is the root mean square of
log(fitted / measured). A random profile then differs from a fitted one by as much as a
fit differs from its measurements. Profile i uses the random stream (seed, i).
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

#: Number of profiles in ``data/ost_profiles.csv``, and the seed they are drawn with.
COUNT: Final = 301
SEED: Final = 2024

#: Largest n in the fit: every source has measurements between 8 and this number.
_MOST_FITTED: Final = 10
_LONGEST: Final = 8


@dataclass(frozen=True, slots=True)
class Scaling:
    """One member of the family of curves."""

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
    """A measured configuration with its nearest member of the family."""

    measurements: Measurements
    scaling: Scaling

    def error(self, low: int = 1, high: int = _MOST_FITTED) -> Column:
        """Return fitted / measured - 1 for low <= n <= high."""
        targets, means = _within(self.measurements, low, high)
        return self.scaling.bandwidth(targets) / means - 1

    @property
    def determination(self) -> float:
        """R^2: the fraction of the variance over n that the fit explains."""
        targets, means = _within(self.measurements, 1, _MOST_FITTED)
        left = self.scaling.bandwidth(targets) - means
        return 1 - float(np.sum(left**2) / np.sum((means - means.mean()) ** 2))


def fit_scaling(targets: Sequence[int] | Column, bandwidth: Column) -> Scaling:
    """Return the member of the family nearest to the measured b(n) (bytes/s)."""
    n = np.asarray(targets, dtype=np.float64)
    if len(set(n.tolist())) < 3:
        raise InputError(
            f"{len(n)} measurements are too few for three parameters",
            remedy="measure on at least three numbers of targets",
        )
    scale = float(bandwidth[0])
    terms = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    weights = bandwidth / (scale * n)
    (first, *rest), _ = nnls(terms * weights[:, np.newaxis], np.ones_like(n))
    if not first > 0:
        raise InputError(
            "no member of the family fits the measurements",
            remedy="repeat the outliers",
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
    """Draw profiles b(1..8) by the rule in the module docstring."""
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
    """Return the measured n from `low` to `high`, with mean bandwidths (bytes/s)."""
    targets = np.array(item.targets, dtype=np.float64)
    inside = (targets >= low) & (targets <= high)
    return targets[inside], np.array(item.means)[inside]


def _spread(fits: Sequence[Fit]) -> float:
    """Return the root mean square of log(fitted / measured) over all fits."""
    errors = np.concatenate([np.log1p(item.error()) for item in fits])
    return float(np.sqrt(np.mean(errors**2)))
