# SPDX-License-Identifier: MIT
"""Statistics of client requests per window: counts, response times, overload.

A response time counts in the window in which the request was issued, because an SLO
promises a latency for what an application issues at a time. The requests of an overload
are answered later, also when it is over; they say nothing about the time after it.

Pure: computed from the issue and answer times (s) of the requests. So a run must last
until its requests are answered, or the last windows lack the slowest ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.qos import percentile

__all__ = [
    "AnsweredRequest",
    "ClientWindow",
    "GroupWindow",
    "answered_requests",
    "compliance",
    "windows",
]


class AnsweredRequest(NamedTuple):
    """Issue and answer time of a request (s)."""

    issued: float
    answered: float


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """Statistics of one group of clients in a window."""

    issued: int
    """Number of requests issued that were answered, in this window or later."""
    answered: int
    """Number of requests answered in this window, issued in it or before."""
    p95_s: float | None
    """95th percentile of the response times of the requests that were issued; None:
    none was issued and answered."""


@dataclass(frozen=True, slots=True)
class ClientWindow:
    """Statistics of all clients in a window."""

    begin: float
    """Start of the window (s)."""
    overloaded: bool
    """More requests were under way than the storage can serve in a window."""
    groups: Mapping[str, GroupWindow]


def windows(
    groups: Mapping[str, Sequence[AnsweredRequest]],
    length_s: float,
    count: int,
    most: float,
) -> list[ClientWindow]:
    """Return the first `count` windows of a run.

    Parameters
    ----------
    length_s
        Length of a window.
    most
        Number of requests that the storage can serve in a window.
    """
    all_answers = [answer for answers in groups.values() for answer in answers]
    return [
        ClientWindow(
            number * length_s,
            _under_way(all_answers, number * length_s, (number + 1) * length_s) > most,
            {
                name: _group_window(answers, number * length_s, (number + 1) * length_s)
                for name, answers in groups.items()
            },
        )
        for number in range(count)
    ]


def compliance(
    run: Sequence[ClientWindow], bounds: Mapping[str, float], *, overloaded: bool
) -> dict[str, tuple[int, int]]:
    """Return, by group, the windows within its bound (s) and all windows counted.

    Windows count if they are overloaded or not, as given, and have requests.
    """
    result = {}
    for name, bound in bounds.items():
        times = [w.groups[name].p95_s for w in run if w.overloaded == overloaded]
        measured = [time for time in times if time is not None]
        result[name] = sum(time <= bound for time in measured), len(measured)
    return result


def answered_requests(run: Sequence[ClientWindow]) -> int:
    """Return the number of requests answered in all windows."""
    return sum(group.answered for window in run for group in window.groups.values())


def _under_way(answers: Sequence[AnsweredRequest], begin: float, end: float) -> int:
    """Return the number of requests under way at some time in a window."""
    return sum(a.issued < end and a.answered > begin for a in answers)


def _group_window(
    answers: Sequence[AnsweredRequest], begin: float, end: float
) -> GroupWindow:
    times = [a.answered - a.issued for a in answers if begin <= a.issued < end]
    answered = sum(begin <= a.answered < end for a in answers)
    return GroupWindow(len(times), answered, percentile(times) if times else None)
