# SPDX-License-Identifier: MIT
"""I/O phases of a job, detected in its counters: the operations of the model, live.

Rule
    An operation begins with the first controlled call after a gap. It ends with the
    last call before a gap of at least `gap_s` on all nodes of the job. The end is
    known only after the gap, so it lies in the past. An operation whose volume is
    certain ends as soon as this volume is moved and no call is in flight (`volumes`).

Nothing here reads a clock. Times are in seconds, volumes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.live.control.activity.volumes import SAME
from penstock.live.wire.messages import JobCounters

__all__ = [
    "PastOperation",
    "PhaseDetector",
]


class PastOperation(NamedTuple):
    """An operation that is complete."""

    begin_s: float
    """When it was posted."""
    end_s: float
    """When its last call ended."""
    moved_bytes: float


@dataclass(slots=True)
class _NodeCounters:
    """Counters of one node: the latest, and those when the last operation ended."""

    latest: JobCounters
    read_at_s: float
    """When the latest counters were read."""
    base_operations_begun: int
    base_moved_bytes: float
    base_announced_bytes: float

    @property
    def last_call_s(self) -> float:
        return self.read_at_s - self.latest.idle_s

    @property
    def moved_bytes(self) -> float:
        return self.latest.moved_bytes - self.base_moved_bytes

    @property
    def announced_bytes(self) -> float:
        return self.latest.announced_bytes - self.base_announced_bytes

    @property
    def in_call(self) -> bool:
        """True if a call is held up or in flight."""
        return self.latest.waiting or self.latest.idle_s == 0.0

    def is_busy(self, gap_s: float) -> bool:
        """Return True if the operation goes on here.

        The phases that a program announces take precedence over the gap.
        """
        if self.in_call:
            return True
        if self.announced_bytes:
            return self.latest.phases > 0
        return self.latest.idle_s < gap_s

    @property
    def has_news(self) -> bool:
        """True if anything has happened since the last operation ended."""
        return (
            self.latest.operations_begun != self.base_operations_begun
            or self.moved_bytes > 0.0
        )


class PhaseDetector:
    """Detects the begin and end of a job's operations in the counters of its nodes."""

    def __init__(self, gap_s: float) -> None:
        self.gap_s = gap_s
        self.is_active = False
        """True if the job has an operation."""
        self.began_s = 0.0
        """When the latest operation began."""
        self._nodes: dict[str, _NodeCounters] = {}
        self._moved_elsewhere_bytes = 0.0
        self._held_up = False

    def read(self, node: str, now: float, counters: JobCounters) -> None:
        """Take the counters of one node."""
        known = self._nodes.get(node)
        if known is not None and counters.moved_bytes < known.latest.moved_bytes:
            # A new page: the job has left the node and come back.
            self.drop_node(node)
            known = None
        if known is None:
            self._nodes[node] = self._first_counters(now, counters)
            return
        if counters.waiting or _delay_s(counters) > _delay_s(known.latest):
            self._held_up = True
        known.latest, known.read_at_s = counters, now

    def _first_counters(self, now: float, counters: JobCounters) -> _NodeCounters:
        """Return the record of a node that is new.

        After a restart of its agent, a node joins with counters of the past.
        """
        recent = counters.waiting or counters.idle_s < self.gap_s
        begun = (
            counters.operations_begun - 1
            if recent and counters.operations_begun
            else counters.operations_begun
        )
        announced_bytes = (
            counters.announced_bytes if counters.operations_begun > 1 else 0.0
        )
        return _NodeCounters(
            counters, now, begun, counters.moved_bytes, announced_bytes
        )

    def drop_node(self, node: str) -> None:
        """Forget a node that the job has left; the volume moved there still counts."""
        known = self._nodes.pop(node, None)
        if known and self.is_active:
            self._moved_elsewhere_bytes += known.moved_bytes

    def detect_begin(self, now: float) -> bool:
        """Return True once when an operation has begun."""
        if self.is_active or not any(node.has_news for node in self._nodes.values()):
            return False
        self.is_active, self.began_s = True, now
        return True

    def detect_end(self, now: float) -> PastOperation | None:
        """End and return the operation if there was a gap on all nodes."""
        # Only counters that were read count: a node may have been busy since then.
        if not self.is_active or any(
            node.is_busy(self.gap_s) for node in self._nodes.values()
        ):
            return None
        return self.end(self._last_call_s(now))

    def detect_completion(
        self, volume_bytes: float, now: float
    ) -> PastOperation | None:
        """End and return the operation if it has moved all of a certain volume."""
        if self.moved_bytes < volume_bytes * (1.0 - SAME) or any(
            node.in_call for node in self._nodes.values()
        ):
            return None
        return self.end(self._last_call_s(now))

    def end(self, end_s: float) -> PastOperation:
        """End and return the operation."""
        ended = PastOperation(self.began_s, max(end_s, self.began_s), self.moved_bytes)
        for node in self._nodes.values():
            node.base_operations_begun = node.latest.operations_begun
            node.base_moved_bytes = node.latest.moved_bytes
            node.base_announced_bytes = node.latest.announced_bytes
        self.is_active, self._held_up, self._moved_elsewhere_bytes = False, False, 0.0
        return ended

    def _last_call_s(self, now: float) -> float:
        return max((node.last_call_s for node in self._nodes.values()), default=now)

    @property
    def moved_bytes(self) -> float:
        """Volume that the present operation has moved."""
        here = sum(node.moved_bytes for node in self._nodes.values())
        return self._moved_elsewhere_bytes + here

    @property
    def announced_bytes(self) -> float:
        """Volume that the program has announced for the operation; 0: none."""
        return sum(node.announced_bytes for node in self._nodes.values())

    def was_held_up(self) -> bool:
        """Return True if a call was held up since this was last asked."""
        held_up, self._held_up = self._held_up, False
        return held_up

    def busy_nodes(self) -> list[str]:
        """Return the nodes on which the present operation goes on.

        If it pauses on all nodes: those that have taken part in it.
        """
        news = {
            name: node.latest for name, node in self._nodes.items() if node.has_news
        }
        busy = [
            name
            for name, counters in news.items()
            if counters.waiting or counters.idle_s < self.gap_s
        ]
        return busy or list(news)


def _delay_s(counters: JobCounters) -> float:
    """Return how long calls were held up, or would have been in a dry run."""
    return counters.held_up_s + counters.would_hold_up_s
