# SPDX-License-Identifier: MIT
"""The synthetic workload of papers/1 section 6.2.1.

Applications that can each saturate the storage (b_i = B = 1): `n_small` with
iterations of 1,000 s on average, a third with 10,000 s, the rest with 100,000 s.
The window ends when the first of them would end, were it alone.

Deviation: omega is redrawn until it exceeds 2 s (the paper: until positive),
else a few applications with iterations of microseconds would be all there is.
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

    pressure: float = parameter(0.8, "W", "aimed I/O pressure", low=0.0)
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
        """How many applications have short, medium and long iterations."""
        medium = self.applications // 3
        small = medium if self.n_small < 0 else self.n_small
        return small, medium, self.applications - medium - small

    @property
    def recipe(self) -> Recipe:
        """How the applications are drawn."""
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
