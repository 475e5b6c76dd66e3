# SPDX-License-Identifier: MIT
"""Four classes of profiles, and one representative curve per class.

Classes (target allocation, section 2): more targets improve the bandwidth (ascent),
reduce it (descent), improve it up to a point (peak) or do not matter (neutral).

Rule: compare b(1), b(2), b(4), b(8), ... and the last b(n), each with the one before.

- No change by more than 10 %: neutral.
- Otherwise the position of the maximum of b over all n decides (the smallest n if there
  are several): descent at n = 1, ascent at the last n, peak in between.

The paper gives no rule, but says that class information changes the decision of
best-bandwidth only for some peak and neutral profiles (section 6.2). This rule has that
property: best-bandwidth takes the position of the maximum, which all ascents have at
the last n and all descents at n = 1, and so have the curves of these two classes.

Curves (section 6.2, Figure 10): the profile that an algorithm receives if it knows only
the class. The paper says "polynomial regression"; this is read as

    log b(n) - mean of log b  =  a0 + a1 x + a2 x^2 + a3 x^3,    x = log2 n,

by least squares over all profiles of the class and all n. Every profile has the same
weight, whatever its bandwidth, and the curve is positive by construction. The curve is
scaled to b(1) of the application, which a single run can measure.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache

import numpy as np
from numpy.polynomial import Polynomial

from penstock.errors import InputError
from penstock.model import Column
from penstock.workloads.profiles.profiles import profiles

__all__ = ["ProfileShape", "class_profile", "shape_of", "shape_profile"]

_TOLERANCE = 0.1
_DEGREE = 3


class ProfileShape(StrEnum):
    """Class of a profile: how more targets change the bandwidth."""

    ASCENT = "ascent"
    DESCENT = "descent"
    PEAK = "peak"
    NEUTRAL = "neutral"


def shape_of(profile: Column) -> ProfileShape:
    """Return the class of b(1), b(2), ... by the rule in the module docstring."""
    if not len(profile):
        raise InputError(
            "the profile is empty", remedy="give the bandwidth on 1 target"
        )
    doublings = 2 ** np.arange((len(profile) - 1).bit_length() + 1)
    seen = profile[np.minimum(doublings, len(profile)) - 1]
    if not (np.abs(np.diff(seen)) > _TOLERANCE * seen[:-1]).any():
        return ProfileShape.NEUTRAL
    best = int(np.argmax(profile))
    if best == 0:
        return ProfileShape.DESCENT
    return ProfileShape.ASCENT if best == len(profile) - 1 else ProfileShape.PEAK


def class_profile(profile: Column, case: str = "io-nodes") -> Column:
    """Return the profile that represents the class of `profile` (bytes/s).

    It is the curve of the class among the profiles of `case`, scaled to b(1).
    """
    longest = _longest(case)
    if len(profile) > longest:
        raise InputError(
            f"the profile has {len(profile)} targets",
            remedy=f"give at most {longest}, like the profiles of {case}",
        )
    curve = np.array(
        shape_profile(shape_of(profile), float(profile[0]), len(profile), case)
    )
    curve.setflags(write=False)
    return curve


def shape_profile(
    shape: ProfileShape, first: float, targets: int, case: str = "io-nodes"
) -> tuple[float, ...]:
    """Return the curve of a class, scaled to b(1) = `first`, as in its unit.

    It ends with `targets`, or where the profiles of `case` end.
    """
    places = np.log2(np.arange(1, min(targets, _longest(case)) + 1))
    heights = _curve(case, shape)(places)
    return tuple((first * np.exp(heights - heights[0])).tolist())


def _longest(case: str) -> int:
    """Return the number of targets in the profiles of `case`."""
    return len(profiles(case)[0].bandwidth)


@cache
def _curve(case: str, shape: ProfileShape) -> Polynomial:
    """Return the logarithm of the bandwidth of a class as a polynomial of log2 n."""
    members = [p.bandwidth for p in profiles(case) if shape_of(p.bandwidth) is shape]
    if not members:
        raise InputError(f"no profile of {case} is of the class {shape}")
    heights = np.log(members)
    heights -= heights.mean(axis=1, keepdims=True)
    places = np.log2(np.arange(1, heights.shape[1] + 1))
    return Polynomial.fit(
        np.broadcast_to(places, heights.shape).ravel(), heights.ravel(), _DEGREE
    )
