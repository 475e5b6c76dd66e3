# SPDX-License-Identifier: MIT
"""Scenarios: days that could have happened as well as the day in the logs.

Tomorrow's jobs will not start at the same instants, and a log does not tell every
phase exactly. Advice that holds on one instance only is worthless. So every instance
is also simulated with these changes, drawn for every application on its own:

- it starts earlier or later, by up to half of its mean iteration;
- every work phase and every operation is longer or shorter: its length is multiplied
  by a lognormal factor with the median 1;

and, if the bandwidth of the storage was assumed, for the whole instance:

- the bandwidth is multiplied by a lognormal factor with the median 1.

The first scenarios are the instances themselves. Same seed, same scenarios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng

from penstock.errors import InputError
from penstock.model import Application, Instance

__all__ = ["Uncertainty", "draw_scenarios", "mean_iteration_s"]

#: An application may be shifted by this part of its mean iteration, either way.
_SHIFT: Final = 0.5
#: The latest start, as a part of the window: at least 1 % of the window is left.
_LATEST: Final = 0.99
#: Operations between which there is an iteration.
_TWO: Final = 2


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """How much the scenarios differ: standard deviations of logarithms."""

    phases: float = 0.1
    """Of the lengths of phases."""
    bandwidth: float = 0.0
    """Of the bandwidth of the storage; 0 if it is known."""

    def __post_init__(self) -> None:
        for name in ("phases", "bandwidth"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(
                    f"{getattr(self, name)!r} is not an uncertainty",
                    where=f"uncertainty of the {name}",
                    remedy="give a number from 0 to 1",
                )


def draw_scenarios(
    instances: Sequence[Instance], count: int, uncertainty: Uncertainty, seed: int
) -> list[Instance]:
    """Return the instances, and changed copies of them until there are `count`."""
    scenarios = list(instances)
    for number in range(len(instances), count):
        generator = default_rng((seed, number))
        scenarios.append(
            _changed(instances[number % len(instances)], uncertainty, generator)
        )
    return scenarios


def mean_iteration_s(application: Application, cap: float) -> float:
    """Return the mean time from one operation to the next without waiting (s).

    The work before the first and after the last operation is no part of an iteration.
    An application with one operation has one iteration: its whole length.
    """
    volume = application.volume
    if len(volume) < _TWO:
        return float(application.work.sum() + volume.sum() / cap)
    return float(application.work[1:-1].mean() + volume.mean() / cap)


def _changed(
    instance: Instance, uncertainty: Uncertainty, generator: Generator
) -> Instance:
    """Return a copy of an instance with other starts, phases and bandwidth."""
    factor = float(generator.lognormal(0.0, uncertainty.bandwidth))
    platform = instance.platform
    applications = []
    for application, cap in instance.with_caps():
        length = mean_iteration_s(application, cap)
        shift = float(generator.uniform(-_SHIFT, _SHIFT)) * length
        applications.append(
            replace(
                _shifted(application, shift, instance),
                work=_stretched(application.work, uncertainty, generator),
                volume=_stretched(application.volume, uncertainty, generator),
                # A slower storage moved less in the same past.
                done_volume=application.done_volume * min(factor, 1.0),
            )
        )
    return replace(
        instance,
        platform=replace(platform, bandwidth=platform.bandwidth * factor),
        applications=tuple(applications),
    )


def _shifted(application: Application, shift: float, instance: Instance) -> Application:
    """Return the application with another start, which stays inside the window.

    The release moves too, so that the past of the application stays consistent.
    """
    window = instance.window
    earliest = min(application.start, window.begin)
    latest = max(application.start, window.begin + _LATEST * window.length)
    start = min(max(application.start + shift, earliest), latest)
    age = application.start - application.release
    return replace(application, release=start - age, start=start)


def _stretched(
    lengths: np.ndarray, uncertainty: Uncertainty, generator: Generator
) -> np.ndarray:
    factors = generator.lognormal(0.0, uncertainty.phases, size=len(lengths))
    stretched: np.ndarray = lengths * factors
    return stretched
