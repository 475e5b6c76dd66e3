# SPDX-License-Identifier: MIT
"""Simulate a scene under a strategy or a placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from penstock.bench.partition.scenes import (
    CALL_BYTES,
    FILES,
    PLACEMENTS,
    TARGETS,
    PartitionApp,
    PhaseSpan,
)
from penstock.model import Application
from penstock.placement import get_allocation, get_placement
from penstock.placement.online import OnlinePlacement
from penstock.sim.buffers.delta import factors
from penstock.sim.buffers.model import Act, Buffer, Step, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.staging import Situation, StagingOrder, StagingPlan, Strategy

__all__ = ["SimulatedScene", "placed_targets", "simulate_scene", "writer_of"]

#: Journals in memory are much faster than the storage.
_BUFFER_SPEED: Final = 1000.0


def writer_of(app: PartitionApp) -> Writer:
    """Return an application as it is simulated.

    It has `FILES` open files on each of its targets. The preload library redirects
    each of them to one other target and merges them later. Orders hold from the next
    call on: a request is written in rounds of one call to every file. No daemon knows
    when a job will write for the first time.
    """
    rounds = ceil(app.size_bytes / (TARGETS * FILES * CALL_BYTES))
    write = (Step(Act.WRITE, app.size_bytes / rounds),) * rounds
    pause = Step(Act.WORK, app.delay_s)
    phase = (*write, *(pause, *write) * (app.requests - 1), Step(Act.CLOSE))
    steps = (*phase, *(Step(Act.WORK, app.work_s), *phase) * (app.phases - 1))
    return Writer(
        app.name,
        steps,
        start_s=app.start_s,
        processes=FILES,
        merges=True,
        by_file=True,
        foreseen=False,
    )


@dataclass(frozen=True)
class SimulatedScene:
    """What a simulation of a scene gives, by application."""

    slowdowns: Mapping[str, float]
    phases_s: Mapping[str, Sequence[PhaseSpan]]


def simulate_scene(
    apps: Sequence[PartitionApp], setting: str, profile: Sequence[float]
) -> SimulatedScene:
    """Simulate the applications under a strategy or a placement.

    `profile` is what an application draws alone on 1, 2, ... targets (bytes/s).
    """
    storage = Storage(profile[-1], TARGETS, tuple(profile))
    writers = [writer_of(app) for app in apps]
    alone = [simulate_buffers(storage, [writer]).io_times[0] for writer in writers]
    strategy: Strategy | str = setting
    if setting in PLACEMENTS:
        strategy = _fixed(placed_targets(apps, setting, profile))
    buffer = Buffer(_BUFFER_SPEED * storage.bandwidth)
    run = simulate_buffers(storage, writers, strategy, buffer)
    names = [app.name for app in apps]
    return SimulatedScene(
        dict(zip(names, factors(run, alone), strict=True)),
        dict(zip(names, run.phases, strict=True)),
    )


def placed_targets(
    apps: Sequence[PartitionApp], setting: str, profile: Sequence[float]
) -> dict[str, tuple[int, ...]]:
    """Return the targets that a placement gives to applications that join in order."""
    allocation, _, placement = setting.partition("+")
    online = OnlinePlacement(
        TARGETS, 1, get_allocation(allocation), get_placement(placement)
    )
    given = {}
    for app in apps:
        phases = [("work", app.work_s), ("io", float(app.volume_bytes))]
        known = Application.from_phases(app.name, 1, phases, profile=profile)
        given[app.name] = online.arrive(known).targets
    return given


def _fixed(targets: Mapping[str, tuple[int, ...]]) -> Strategy:
    """Return a strategy that gives every application its targets for the whole run."""

    def coordinate(situation: Situation) -> StagingPlan:
        names = [a.name for a in situation.applications]
        return StagingPlan([StagingOrder(targets[name], drain=True) for name in names])

    return Strategy("placed", "placed", coordinate, {})
