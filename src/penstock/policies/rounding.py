# SPDX-License-Identifier: MIT
"""Rounding of compared numbers: what is equal in exact arithmetic ties in the program.

Doubles that are equal in exact arithmetic differ in their last bits if they were
computed in different ways. A comparison would then decide by rounding errors, where the
rule is: ties go to the lowest index. So policies round their keys before they compare
them. (A tolerance on pairs would not be transitive.) Rounding errors are about 1e-16 of
the largest number in a computation, and accumulate slowly; the grids are much coarser:

- Losses, hence yields, and logarithms: multiples of `RATIO_GRAIN`, about 1e-10.
- Times (s): about `GRAIN` = 2^-40 (1e-12) of the time or of the clock.
- Bandwidths: a rest of less than `GRAIN` of the capacity is nothing, and a rate that
  misses the cap by less than `GRAIN` of it is the cap.
- Instants: the engine handles events that are less than `GRAIN` of the simulated time
  apart as one instant: `instant_end`.

Method: adding and subtracting a large number S rounds to multiples of the last bit of
S. This takes two additions and has the same bits compiled and interpreted.
"""

from __future__ import annotations

from typing import Final

from penstock.kernels import inlined

__all__ = [
    "GRAIN",
    "RATIO_GRAIN",
    "instant_end",
    "is_full",
    "round_ratio",
    "round_time",
]

#: Relative differences below this are rounding errors.
GRAIN: Final = 2.0**-40
#: Losses and logarithms are rounded to multiples of this.
RATIO_GRAIN: Final = 2.0**-33

#: The last bit of a double is 2^-52 of it.
_RATIO_SHIFT: Final = 1.5 * 2.0**52 * RATIO_GRAIN
_TIME_SHIFT: Final = 2.0**52 * GRAIN
_FULL: Final = 1.0 - GRAIN
#: Part of the clock that is a rounding error wherever the simulation began: a few bits.
_CLOCK_GRAIN: Final = 2.0**-48


@inlined
def round_ratio(value: float) -> float:
    """Return a loss or a logarithm, rounded to a multiple of `RATIO_GRAIN`."""
    return (value + _RATIO_SHIFT) - _RATIO_SHIFT


@inlined
def round_time(time: float, clock: float) -> float:
    """Return a time (s), rounded to about `GRAIN` of it or of `clock`.

    `clock` is the largest time from which it was computed. The grid depends on both
    only, so equal times are rounded alike, and the order of others is kept.
    """
    shift = _TIME_SHIFT * max(abs(clock), abs(time))
    return (time + shift) - shift


@inlined
def instant_end(now: float, origin: float) -> float:
    """Return up to when events belong to the instant `now` (s).

    These are events within `GRAIN` of the time since `origin`, when the simulation
    began, or within a few bits of a clock that is far from 0.
    """
    return now + max((now - origin) * GRAIN, abs(now) * _CLOCK_GRAIN)


@inlined
def is_full(rate: float, cap: float) -> bool:
    """Return True if `rate` is the cap, up to rounding, or more, or NaN."""
    # "not <=" is also true for NaN.
    return not rate <= cap * _FULL
