# SPDX-License-Identifier: MIT
"""Upper bound on Efficiency for schedulers with a given MinYield.

Efficiency is equation 10 of bandwidth sharing. The bound uses only the total bandwidth:
in a window of length T the storage transfers at most B T. For yield x, application i
must transfer v_i(x), its volume after x T in dedicated mode. Therefore every scheduler
with a MinYield of at least y has an Efficiency of at most

    max  sum p_i x_i / sum p_i    subject to  sum v_i(x_i) <= B T,  y <= x_i <= 1.

Replacing v_i by its lower convex envelope over [y, 1] can only raise this maximum. The
envelope is a chain of segments, so the maximum is found greedily: segments with the
most node progress per volume first. O(n log n) for n operations. Several targets are
replaced by one, as for MinYield (see `bound`).

Over several instances, a scheduler may have a lower MinYield in one instance and a
higher one in another. Let F be the bound of one instance. For every price lambda >= 0
of MinYield in units of Efficiency, the mean Efficiency of a scheduler with a mean
MinYield of at least y is at most mean(max_x F(x) + lambda x) - lambda y. The smallest
value over all lambda is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from penstock.analysis.bound import min_yield_bound, pooled
from penstock.errors import InputError
from penstock.model import Application, Instance

__all__ = ["Tradeoff", "efficiency_bound", "mean_efficiency_bound"]

#: Number of steps of MinYield between 0 and its bound.
_STEPS: Final = 100


def efficiency_bound(instance: Instance, min_yield: float) -> float:
    """Return the largest Efficiency of a scheduler with at least that MinYield.

    Minus infinity if no scheduler has that MinYield. The applications must be released
    when the window begins, without a past.
    """
    _check(instance, min_yield)
    instance = pooled(instance)
    length, platform = instance.window.length, instance.platform
    left = platform.bandwidth * length
    gains: list[tuple[float, float]] = []
    nodes = progress = 0.0
    for application, cap in instance.with_caps():
        chain = _envelope(_corners(application, cap, length, min_yield))
        nodes += application.nodes
        progress += application.nodes * chain[0][0]
        left -= chain[0][1]
        gains += _gains(chain, application.nodes)
    # Tolerate rounding errors, so that the bound is never too low.
    if left < -1e-9 * platform.bandwidth * length:
        return -math.inf
    left = max(left, 0.0)
    for gain, volume in sorted(gains, key=lambda g: _price(*g)):
        part = 1.0 if volume <= left else left / volume
        progress += part * gain
        left = max(left - part * volume, 0.0)
    return progress / nodes


def mean_efficiency_bound(tradeoffs: Sequence[Tradeoff], min_yield: float) -> float:
    """Return the bound on mean Efficiency for schedulers with that mean MinYield."""
    lowest = math.inf
    for price in (0.0, *np.geomspace(0.01, 100.0, 200).tolist()):
        best = [tradeoff.best(price) for tradeoff in tradeoffs]
        lowest = min(lowest, math.fsum(best) / len(best) - price * min_yield)
    return lowest


@dataclass(frozen=True, eq=False, slots=True)
class Tradeoff:
    """The bound on Efficiency of one instance as a function of MinYield."""

    min_yield: NDArray[np.float64]
    """Ascending, from 0 to the bound on MinYield."""
    efficiency: NDArray[np.float64]
    """Descending; minus infinity where the bandwidth excludes the MinYield."""

    @classmethod
    def of(cls, instance: Instance) -> Self:
        """Return the bounds of `instance`."""
        yields = np.linspace(0.0, min_yield_bound(instance).min_yield, _STEPS + 1)
        bounds = [efficiency_bound(instance, y) for y in yields.tolist()]
        return cls(yields, np.array(bounds))

    def best(self, price: float) -> float:
        """Return an upper bound on max(Efficiency + price * MinYield).

        Between two steps, Efficiency is at most that of the lower step, and MinYield is
        at most that of the higher step.
        """
        return float(np.max(self.efficiency[:-1] + price * self.min_yield[1:]))


def _check(instance: Instance, min_yield: float) -> None:
    if not 0.0 <= min_yield <= 1.0:
        raise InputError(
            f"{min_yield!r} is not a MinYield",
            where="min_yield",
            remedy="give a number from 0 to 1",
        )
    begin = instance.window.begin
    for number, a in enumerate(instance.applications):
        if a.release != begin or a.start != begin:
            raise InputError(
                "the application is not released when the window begins",
                where=f"applications[{number}]",
                remedy="release all applications at the begin of the window",
            )


def _corners(
    application: Application, cap: float, length: float, least: float
) -> Iterator[tuple[float, float]]:
    """Yield (x, v_i(x)) at `least`, at the posts of operations above it, and at 1."""
    times = application.dedicated_times(cap) - application.start
    posts, volumes = times[:-1:2], application.volume
    moved = np.concatenate(([0.0], np.cumsum(volumes)))

    def volume(x: float) -> float:
        number = int(np.searchsorted(posts, x * length, side="left"))
        if number == 0:
            return 0.0
        begun = cap * (x * length - float(posts[number - 1]))
        return float(moved[number - 1]) + min(float(volumes[number - 1]), begun)

    yield least, volume(least)
    for number, post in enumerate(posts.tolist()):
        if least < post / length < 1.0:
            yield post / length, float(moved[number])
    yield 1.0, volume(1.0)


def _envelope(corners: Iterator[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the lower convex envelope of points with rising x."""
    chain: list[tuple[float, float]] = []
    for point in corners:
        while len(chain) > 1 and _above(chain[-2], chain[-1], point):
            chain.pop()
        chain.append(point)
    return chain


def _above(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]
) -> bool:
    """Return True if `middle` is on or above the line from `first` to `last`."""
    rise, run = last[1] - first[1], last[0] - first[0]
    return (middle[1] - first[1]) * run >= rise * (middle[0] - first[0])


def _gains(
    chain: list[tuple[float, float]], nodes: int
) -> Iterator[tuple[float, float]]:
    """Yield node progress and volume of every segment."""
    for (x, volume), (next_x, next_volume) in pairwise(chain):
        yield nodes * (next_x - x), next_volume - volume


def _price(gain: float, volume: float) -> float:
    """Return volume per progress."""
    return volume / gain if gain > 0.0 else math.inf
