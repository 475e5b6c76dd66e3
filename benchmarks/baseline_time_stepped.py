# SPDX-License-Identifier: MIT
"""Baseline: the time-stepped simulation of papers/2 section 5.2, in plain Python.

"At each unit of time, the simulator examines the status of each application
(compute or I/O). When there is a collision on an I/O resource, the colliding
applications will alternate in performing I/O for one unit of time each until their
I/O subphases are over."

A unit of time belongs to one phase: what is left of it when the phase ends is
wasted. Phases therefore last too long, each transfer by up to one turn of all who
collide with it, and the method tends to fair share of time as the step goes to 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.model import Application, Instance, Sharing

__all__ = ["SteppedRun", "simulate"]

#: Part of a step by which an amount may miss 0 and still be 0: rounding.
_ROUNDING = 1e-9


@dataclass
class SteppedRun:
    """What came of a simulation; the names are those of `penstock.sim.Run`."""

    end: float
    """First end of an application, or the end of the window (s)."""
    steps: int
    yields: list[float]
    work: list[float]
    """Work done (s); wasted parts of a unit of time are none."""
    volume: list[float]
    """Volume transferred (bytes)."""
    io_time: list[float]
    """Time spent in I/O phases, waiting included (s)."""
    operations: list[int]
    """Completed operations."""
    occupied: list[float]
    """By target: units of time in which it performed I/O (s)."""


class Client:
    """An application: what is left of its present phase, and what it has done."""

    def __init__(self, index: int, application: Application, cap: float) -> None:
        self.index = index
        self.cap = cap
        self.targets = application.targets
        #: Compute and I/O in turn, all in seconds at full speed.
        self.phases = [0.0] * (2 * len(application.volume) + 1)
        self.phases[0::2] = application.work.tolist()
        self.phases[1::2] = (application.volume / cap).tolist()
        self.phase = -1
        self.computing = True
        #: What is left of the compute phase, or of the transfer on each target (s).
        self.left: list[float] = []
        self.work = self.volume = self.io_time = 0.0

    def next_phase(self, tiny: float) -> bool:
        """Enter the next phase that is not empty; return whether there was one."""
        for phase in range(self.phase + 1, len(self.phases)):
            if self.phases[phase] > tiny:
                self.phase = phase
                self.computing = phase % 2 == 0
                parts = 1 if self.computing else len(self.targets)
                self.left = [self.phases[phase]] * parts
                return True
        self.phase = len(self.phases)
        return False

    @property
    def operations(self) -> int:
        """How many operations are complete."""
        return self.phase // 2

    def spend(self, place: int, step: float, tiny: float) -> float:
        """Spend a unit of time on a part of the phase; return what was of use (s)."""
        used = min(step, self.left[place])
        self.left[place] -= used
        if self.left[place] <= tiny:
            self.left[place] = 0.0
        return used


class Resource:
    """An I/O resource: who tries to use it, and whose turn it is."""

    def __init__(self) -> None:
        self.users: list[tuple[Client, int]] = []
        self.last = -1
        self.occupied = 0.0

    def chosen(self) -> tuple[Client, int]:
        """Return the user after the one served last, by index, round and round."""
        for user in self.users:
            if user[0].index > self.last:
                return user
        return self.users[0]

    def serve(self, step: float, tiny: float) -> None:
        """Serve one of the users for one unit of time."""
        client, place = self.chosen()
        self.last = client.index
        used = client.spend(place, step, tiny)
        client.volume += used * client.cap / len(client.targets)
        self.occupied += step
        self.users.clear()


def _examine(
    client: Client, resources: list[Resource], step: float, tiny: float
) -> None:
    """Compute for one unit of time, or line up for I/O."""
    if client.computing:
        client.work += client.spend(0, step, tiny)
        return
    client.io_time += step
    for place, target in enumerate(client.targets):
        if client.left[place] > 0.0:
            resources[target].users.append((client, place))


def _advance(
    clients: list[Client], resources: list[Resource], step: float, tiny: float
) -> bool:
    """Let one unit of time pass; return whether no application ended."""
    for client in clients:
        _examine(client, resources, step, tiny)
    for resource in resources:
        if resource.users:
            resource.serve(step, tiny)
    alive = True
    for client in clients:
        if not any(client.left):
            alive = client.next_phase(tiny) and alive
    return alive


def _check(instance: Instance, step: float) -> None:
    """Refuse what the method has no notion of."""
    if not 0.0 < step < math.inf:
        raise InputError(
            f"{step!r} is not a unit of time",
            where="step",
            remedy="give a positive number of seconds",
        )
    if instance.platform.sharing is not Sharing.TIME:
        raise InputError(
            "the time-stepped method shares targets by time only",
            where="platform.sharing",
            remedy='set it to "time"',
        )
    for number, application in enumerate(instance.applications):
        if not instance.window.begin == application.release == application.start:
            raise InputError(
                f"{application.name!r} does not start at {instance.window.begin:g}",
                where=f"applications[{number}]",
                remedy="release and start all at the begin of the window",
            )


def simulate(instance: Instance, step: float = 1.0) -> SteppedRun:
    """Run `instance` until the first end of an application, `step` seconds at a time.

    The end of the window, too, ends the run.
    """
    _check(instance, step)
    tiny = _ROUNDING * step
    resources = [Resource() for _ in range(instance.platform.targets)]
    clients = [Client(i, a, cap) for i, (a, cap) in enumerate(instance.with_caps())]
    alive = all([client.next_phase(tiny) for client in clients])  # noqa: C419 - of all
    most = math.ceil(instance.window.length / step - _ROUNDING)
    steps = 0
    while alive and steps < most:
        alive = _advance(clients, resources, step, tiny)
        steps += 1
    length = max(steps, 1) * step
    return SteppedRun(
        end=instance.window.begin + steps * step,
        steps=steps,
        yields=[(c.work + c.volume / c.cap) / length for c in clients],
        work=[c.work for c in clients],
        volume=[c.volume for c in clients],
        io_time=[c.io_time for c in clients],
        operations=[c.operations for c in clients],
        occupied=[r.occupied for r in resources],
    )
