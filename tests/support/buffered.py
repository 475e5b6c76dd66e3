# SPDX-License-Identifier: MIT
"""An instance as storage and writers, where the engine and the buffers can do the same.

That is: all applications on all targets, without history, with the same profile.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.model import Application, Instance, Sharing
from penstock.sim.buffers.model import Act, Step, Storage, Writer

__all__ = ["storage_of", "writers_of"]


def writers_of(instance: Instance) -> tuple[Writer, ...]:
    """Return the applications, each with one I/O phase and one process per node."""
    return tuple(_writer(a, instance) for a in instance.applications)


def storage_of(instance: Instance) -> Storage:
    """Return the storage."""
    platform = instance.platform
    profiles = [a.profile for a in instance.applications]
    assert all(np.array_equal(profile, profiles[0]) for profile in profiles)
    profile = profiles[0] if platform.sharing is Sharing.TIME else ()
    return Storage(platform.bandwidth, platform.targets, tuple(profile))


def _writer(application: Application, instance: Instance) -> Writer:
    """Return work and writes in turn, without zeros, and a close."""
    assert application.targets == tuple(range(instance.platform.targets))
    assert application.release == application.start
    volumes = [*application.volume.tolist(), 0.0]
    steps = []
    for work, volume in zip(application.work.tolist(), volumes, strict=True):
        steps += [Step(Act.WORK, work), Step(Act.WRITE, volume)]
    most = application.nodes * instance.platform.node_bandwidth
    return Writer(
        application.name,
        (*(step for step in steps if step.amount > 0), Step(Act.CLOSE)),
        start_s=application.start,
        nodes=application.nodes,
        processes=application.nodes,
        limit_bytes_per_s=math.inf if application.profile.size else most,
    )
