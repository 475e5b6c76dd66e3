# SPDX-License-Identifier: MIT
"""The result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.model import Column, Instance

__all__ = ["EventLog", "GrantLog", "Run"]


@dataclass(frozen=True, eq=False, slots=True)
class EventLog:
    """All events, in the order in which the engine handled them."""

    time: Column
    """Instant (s)."""
    kind: NDArray[np.int64]
    """`COMPLETION`, `POST` or `WAKE_UP` of `penstock.sim.state`."""
    application: NDArray[np.int64]
    """Index of the application; -1 for a wake-up."""


@dataclass(frozen=True, eq=False, slots=True)
class GrantLog:
    """Every change of the rate of an application on a target."""

    time: Column
    """Instant from which the rate holds (s)."""
    application: NDArray[np.int64]
    """Index of the application."""
    rate: Column
    """New rate (bytes/s)."""
    target: NDArray[np.int64]
    """Index of the storage target."""


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """Result of one policy on one instance; columns by application."""

    instance: Instance = field(repr=False)
    policy: str
    """Label of the policy: name and parameters."""
    lost: Column = field(repr=False)
    """Time lost since the release (s)."""
    ended: Column = field(repr=False)
    """When the application ended, at most the end of the window (s)."""
    work: Column = field(repr=False)
    """Work done inside the window (s)."""
    volume: Column = field(repr=False)
    """Volume transferred inside the window (bytes)."""
    operations: NDArray[np.int64] = field(repr=False)
    """Number of completed operations, including those before the window."""
    occupied: Column = field(repr=False)
    """By storage target: time with at least one flow to serve (s)."""
    events: int
    """Posts and completions before the end of the window."""
    decisions: int
    """Number of calls of the policy."""
    seconds: float
    """Run time of the engine (s)."""
    log: EventLog | None = field(default=None, repr=False)
    grants: GrantLog | None = field(default=None, repr=False)

    @property
    def present(self) -> Column:
        """How long every application was present inside the window (s)."""
        starts = np.array([a.start for a in self.instance.applications])
        present: Column = self.ended - np.maximum(starts, self.instance.window.begin)
        return present.clip(min=0.0)

    @property
    def yields(self) -> Column:
        """y_i(T_end) = 1 - lost / age (bandwidth sharing, equation 6).

        An application that ended inside the window keeps its last yield.
        """
        release = np.array([a.release for a in self.instance.applications])
        age = self.ended - release
        # An application that ended at its release had no phases: yield 1.
        yields: Column = 1.0 - self.lost / np.where(age > 0, age, 1.0)
        return yields
