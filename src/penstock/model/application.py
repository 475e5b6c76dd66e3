# SPDX-License-Identifier: MIT
"""An application: alternating work phases and I/O operations, and its past."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError

__all__ = ["MOST_NODES", "TIME_GRAIN", "Application", "Column", "shortened"]

#: A read-only column of doubles.
Column: TypeAlias = NDArray[np.float64]

#: Relative rounding error that is accepted in a history without lost time.
_HISTORY_TOLERANCE = 1e-9
#: Times that differ by less than this part are equal, up to rounding. It is the
#: constant GRAIN of `penstock.policies.rounding`.
TIME_GRAIN = 2.0**-40
#: Upper limit on the nodes of an application, and of a machine.
MOST_NODES = 1_000_000_000
_UNKNOWN = np.empty(0)
#: Longest name that tables and legends show in full (characters).
_LONGEST_NAME = 40


@dataclass(frozen=True, eq=False, slots=True)
class Application:
    """One application: phases w0, v0, w1, v1, ... v(n-1), wn.

    Bandwidth sharing, section 3.1. Consecutive work phases are merged. Consecutive
    operations are separated by a work phase of length 0, which takes no time.
    """

    name: str
    nodes: int
    """p_i: number of compute nodes, which no other application uses."""
    work: Column
    """n + 1 work phases (s); the last one follows the last operation."""
    volume: Column
    """n I/O operations (bytes)."""
    release: float = 0.0
    """tau_i: the age of the application is counted from this instant (s)."""
    start: float = math.nan
    """Instant at which the first phase begins (s); default: the release."""
    done_work: float = 0.0
    """Work done before `start` (s)."""
    done_volume: float = 0.0
    """Volume transferred before `start` (bytes)."""
    user: str = ""
    group: str = ""
    period: float = 0.0
    """Mean length of an iteration (s), if it is known beforehand; 0 if not."""
    profile: Column = field(default_factory=lambda: _UNKNOWN)
    """b_i(n): bandwidth of the application alone on n = 1, 2, ... storage targets
    (bytes/s); empty if it is not known."""
    targets: tuple[int, ...] = (0,)
    """Storage targets over which every operation is striped, in equal parts."""

    def __post_init__(self) -> None:
        for name in ("work", "volume"):
            object.__setattr__(self, name, _checked_column(getattr(self, name), name))
        # Errors name the key of the file: "bandwidth".
        object.__setattr__(self, "profile", _checked_column(self.profile, "bandwidth"))
        if len(self.work) != len(self.volume) + 1:
            raise InputError(
                f"{len(self.work)} work phases around {len(self.volume)} operations",
                remedy="give one more work phase than operations (it may be 0)",
            )
        if math.isnan(self.start):
            object.__setattr__(self, "start", self.release)
        for name in ("release", "start", "done_work", "done_volume", "period"):
            object.__setattr__(self, name, float(getattr(self, name)))
        self._check_scalars()
        self._check_targets()

    def _check_scalars(self) -> None:
        whole = isinstance(self.nodes, int) and not isinstance(self.nodes, bool)
        if not whole or not 1 <= self.nodes <= MOST_NODES:
            raise InputError(
                f"{self.nodes!r} is not a number of nodes",
                where="nodes",
                remedy=f"give a whole number, 1 to {MOST_NODES}",
            )
        for name in ("release", "start"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(
                    f"{getattr(self, name)!r} is not a time",
                    where=name,
                    remedy="give a finite number of seconds",
                )
        for name in ("done_work", "done_volume", "period"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(
                    f"{value!r} is negative or not finite",
                    where=name,
                    remedy="give 0 or more",
                )
        if self.start < self.release:
            raise InputError(
                f"start {self.start} is earlier than release {self.release}",
                where="start",
                remedy="set it to the release or later",
            )

    def _check_targets(self) -> None:
        if not self.targets or len(set(self.targets)) < len(self.targets):
            raise InputError(
                f"{list(self.targets)} are not different storage targets",
                where="targets",
                remedy="list each target once, at least one",
            )
        if self.profile.size and not self.profile.min() > 0:
            place = int(np.argmin(self.profile))
            raise InputError(
                f"the bandwidth on {place + 1} targets is not positive",
                where=f"bandwidth[{place}]",
                remedy="every entry must be positive; leave out unknown entries",
            )
        if 0 < self.profile.size < len(self.targets):
            raise InputError(
                f"{len(self.targets)} targets, but the bandwidth is known for "
                f"1 to {self.profile.size}",
                where="targets",
                remedy="use fewer targets or measure on more",
            )

    @classmethod
    def from_phases(
        cls, name: str, nodes: int, phases: Iterable[Sequence[Any]], **rest: Any
    ) -> Self:
        """Return an application with phases ``[("work", s), ("io", bytes), ...]``."""
        work, volume = [0.0], []
        for number, (kind, amount) in enumerate(phases):
            if not (math.isfinite(amount) and amount >= 0):
                raise InputError(
                    f"{amount!r} is negative or not finite",
                    where=f"phases[{number}]",
                    remedy="give 0 or more",
                )
            if kind == "work":
                work[-1] += amount
            elif kind == "io":
                volume.append(amount)
                work.append(0.0)
            else:
                raise InputError(
                    f"unknown kind of phase {kind!r}",
                    where=f"phases[{number}]",
                    remedy='known: "work" (seconds), "io" (bytes)',
                )
        return cls(name, nodes, np.array(work), np.array(volume), **rest)

    def phases(self) -> list[tuple[str, float]]:
        """Return the phases as ``[("work", s), ("io", bytes), ...]``.

        Work phases of length 0 are left out.
        """
        listed: list[tuple[str, float]] = []
        for number, work in enumerate(self.work.tolist()):
            if work > 0:
                listed.append(("work", work))
            if number < len(self.volume):
                listed.append(("io", float(self.volume[number])))
        return listed

    def lost_at_start(self, cap: float) -> float:
        """Return the time lost before `start` (s): age minus progress.

        It is exactly 0 if it is 0 up to rounding. Raises `InputError` if the progress
        is larger than the age.
        """
        if self.start == self.release and self.done_work == self.done_volume == 0:
            return 0.0
        age = self.start - self.release
        lost = age - (self.done_work + self.done_volume / cap)
        # Times far from 0 (seconds since an epoch) have a rounding error of their own.
        rounding = 4 * math.ulp(max(abs(self.start), abs(self.release)))
        if lost < -(_HISTORY_TOLERANCE * max(age, 1.0) + rounding):
            raise InputError(
                f"done_work and done_volume make {age - lost:g} s of progress in "
                f"the {age:g} s between release and start",
                remedy="set release earlier or start later",
            )
        return lost if lost > max(TIME_GRAIN * age, rounding) else 0.0

    def dedicated_times(self, cap: float) -> Column:
        """Return the end of each phase w0, v0, w1, ... wn in dedicated mode (s).

        NOTE: the phases are added one after the other, as the engine does. The times
        of an application that is never delayed are therefore equal to the last bit.
        """
        times = np.empty(2 * len(self.volume) + 2)
        times[0] = self.start
        times[1::2] = self.work
        times[2::2] = self.volume / cap
        return np.cumsum(times)[1:]


def shortened(name: str) -> str:
    """Return the name, cut to the length that fits a table or a legend."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _checked_column(values: object, name: str) -> Column:
    column = np.array(values, dtype=np.float64)
    column.setflags(write=False)
    # The common case first; a minimum or maximum that is not a number fails the test.
    if not column.size or (column.min() >= 0 and column.max() < math.inf):
        return column
    bad = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
    if bad.size:
        raise InputError(
            f"{float(column[bad[0]])!r} is negative or not finite",
            where=f"{name}[{bad[0]}]",
            remedy="give 0 or more",
        )
    return column
