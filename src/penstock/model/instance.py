# SPDX-License-Identifier: MIT
"""An instance: a platform, a window and the applications that run in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import InputError
from penstock.model.application import TIME_GRAIN, Application, Column
from penstock.model.platform import Platform, Sharing
from penstock.model.window import Window

__all__ = ["Instance"]


@dataclass(frozen=True, eq=False)
class Instance:
    """Everything that a simulation needs except the policy."""

    platform: Platform
    window: Window
    applications: tuple[Application, ...]

    def __post_init__(self) -> None:
        if not self.applications:
            raise InputError(
                "no application", where="applications", remedy="list at least one"
            )
        seen: dict[str, int] = {}
        for number, (application, cap) in enumerate(self.with_caps()):
            where = f"applications[{number}]"
            first = seen.setdefault(application.name, number)
            if first != number:
                raise InputError(
                    f"the name {application.name!r} is already used by "
                    f"applications[{first}]",
                    where=f"{where}.name",
                    remedy="give every application another name",
                )
            if not all(0 <= r < self.platform.targets for r in application.targets):
                raise InputError(
                    f"some of {list(application.targets)} do not exist",
                    where=f"{where}.targets",
                    remedy=_known_targets(self.platform.targets),
                )
            if max(application.release, application.start) >= self.window.end:
                raise InputError(
                    f"{application.name!r} is released at {application.release:g} s "
                    f"and starts at {application.start:g} s, but the window ends at "
                    f"{self.window.end:g} s",
                    where=where,
                    remedy="leave the application out or extend the window",
                )
            try:
                application.lost_at_start(cap)
                _check_length(application, cap)
            except InputError as error:
                raise error.at(where) from None

    @cached_property
    def caps(self) -> Column:
        """Cap b_i of every application (bytes/s)."""
        caps = np.array([self._cap(a) for a in self.applications])
        caps.setflags(write=False)
        return caps

    def _cap(self, application: Application) -> float:
        """Return the cap b_i of an application (bytes/s).

        The profile gives it, if the application has one; otherwise the platform does.
        """
        width = len(application.targets)
        if not application.profile.size:
            return self.platform.cap(application.nodes, width)
        measured = float(application.profile[width - 1])
        if self.platform.sharing is Sharing.TIME:
            return measured
        return min(measured, width * self.platform.target_bandwidth)

    def with_caps(self) -> Iterator[tuple[Application, float]]:
        """Iterate over the applications with their caps (bytes/s)."""
        return zip(self.applications, self.caps.tolist(), strict=True)

    @cached_property
    def dedicated(self) -> tuple[Column, ...]:
        """End of each phase of every application in dedicated mode (s)."""
        return tuple(a.dedicated_times(cap) for a, cap in self.with_caps())

    def dedicated_events(self) -> int:
        """Return the number of events E: two for every operation posted in the window.

        Equation 5 of bandwidth sharing, counted in dedicated mode over
        [T_begin, T_end). A post at an edge of the window, up to rounding, is at it.
        """
        return self._events

    @cached_property
    def _events(self) -> int:
        edges = np.array([self.window.begin, self.window.end])
        largest = max(abs(edges).max(), *(abs(a.start) for a in self.applications))
        edges -= TIME_GRAIN * largest
        events = 0
        for times in self.dedicated:
            low, high = np.searchsorted(times[:-1:2], edges)
            events += 2 * int(high - low)
        return events

    def pressure(self) -> float:
        """Return the I/O pressure W (bandwidth sharing, equation 11).

        W is the volume that all applications would transfer inside the window in
        dedicated mode, divided by the volume that the storage can transfer in that
        time. An operation that crosses an edge of the window counts pro rata. Where
        targets are shared by time, W is the fraction of time for which the targets
        would be occupied (the I/O-load of target allocation, equation 3).
        """
        begin, end = self.window.begin, self.window.end
        by_time = self.platform.sharing is Sharing.TIME
        used = 0.0
        columns = zip(self.with_caps(), self.dedicated, strict=True)
        for (application, cap), ends in columns:
            times = ends.clip(begin, end)
            weight = len(application.targets) if by_time else cap
            used += weight * float(np.sum(times[1::2] - times[0:-1:2]))
        supply = self.platform.targets if by_time else self.platform.bandwidth
        return used / (supply * self.window.length)

    def digest(self) -> str:
        """Return a SHA-256 of everything that can change a simulation."""
        digest = hashlib.sha256()
        for a in self.applications:
            facts = (a.name, a.nodes, a.release, a.start, a.done_work, a.done_volume)
            digest.update(repr((*facts, a.user, a.group, a.period)).encode())
            digest.update(a.work.tobytes())
            digest.update(a.volume.tobytes())
            digest.update(a.profile.tobytes() + repr(a.targets).encode())
        digest.update(repr((self.platform, self.window)).encode())
        return digest.hexdigest()


def _known_targets(count: int) -> str:
    if count == 1:
        return "use target 0, the only one, or give the platform more `targets`"
    return f"use targets 0 to {count - 1}"


def _check_length(application: Application, cap: float) -> None:
    """Raise `InputError` if the duration of an application is not a finite number."""
    with np.errstate(over="ignore"):
        length = application.work.sum() + application.volume.sum() / cap
    if not np.isfinite(length):
        raise InputError(
            f"the phases take infinitely long at {cap:g} B/s",
            remedy="give smaller volumes or a higher bandwidth",
        )
