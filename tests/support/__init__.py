# SPDX-License-Identifier: MIT
"""Helpers of several test modules: policies to test, views, broken policies."""

from __future__ import annotations

import random

from penstock.policies import POLICIES

__all__ = ["ALL_POLICIES", "VARIANTS", "seeded"]

#: Policies of the table with other than their default parameters.
VARIANTS = (
    "periodic-greedy-yield:delta=48",
    "periodic-greedy-yield:clock=event",
    "periodic-greedy-yield:delta=7.5,clock=event",
    "set-10:initial=weight",
    "set-10:initial=weight,update=post",
    "set-10:update=post",
    "set-10:period=given",
    "set-fair-share:initial=weight,initial_weight=2",
    "set-fair-share:update=post",
    "set-fair-share:period=given",
    "share-priority:initial=weight",
    "share-priority:initial=weight,update=post",
    "share-priority:period=given",
)

#: Every policy of the table as it is, then the variants.
ALL_POLICIES = (*POLICIES, *VARIANTS)


def seeded(seed: int) -> random.Random:
    """Return a source of random numbers that are the same in every run."""
    return random.Random(seed)
