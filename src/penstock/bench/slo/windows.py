# SPDX-License-Identifier: MIT
"""What clients saw, window by window: rates, response times, and whether too much came.

Pure: from issue and answer times (s) to figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.qos.feedback import percentile

__all__ = [
    "AnsweredRequest",
    "ClientWindow",
    "Seen",
    "compliance",
    "moved",
    "windows",
]


class AnsweredRequest(NamedTuple):
    """A request."""

    issued: float
    """When it was issued (s),"""
    answered: float
    """and when it was answered."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a group of clients saw in a window."""

    issued: int
    """Requests that it issued,"""
    answered: int
    """and that were answered."""
    p95_s: float | None
    """95th percentile of the response times of these; None: there were none."""


@dataclass(frozen=True, slots=True)
class ClientWindow:
    """What all clients saw in a window."""

    begin: float
    """(s)."""
    overloaded: bool
    """Whether more was there, or came, than the storage can move meanwhile."""
    groups: Mapping[str, Seen]


def windows(
    groups: Mapping[str, Sequence[AnsweredRequest]],
    length: float,
    count: int,
    most: float,
) -> list[ClientWindow]:
    """Return the first windows of a run.

    Parameters
    ----------
    length
        Of a window (s).
    most
        Requests that the storage can serve in a window.
    """
    everybody = [answer for answers in groups.values() for answer in answers]
    return [
        ClientWindow(
            number * length,
            _present(everybody, number * length, (number + 1) * length) > most,
            {
                name: _seen(answers, number * length, (number + 1) * length)
                for name, answers in groups.items()
            },
        )
        for number in range(count)
    ]


def compliance(
    found: Sequence[ClientWindow], bounds: Mapping[str, float], *, overloaded: bool
) -> dict[str, tuple[int, int]]:
    """Return in how many windows each group kept its bound (s), and of how many.

    Only windows count that are, or are not, overloaded, and in which it had answers.
    """
    result = {}
    for name, bound in bounds.items():
        times = [w.groups[name].p95_s for w in found if w.overloaded == overloaded]
        seen = [time for time in times if time is not None]
        result[name] = sum(time <= bound for time in seen), len(seen)
    return result


def moved(found: Sequence[ClientWindow]) -> int:
    """Return how many requests were answered in all windows."""
    return sum(seen.answered for window in found for seen in window.groups.values())


def _present(answers: Sequence[AnsweredRequest], begin: float, end: float) -> int:
    """Return how many were under way at some time in a window."""
    return sum(a.issued < end and a.answered > begin for a in answers)


def _seen(answers: Sequence[AnsweredRequest], begin: float, end: float) -> Seen:
    times = [a.answered - a.issued for a in answers if begin <= a.answered < end]
    issued = sum(begin <= a.issued < end for a in answers)
    return Seen(issued, len(times), percentile(times) if times else None)
