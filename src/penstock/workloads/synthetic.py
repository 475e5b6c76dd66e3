# SPDX-License-Identifier: MIT
"""The synthetic workload (bandwidth sharing, section 6.2.1).

Every application can saturate the storage alone (b_i = B = 1). The mean length of an
iteration is 1,000 s for `n_small` applications, 10,000 s for a third of them, and
100,000 s for the rest. The window ends when the first application would end in
dedicated mode.

Deviation: omega is redrawn until it exceeds 2 s (in the paper: until it is positive).
Otherwise a few applications with iterations of microseconds would dominate the
instance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.model import Instance, Platform, Window
from penstock.workloads.iterative import Iterative, Recipe, draw_applications
from penstock.workloads.parameters import (
    MOST_APPLICATIONS,
    check_parameters,
    parameter,
)

__all__ = ["Synthetic"]

_MEANS_S = (1_000.0, 10_000.0, 100_000.0)


@dataclass(frozen=True, slots=True)
class Synthetic(Iterative):
    """Parameters of the synthetic workload."""

    pressure: float = parameter(0.8, "W", "intended I/O pressure", low=0.0)
    applications: int = parameter(
        60, "m", "number of applications", low=3, high=MOST_APPLICATIONS
    )
    n_small: int = parameter(
        -1, "n_small", "applications with short iterations; -1: a third", low=-1
    )
    sigma: float = parameter(
        0.5, "sigma", "spread of the iteration length over its mean", low=0.0
    )
    noise: float = parameter(
        0.5, "nu", "spread of one work or volume over its mean", low=0.0, high=1.0
    )
    horizon: float = parameter(
        2_000_000.0, "h", "length of an application alone (s)", low=1.0
    )

    def __post_init__(self) -> None:
        check_parameters(self)
        most = self.applications - self.applications // 3
        if self.n_small > most:
            raise InputError(
                f"{self.n_small} is out of range",
                where="n_small",
                remedy=f"at most {most} of {self.applications} applications",
            )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of applications with short, medium and long iterations."""
        medium = self.applications // 3
        small = medium if self.n_small < 0 else self.n_small
        return small, medium, self.applications - medium - small

    @property
    def recipe(self) -> Recipe:
        """Distribution of the applications."""
        return Recipe(
            means=np.repeat(_MEANS_S, self.sizes).tolist(),
            sigma=self.sigma,
            shortest=2.0,
            load=self.pressure,
            noise=self.noise,
            horizon=self.horizon,
            offset=True,
            period_known=False,
        )

    def instance(self, seed: int, index: int) -> Instance:
        """Draw instance `index` of `seed`."""
        applications = draw_applications(self.recipe, seed, index)
        end = min(float(a.dedicated_times(1.0)[-1]) for a in applications)
        return Instance(Platform(1.0, 1.0), Window(0.0, end), applications)
