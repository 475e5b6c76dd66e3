# SPDX-License-Identifier: MIT
"""Baseline: the time-stepped simulation of target allocation, section 5.2.

"At each unit of time, the simulator examines the status of each application
(compute or I/O). When there is a collision on an I/O resource, the colliding
applications will alternate in performing I/O for one unit of time each until their
I/O subphases are over."

A unit of time belongs to one phase; the rest of the unit in which a phase ends is
wasted. Phases therefore last too long, each transfer by up to one unit per colliding
application. As the step goes to 0, the method converges to fair sharing of time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.model import Application, Instance, Sharing

__all__ = ["SteppedRun", "simulate"]

#: Fraction of a step below which an amount counts as 0 (rounding).
_ROUNDING = 1e-9


@dataclass
class SteppedRun:
    """Result of a simulation; the names are those of `penstock.sim.Run`."""

    end: float
    """First end of an application, or the end of the window (s)."""
    steps: int
    yields: list[float]
    work: list[float]
    """Work done (s), without wasted parts of units of time."""
    volume: list[float]
    """Volume transferred (bytes)."""
    io_time: list[float]
    """Time in I/O phases, including waiting (s)."""
    operations: list[int]
    """Number of completed operations."""
    occupied: list[float]
    """By target: units of time in which it performed I/O (s)."""


class Client:
    """An application: the rest of its present phase, and its progress."""

    def __init__(self, index: int, application: Application, cap: float) -> None:
        self.index = index
        self.cap = cap
        self.targets = application.targets
        #: Alternately compute and I/O, in seconds at full speed.
        self.phases = [0.0] * (2 * len(application.volume) + 1)
        self.phases[0::2] = application.work.tolist()
        self.phases[1::2] = (application.volume / cap).tolist()
        self.phase = -1
        self.computing = True
        #: Rest of the compute phase, or of the transfer on each target (s).
        self.left: list[float] = []
        self.work = self.volume = self.io_time = 0.0

    def next_phase(self, tiny: float) -> bool:
        """Enter the next phase that is not empty; return False if there is none."""
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
        """Number of completed operations."""
        return self.phase // 2

    def spend(self, part: int, step: float, tiny: float) -> float:
        """Spend a unit of time on a part of the phase; return the time used (s)."""
        used = min(step, self.left[part])
        self.left[part] -= used
        if self.left[part] <= tiny:
            self.left[part] = 0.0
        return used


class Resource:
    """An I/O resource: its users in this unit of time, and the one served last."""

    def __init__(self) -> None:
        self.users: list[tuple[Client, int]] = []
        self.last = -1
        self.occupied = 0.0

    def next_user(self) -> tuple[Client, int]:
        """Return the next user by index after the one served last (round robin)."""
        for user in self.users:
            if user[0].index > self.last:
                return user
        return self.users[0]

    def serve(self, step: float, tiny: float) -> None:
        """Serve one of the users for one unit of time."""
        client, part = self.next_user()
        self.last = client.index
        used = client.spend(part, step, tiny)
        client.volume += used * client.cap / len(client.targets)
        self.occupied += step
        self.users.clear()


def _examine(
    client: Client, resources: list[Resource], step: float, tiny: float
) -> None:
    """Compute for one unit of time, or queue for I/O."""
    if client.computing:
        client.work += client.spend(0, step, tiny)
        return
    client.io_time += step
    for part, target in enumerate(client.targets):
        if client.left[part] > 0.0:
            resources[target].users.append((client, part))


def _advance(
    clients: list[Client], resources: list[Resource], step: float, tiny: float
) -> bool:
    """Advance by one unit of time; return True if no application has ended."""
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
    """Refuse instances that the method cannot represent."""
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
                remedy="release and start all applications at the begin of the window",
            )


def simulate(instance: Instance, step: float = 1.0) -> SteppedRun:
    """Simulate in steps of `step` seconds until the first application ends.

    The simulation also stops at the end of the window.
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
