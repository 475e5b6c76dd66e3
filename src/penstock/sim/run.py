# SPDX-License-Identifier: MIT
"""What a simulation leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.model import Column, Instance

__all__ = ["EventLog", "GrantLog", "Run"]


@dataclass(frozen=True, eq=False, slots=True)
class EventLog:
    """Every event, in the order in which it was applied."""

    time: Column
    """When (s)."""
    kind: NDArray[np.int64]
    """`COMPLETION`, `POST` or `WAKE_UP` of `penstock.sim.state`."""
    application: NDArray[np.int64]
    """Whose; -1 for a wake-up."""


@dataclass(frozen=True, eq=False, slots=True)
class GrantLog:
    """Every change of the bandwidth that an application holds."""

    time: Column
    """From when on (s)."""
    application: NDArray[np.int64]
    """Whose."""
    rate: Column
    """How much (bytes/s)."""
    target: NDArray[np.int64]
    """From which storage target."""


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """Outcome of one policy on one instance; columns by application."""

    instance: Instance = field(repr=False)
    policy: str
    """Name of the policy, with its parameters."""
    lost: Column = field(repr=False)
    """Time lost since the release (s)."""
    ended: Column = field(repr=False)
    """When the application ended (s); the end of the window if it did not."""
    work: Column = field(repr=False)
    """Work done inside the window (s)."""
    volume: Column = field(repr=False)
    """Volume transferred inside the window (bytes)."""
    operations: NDArray[np.int64] = field(repr=False)
    """Completed operations, those before the window included."""
    occupied: Column = field(repr=False)
    """By storage target: how long it had something to transfer (s)."""
    events: int
    """Posts and completions before the end of the window."""
    decisions: int
    """How often the policy was asked."""
    seconds: float
    """Time the engine took (s)."""
    log: EventLog | None = field(default=None, repr=False)
    grants: GrantLog | None = field(default=None, repr=False)

    @property
    def yields(self) -> Column:
        """y_i(T_end), papers/1 eq. 6, as 1 - lost / age.

        An application that ended (only in an open run) keeps its last yield.
        """
        release = np.array([a.release for a in self.instance.applications])
        age = self.ended - release
        # Who ended at its release had nothing to do, and was never delayed.
        yields: Column = 1.0 - self.lost / np.where(age > 0, age, 1.0)
        return yields
