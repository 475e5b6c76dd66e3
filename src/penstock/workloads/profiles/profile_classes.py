# SPDX-License-Identifier: MIT
"""Four classes of profiles, and the one curve that stands for each of them.

Classes (papers/2 section 2): more targets improve the bandwidth (ascent), harm it
(descent), improve it up to a point (peak) or do not matter (neutral).

Rule: look at b(1), b(2), b(4), b(8), ... and at the last n. A step up is a rise by
more than 10 % of the value before, a step down a fall by more than 10 % of it.

- No step: neutral. Steps up only: ascent. Steps down only: descent.
- Both: by where the largest of these values is: at the first n descent, at the last
  ascent, else peak.

Curves (papers/2 section 6.2, Fig. 10): what an algorithm is told when it knows only
the class. The paper says "polynomial regression"; read here as

    log b(n) - mean of log b  =  a0 + a1 x + a2 x^2 + a3 x^3,    x = log2 n,

by least squares over all profiles of the class and all their n: every profile counts
alike whatever its bandwidth, and the curve is positive by construction. It is scaled
to the application's own b(1), the one bandwidth that a single run tells.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache

import numpy as np
from numpy.polynomial import Polynomial

from penstock.errors import InputError
from penstock.model import Column
from penstock.workloads.profiles.profiles import profiles

__all__ = ["ProfileShape", "class_profile", "shape_of"]

_TOLERANCE = 0.1
_DEGREE = 3


class ProfileShape(StrEnum):
    """What more targets do to the bandwidth of an application."""

    ASCENT = "ascent"
    DESCENT = "descent"
    PEAK = "peak"
    NEUTRAL = "neutral"


def shape_of(profile: Column) -> ProfileShape:
    """Return the class of b(1), b(2), ... (the rule of this module's docstring)."""
    if not len(profile):
        raise InputError("an empty profile", remedy="give the bandwidth on 1 target")
    doublings = 2 ** np.arange((len(profile) - 1).bit_length() + 1)
    seen = profile[np.minimum(doublings, len(profile)) - 1]
    change = np.diff(seen) / seen[:-1]
    rises, falls = bool((change > _TOLERANCE).any()), bool((change < -_TOLERANCE).any())
    if rises and falls:
        return _by_maximum(seen)
    if rises:
        return ProfileShape.ASCENT
    return ProfileShape.DESCENT if falls else ProfileShape.NEUTRAL


def class_profile(profile: Column, case: str = "io-nodes") -> Column:
    """Return what is told of b(1), b(2), ... if only its class is known (bytes/s).

    The curve of its class among the profiles of `case`, scaled to its b(1).
    """
    shape = shape_of(profile)
    longest = len(profiles(case)[0].bandwidth)
    if len(profile) > longest:
        raise InputError(
            f"a profile of {len(profile)} targets",
            remedy=f"the curves of {case} end with {longest}",
        )
    heights = _curve(case, shape)(np.log2(np.arange(1, len(profile) + 1)))
    told: Column = profile[0] * np.exp(heights - heights[0])
    told.setflags(write=False)
    return told


def _by_maximum(seen: Column) -> ProfileShape:
    place = int(np.argmax(seen))
    if place == 0:
        return ProfileShape.DESCENT
    return ProfileShape.ASCENT if place == len(seen) - 1 else ProfileShape.PEAK


@cache
def _curve(case: str, shape: ProfileShape) -> Polynomial:
    """Return the logarithm of a class's bandwidth as a polynomial of log2 n."""
    members = [p.bandwidth for p in profiles(case) if shape_of(p.bandwidth) is shape]
    if not members:
        raise InputError(f"no profile of {case} is of the class {shape}")
    heights = np.log(members)
    heights -= heights.mean(axis=1, keepdims=True)
    places = np.log2(np.arange(1, heights.shape[1] + 1))
    return Polynomial.fit(
        np.broadcast_to(places, heights.shape).ravel(), heights.ravel(), _DEGREE
    )
