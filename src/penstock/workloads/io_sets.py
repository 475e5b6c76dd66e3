# SPDX-License-Identifier: MIT
"""The workload of IO-SETS, section 4: jobs of high, medium and low frequency.

There are 60 jobs, and each can saturate the storage alone. The iterations of n_H jobs
take about 10 s, those of 20 jobs 100 s, and those of 40 - n_H jobs 1,000 s. All jobs
start at 0, without an offset. The window is [1,000 s, 9,000 s]. Policies may ask for
the length w_iter of an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.model import Instance, Platform, Window
from penstock.workloads.iterative import Iterative, Recipe, draw_applications
from penstock.workloads.parameters import check_parameters, parameter

__all__ = ["IOSets"]

_MEANS_S = (10.0, 100.0, 1_000.0)
_MEDIUM = 20
_HIGH_AND_LOW = 40


@dataclass(frozen=True, slots=True)
class IOSets(Iterative):
    """Parameters of the IO-SETS workload."""

    stress: float = parameter(0.8, "omega", "sum of the I/O ratios", low=0.0)
    n_high: int = parameter(
        20, "n_H", "jobs with iterations of about 10 s", low=0, high=_HIGH_AND_LOW
    )
    sigma: float = parameter(
        0.1, "sigma", "spread of the iteration length over its mean", low=0.0
    )
    noise: float = parameter(
        0.0, "nu", "spread of one work or volume over its mean", low=0.0, high=1.0
    )
    horizon: float = parameter(20_000.0, "h", "length of a job alone (s)", low=10_000.0)

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def recipe(self) -> Recipe:
        """Distribution of the applications."""
        sizes = (self.n_high, _MEDIUM, _HIGH_AND_LOW - self.n_high)
        return Recipe(
            means=np.repeat(_MEANS_S, sizes).tolist(),
            sigma=self.sigma,
            shortest=0.0,
            load=self.stress,
            noise=self.noise,
            horizon=self.horizon,
            offset=False,
            period_known=True,
        )

    def instance(self, seed: int, index: int) -> Instance:
        """Draw instance `index` of `seed`."""
        window = Window(1_000.0, 9_000.0)
        return Instance(
            Platform(1.0, 1.0), window, draw_applications(self.recipe, seed, index)
        )
