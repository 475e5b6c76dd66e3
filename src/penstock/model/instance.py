# SPDX-License-Identifier: MIT
"""An instance: a platform, a window and the applications that run in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import InputError
from penstock.model.application import Application, Column
from penstock.model.platform import Platform, Sharing
from penstock.model.window import Window

__all__ = ["Instance"]


@dataclass(frozen=True, eq=False)
class Instance:
    """Everything that a simulation needs but the policy."""

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
                    f"name {application.name!r} is already that of "
                    f"applications[{first}]",
                    where=f"{where}.name",
                    remedy="names must differ",
                )
            if not all(0 <= r < self.platform.targets for r in application.targets):
                raise InputError(
                    f"{list(application.targets)} are not all storage targets",
                    where=f"{where}.targets",
                    remedy=_known_targets(self.platform.targets),
                )
            if max(application.release, application.start) >= self.window.end:
                raise InputError(
                    f"{application.name!r} is released at {application.release:g} and "
                    f"starts at {application.start:g}, not before the window ends "
                    f"({self.window.end:g})",
                    where=where,
                    remedy="leave it out or move the window",
                )
            try:
                application.lost_at_start(cap)
                _check_length(application, cap)
            except InputError as error:
                raise error.at(where) from None

    @cached_property
    def caps(self) -> Column:
        """b_i of every application (bytes/s)."""
        caps = np.array([self._cap(a) for a in self.applications])
        caps.setflags(write=False)
        return caps

    def _cap(self, application: Application) -> float:
        """Return b_i: as measured on as many targets, else as the platform says."""
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

    def dedicated_events(self) -> int:
        """Return E of papers/1 eq. 5: two events per operation initiated.

        Counted in dedicated mode over [T_begin, T_end).
        """
        begin, end = self.window.begin, self.window.end
        events = 0
        for application, cap in self.with_caps():
            posts = application.dedicated_times(cap)[:-1:2]
            low, high = np.searchsorted(posts, (begin, end))
            events += 2 * int(high - low)
        return events

    def pressure(self) -> float:
        """Return the I/O pressure W, papers/1 eq. 11.

        The volume that every application would transfer inside the window in
        dedicated mode, operations cut pro rata at the window's edges, over what
        the storage can move in that time. Where targets are shared by time: the
        time for which they would be occupied, over the time there is (the
        I/O-load of papers/2 eq. 3).
        """
        begin, end = self.window.begin, self.window.end
        by_time = self.platform.sharing is Sharing.TIME
        used = 0.0
        for application, cap in self.with_caps():
            times = application.dedicated_times(cap).clip(begin, end)
            weight = len(application.targets) if by_time else cap
            used += weight * float(np.sum(times[1::2] - times[0:-1:2]))
        supply = self.platform.targets if by_time else self.platform.bandwidth
        return used / (supply * self.window.length)

    def digest(self) -> str:
        """Return a SHA-256 of all that matters to a simulation."""
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
        return "there is one, 0; a platform may have more `targets`"
    return f"there are 0 to {count - 1}"


def _check_length(application: Application, cap: float) -> None:
    """Refuse an application that takes longer than any number says."""
    with np.errstate(over="ignore"):
        length = application.work.sum() + application.volume.sum() / cap
    if not np.isfinite(length):
        raise InputError(
            f"its phases take for ever at {cap:g} B/s",
            remedy="give smaller volumes or a higher bandwidth",
        )
