# SPDX-License-Identifier: MIT
"""Make the object that gives jobs their storage targets, from the settings.

The bandwidth of a job on 1, 2, ... targets, b(n), is that of the class of the job, if
the setting `job_classes` names one; else the setting `target_bandwidths`; else what
`penstock profile` has measured on these targets.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Final

from penstock.errors import InputError
from penstock.live.control.placing import JobPlacer
from penstock.live.settings import Settings
from penstock.live.staging.kept_profiles import kept_profile
from penstock.placement import get_allocation, get_placement
from penstock.placement.online import OnlinePlacement
from penstock.units import format_bandwidth
from penstock.workloads.profiles.profile_classes import ProfileShape, shape_profile

__all__ = ["job_placer", "known_profile"]

_LOG: Final = logging.getLogger("penstock.serve")


def job_placer(settings: Settings, names: Sequence[str]) -> JobPlacer:
    """Return what gives jobs the targets `names` when they join.

    Raises `InputError` if a setting is wrong. Measured bandwidths that cannot be used
    are ignored, with a warning in the log.
    """
    allocation, plus, placement = settings.placement.partition("+")
    if not plus:
        raise InputError(
            f"{settings.placement!r} does not name an allocation and a placement",
            where="placement",
            remedy='write e.g. "t-cpu+greedy-non-clairvoyant"',
        )
    online = OnlinePlacement(
        len(names), 1, get_allocation(allocation), get_placement(placement)
    )
    profile = known_profile(settings)[: len(names)]
    shown = ", ".join(map(format_bandwidth, profile)) or "not known"
    _LOG.info("bandwidth on 1, 2, ... targets: %s", shown)
    classes = _class_profiles(settings, names, profile)
    user = None if settings.users == "all" else os.geteuid()
    return JobPlacer(online, names, profile, classes, user)


def known_profile(settings: Settings) -> tuple[float, ...]:
    """Return the bandwidth on 1, 2, ... targets: as set, else as kept; (): unknown."""
    if settings.target_bandwidths or not settings.targets:
        return settings.target_bandwidths
    try:
        return kept_profile(settings.profiles_file, settings.targets)
    except InputError as error:
        _LOG.warning("%s", error)
        return ()


def _class_profiles(
    settings: Settings, names: Sequence[str], profile: Sequence[float]
) -> list[tuple[str, tuple[float, ...]]]:
    """Return patterns of names of jobs, with b(n) of their class, scaled to b(1)."""
    if settings.job_classes and not profile:
        raise InputError(
            "the bandwidth on one target is not known",
            where="job_classes",
            remedy="run `penstock profile`, or set target_bandwidths",
        )
    return [
        (pattern, shape_profile(ProfileShape(shape), profile[0], len(names)))
        for pattern, shape in settings.job_classes
    ]
