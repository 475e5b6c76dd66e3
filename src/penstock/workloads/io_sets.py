# SPDX-License-Identifier: MIT
"""The workload of papers/3 section 4: jobs of high, medium and low frequency.

60 jobs that can each saturate the storage: n_H with iterations of about 10 s,
20 of 100 s, 40 - n_H of 1,000 s. All start at 0, without an offset; measured
from 1,000 to 9,000 s. The length w_iter of an iteration is known to the policies
that ask for it.
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
        """How the applications are drawn."""
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
