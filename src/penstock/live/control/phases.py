# SPDX-License-Identifier: MIT
"""I/O phases of a job, found in its counters: an operation of papers/1, live.

Rule
    An operation begins with the first controlled call after a gap and ends with the
    last one before a gap of at least `gap` seconds on all nodes of the job. That it
    has ended is known only after the gap: the end lies in the past. If its volume is
    sure it ends as soon as that is moved and no call is in flight.

Volume
    Sure if the program gives a hint, or if the last two operations had the same
    volume. Else predicted: what a predictor expects, if there is one, else the median
    of the volumes of the last `REMEMBERED` operations; before the first one, what the
    job can move in `FIRST_S` seconds. A prediction that proves too small is doubled by
    the controller.

Nothing here reads a clock. Times are in seconds, volumes in bytes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Final, NamedTuple

__all__ = [
    "FIRST_S",
    "REMEMBERED",
    "Ended",
    "PastOperation",
    "PhaseWatch",
    "Sample",
    "VolumeGuess",
]

#: How many operations a prediction looks back on.
REMEMBERED: Final = 5
#: Volumes that differ by no more than this part are the same.
_SAME: Final = 1e-3
#: The first operation of a job is taken to last this long at full speed (s).
FIRST_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of a job on one node, at one instant."""

    posts: int
    """Phases begun there, as the preload library saw them."""
    volume: float
    """Moved so far (bytes)."""
    held_up: float
    """Time that calls were held up, added over callers (s)."""
    waiting: bool
    """Whether a call is held up now."""
    idle: float
    """Time since the latest call (s); 0 while one is in flight."""
    announced: float = 0.0
    """What the program has said that it will move, so far (bytes)."""
    phases: int = 0
    """Phases that it has announced and not ended."""


class PastOperation(NamedTuple):
    """An operation of the past."""

    begin: float
    end: float
    """Its first and last call (s)."""
    volume: float
    """What it moved (bytes)."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An operation that is over."""

    at: float
    """When it ended (s)."""
    volume: float
    """What it moved (bytes)."""


@dataclass(slots=True)
class _NodeCounters:
    """One node of a job: its latest counters, and those at the last end."""

    latest: Sample
    seen_at: float
    posts_then: int
    volume_then: float
    announced_then: float

    @property
    def active_at(self) -> float:
        return self.seen_at - self.latest.idle

    @property
    def moved(self) -> float:
        return self.latest.volume - self.volume_then

    @property
    def announced(self) -> float:
        return self.latest.announced - self.announced_then

    def is_busy(self, gap: float) -> bool:
        """Whether the operation goes on here; what the program says beats the gap."""
        last = self.latest
        if last.waiting or last.idle == 0.0:
            return True
        return last.phases > 0 if self.announced else last.idle < gap

    @property
    def is_new(self) -> bool:
        """Whether anything has happened since the last operation ended."""
        return self.latest.posts != self.posts_then or self.moved > 0.0


class PhaseWatch:
    """Finds begin and end of the operations of one job in the samples of its nodes."""

    def __init__(self, gap: float) -> None:
        self.gap = gap
        self.operates = False
        self._nodes: dict[str, _NodeCounters] = {}
        self._gone = 0.0
        self._held_up = False

    def see(self, node: str, now: float, sample: Sample) -> None:
        """Take a sample of one node."""
        known = self._nodes.get(node)
        if known is not None and sample.volume < known.latest.volume:
            # Another page: the job has left the node and come back.
            self.drop(node)
            known = None
        if known is None:
            # A node may join with counters of the past, after a restart of its agent.
            fresh = sample.waiting or sample.idle < self.gap
            posts = sample.posts - 1 if fresh and sample.posts else sample.posts
            announced = sample.announced if sample.posts > 1 else 0.0
            known = _NodeCounters(sample, now, posts, sample.volume, announced)
            self._nodes[node] = known
        elif sample.waiting or sample.held_up > known.latest.held_up:
            self._held_up = True
        known.latest, known.seen_at = sample, now

    def drop(self, node: str) -> None:
        """Forget a node that the job has left; what it moved counts."""
        known = self._nodes.pop(node, None)
        if known and self.operates:
            self._gone += known.moved

    def begins(self) -> bool:
        """Tell whether an operation has begun that was not there before."""
        if self.operates or not any(node.is_new for node in self._nodes.values()):
            return False
        self.operates = True
        return True

    def ends(self, now: float) -> Ended | None:
        """Return the operation that is over, if one is."""
        # Only what was seen counts: since its last sample a node may have been busy.
        if not self.operates or any(
            node.is_busy(self.gap) for node in self._nodes.values()
        ):
            return None
        return self._end(now)

    def ends_with(self, volume: float, now: float) -> Ended | None:
        """Return the operation if it has moved all of `volume`, and nothing goes on."""
        if self.moved < volume * (1.0 - _SAME) or any(
            node.latest.waiting or node.latest.idle == 0.0
            for node in self._nodes.values()
        ):
            return None
        return self._end(now)

    def _end(self, now: float) -> Ended:
        at = max((node.active_at for node in self._nodes.values()), default=now)
        ended = Ended(at, self.moved)
        self.reset()
        return ended

    def reset(self) -> None:
        """Take what was seen so far for the past."""
        for node in self._nodes.values():
            node.posts_then, node.volume_then = node.latest.posts, node.latest.volume
            node.announced_then = node.latest.announced
        self.operates, self._held_up, self._gone = False, False, 0.0

    @property
    def moved(self) -> float:
        """What the present operation has moved (bytes)."""
        return self._gone + sum(node.moved for node in self._nodes.values())

    @property
    def announced(self) -> float:
        """What the program says that the operation moves (bytes); 0: it does not."""
        return sum(node.announced for node in self._nodes.values())

    def was_held_up(self) -> bool:
        """Tell whether any call was held up since the last time this was asked."""
        held_up, self._held_up = self._held_up, False
        return held_up

    def operating_nodes(self) -> list[str]:
        """Return the nodes on which the present operation goes on.

        If it pauses on all of them: those that have taken part in it.
        """
        new = {name: node.latest for name, node in self._nodes.items() if node.is_new}
        busy = [n for n, last in new.items() if last.waiting or last.idle < self.gap]
        return busy or list(new)


@dataclass(slots=True)
class VolumeGuess:
    """Predicts the volume of the next operation of a job."""

    hint: float = 0.0
    """Volume of every operation as the program says (bytes); 0: it does not."""
    next_hint: float = 0.0
    """Volume of the next operation only (bytes); 0: not given."""
    expected: float = 0.0
    """What a predictor expects of the next ones (bytes); 0: nothing."""
    volumes: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def predict(self, cap: float) -> tuple[float, bool]:
        """Return the volume of an operation that begins (bytes), and if that is sure.

        `cap` is what the job can draw (bytes/s).
        """
        known = self.next_hint or self.hint
        self.next_hint = 0.0
        if known:
            return max(known, 1.0), True
        if not self.volumes:
            return max(FIRST_S * cap, 1.0), False
        likely = max(median(self.volumes), 1.0)
        latest = list(self.volumes)[-2:]
        same = all(abs(volume - likely) <= _SAME * likely for volume in latest)
        if same and len(latest) == 2:
            return likely, True
        return self.expected or likely, False

    def learn(self, volume: float) -> None:
        """Remember the volume of an operation that is over (bytes)."""
        self.volumes.append(volume)
