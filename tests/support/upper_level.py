# SPDX-License-Identifier: MIT
"""The upper level of the two-level scheduler alone, with its kernels interpreted."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.kernels import interpreted
from penstock.qos import Slo
from penstock.qos.parts import promises as kernels
from penstock.qos.state import (
    CAPACITY_OVER_PROMISES,
    HOLD_UNTIL_S,
    add_request,
    count_waiting,
)
from penstock.qos.two_level import TwoLevel

__all__ = ["UpperLevel"]


class UpperLevel:
    """Calls the kernels of `penstock.qos.parts.promises` with names of applications."""

    def __init__(self, slos: Mapping[str, Slo]) -> None:
        self.scheduler = TwoLevel(slos, 0.0, 0.5, 0.0)
        self.scheduler.run_interpreted()
        self.state = self.scheduler.columns
        self.index_of = self.scheduler.index_of

    def name_of(self, slot: int) -> str:
        """Return the application of a request."""
        return "ab"[self.state.application[slot]]

    def push(self, name: str, size: int, arrived_s: float, deadline_s: float) -> int:
        """Queue a request; return its slot."""
        i = self.index_of(name)
        slot: int = interpreted(add_request)(self.state, i, size)
        self.state.deadline_s[slot] = deadline_s
        interpreted(count_waiting)(self.state)
        interpreted(kernels.push_request)(self.state, i, slot, arrived_s)
        return slot

    def pop(self, now: float, *, has_room: bool) -> int:
        """Remove and return the next request; -1: none may go."""
        slot: int = interpreted(kernels.pop_request)(self.state, now, has_room)
        return slot

    def report(self, server: str, name: str, total: float, now: float) -> None:
        """Record a report of another server that an application has had a total."""
        self.scheduler.record_remote_service(server, {name: total}, now)

    def complete(self, name: str, now: float) -> None:
        """Record that the storage has completed a request."""
        interpreted(kernels.record_completion)(self.state, self.index_of(name), now)

    def has_rivals(self, now: float) -> bool:
        """Return True if an application wants more service on another node."""
        rivals: bool = interpreted(kernels.has_rivals)(self.state, now)
        return rivals

    def set_capacity(self, over_promises: float, now: float) -> None:
        """Set the measured capacity divided by the sum of the throughputs."""
        interpreted(kernels.set_capacity)(self.state, over_promises, now)

    @property
    def hold_until_s(self) -> float:
        """When held requests may go."""
        return self.state.value[HOLD_UNTIL_S]

    @property
    def capacity_over_promises(self) -> float:
        """The measured capacity divided by the sum of the throughputs."""
        return self.state.value[CAPACITY_OVER_PROMISES]

    @capacity_over_promises.setter
    def capacity_over_promises(self, value: float) -> None:
        self.state.value[CAPACITY_OVER_PROMISES] = value
