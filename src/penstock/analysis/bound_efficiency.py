# SPDX-License-Identifier: MIT
"""Upper bound on Efficiency (papers/1 eq. 10) for schedulers with a given MinYield.

Only bandwidth counts here: in a window of length T the storage moves B T at most. For
yield x an application must move v_i(x), the volume that it has moved in dedicated mode
after x T. So every scheduler with a MinYield of y or more has an Efficiency of at most

    max  sum p_i x_i / sum p_i    subject to  sum v_i(x_i) <= B T,  y <= x_i <= 1,

and at most what that is with the lower convex envelope of v_i over [y, 1] in its place.
The envelope is a chain of segments, so that the maximum is greedy: those with the most
progress of nodes per volume first. O(n log n) for n operations. Targets that are shared
by time are taken for one, as for MinYield (`penstock.analysis.bound`).

Over several instances, a scheduler may have less MinYield in one and more in another.
For every price of MinYield in Efficiency, lambda >= 0, the mean Efficiency of a
scheduler with a mean MinYield of y or more is at most the mean of max_x F(x) +
lambda x, minus lambda y, F being the bound of one instance; the best lambda counts.
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

#: Steps of MinYield from 0 to its bound.
_STEPS: Final = 100


def efficiency_bound(instance: Instance, min_yield: float) -> float:
    """Return what no scheduler with that MinYield exceeds; minus infinity if none has.

    The applications must be released when the window begins, without history.
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
    # Rounding is granted to the scheduler.
    if left < -1e-9 * platform.bandwidth * length:
        return -math.inf
    left = max(left, 0.0)
    for gain, volume in sorted(gains, key=lambda g: _price(*g)):
        part = 1.0 if volume <= left else left / volume
        progress += part * gain
        left = max(left - part * volume, 0.0)
    return progress / nodes


def mean_efficiency_bound(tradeoffs: Sequence[Tradeoff], min_yield: float) -> float:
    """Return what no scheduler with that mean MinYield exceeds in mean Efficiency."""
    lowest = math.inf
    for price in (0.0, *np.geomspace(0.01, 100.0, 200).tolist()):
        best = [tradeoff.best(price) for tradeoff in tradeoffs]
        lowest = min(lowest, math.fsum(best) / len(best) - price * min_yield)
    return lowest


@dataclass(frozen=True, eq=False, slots=True)
class Tradeoff:
    """The bound on Efficiency of one instance, at rising MinYields."""

    min_yield: NDArray[np.float64]
    """From 0 to the bound on MinYield."""
    efficiency: NDArray[np.float64]
    """Falling; minus infinity where bandwidth alone forbids the MinYield."""

    @classmethod
    def of(cls, instance: Instance) -> Self:
        """Return the bounds of `instance`."""
        yields = np.linspace(0.0, min_yield_bound(instance).min_yield, _STEPS + 1)
        bounds = [efficiency_bound(instance, y) for y in yields.tolist()]
        return cls(yields, np.array(bounds))

    def best(self, price: float) -> float:
        """Return the most of Efficiency + price x MinYield, rounded up.

        Between two steps Efficiency is at most that of the lower one, MinYield at most
        that of the higher one.
        """
        return float(np.max(self.efficiency[:-1] + price * self.min_yield[1:]))


def _check(instance: Instance, min_yield: float) -> None:
    if not 0.0 <= min_yield <= 1.0:
        raise InputError(
            f"{min_yield!r} is no MinYield",
            where="min_yield",
            remedy="give a number from 0 to 1",
        )
    begin = instance.window.begin
    for number, a in enumerate(instance.applications):
        if a.release != begin or a.start != begin:
            raise InputError(
                "not released when the window begins",
                where=f"applications[{number}]",
                remedy="this bound is for applications without history",
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
    """Tell whether `middle` is on or above the line from `first` to `last`."""
    rise, run = last[1] - first[1], last[0] - first[0]
    return (middle[1] - first[1]) * run >= rise * (middle[0] - first[0])


def _gains(
    chain: list[tuple[float, float]], nodes: int
) -> Iterator[tuple[float, float]]:
    """Yield progress of nodes and volume of every segment."""
    for (x, volume), (next_x, next_volume) in pairwise(chain):
        yield nodes * (next_x - x), next_volume - volume


def _price(gain: float, volume: float) -> float:
    """Return volume per progress."""
    return volume / gain if gain > 0.0 else math.inf
