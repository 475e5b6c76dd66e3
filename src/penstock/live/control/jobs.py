# SPDX-License-Identifier: MIT
"""What is known of a job, and why it has what it has, in words.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from penstock.units import format_bandwidth, format_time, format_volume

__all__ = ["JobHistory", "JobState", "by_rate", "explain"]

#: Competitors that an explanation names.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class JobHistory:
    """What a job did before it was registered."""

    release: float
    """tau_i: instant from which its age counts (s)."""
    lost: float = 0.0
    """Time lost so far (s)."""
    iterations: int = 0
    iteration_time: float = 0.0
    """Sum over its iterations of work + volume / cap (s)."""


@dataclass(frozen=True, slots=True)
class JobState:
    """How a job stands now."""

    job: str
    user: str
    group: str
    nodes: int
    cap: float
    """b_i (bytes/s)."""
    limit: float
    """What the operator allows (bytes/s); inf: all."""
    active: bool
    """Whether it has an operation."""
    rate: float
    """What it holds (bytes/s)."""
    frugal: bool
    """Whether a part of its grant is lent."""
    waits: float
    """How long ago its operation was posted (s)."""
    volume: float
    """Of its operation, as far as is known (bytes)."""
    remaining: float
    """Of its operation (bytes)."""
    completion: float
    """When its operation is done if it keeps its rate (s)."""
    release: float
    """tau_i (s)."""
    age: float
    """Since its release (s)."""
    lost: float
    """Time lost by now (s)."""
    iterations: int
    iteration_time: float

    @property
    def past(self) -> JobHistory:
        """What the job has done by now."""
        return JobHistory(self.release, self.lost, self.iterations, self.iteration_time)

    @property
    def progress_yield(self) -> float:
        """y_i = 1 - lost / age, papers/1 eq. 6; 1 at the release."""
        return 1.0 - self.lost / self.age if self.age > 0.0 else 1.0


def by_rate(states: Iterable[JobState]) -> list[JobState]:
    """Return those that have an operation, the highest rate first."""
    return sorted((s for s in states if s.active), key=lambda s: -s.rate)


def explain(
    it: JobState,
    active: Sequence[JobState],
    policy: str,
    name: Callable[[str], str | None] = str,
) -> str:
    """Say in words why job `it` has the rate it has.

    Parameters
    ----------
    active
        All jobs that have an operation, as `by_rate` returns them.
    name
        What to call a job; None for one that the reader may not know.
    """
    lines = [f"{name(it.job)} {_situation(it, len(active), policy)}"]
    if it.active and it.rate < it.cap and not it.frugal:
        lines += _competitors(it, active, name)
    if isfinite(it.limit):
        lines.append(f"The operator limits it to {format_bandwidth(it.limit)}.")
    lines.append(
        f"Its yield is {it.progress_yield:.3f}: it has lost {format_time(it.lost)} "
        f"of the {format_time(it.age)} since its release."
    )
    return " ".join(lines)


def _situation(it: JobState, active: int, policy: str) -> str:
    cap = format_bandwidth(it.cap)
    if not it.active:
        return f"does no I/O now; its next operation begins at {cap}."
    rate = format_bandwidth(it.rate)
    left = f"{format_volume(it.remaining)} of about {format_volume(it.volume)} remain"
    since = f"posted {format_time(it.waits)} ago, {left}"
    if it.frugal:
        return (
            f"has {rate}: it drew less than it was granted, so the rest is lent until "
            f"it asks for more ({since})."
        )
    if it.rate >= it.cap:
        return f"has {rate}, all that it can use ({since})."
    if it.rate > 0.0:
        return (
            f"has {rate}, {it.rate / it.cap:.0%} of the {cap} that it can use: "
            f"{policy} shares among {active} operations ({since})."
        )
    return f"waits: {policy} serves others first ({since})."


def _competitors(
    it: JobState, active: Sequence[JobState], name: Callable[[str], str | None]
) -> list[str]:
    """Say who is served besides; of many jobs only the first few are looked at."""
    served = bisect_left(active, 0.0, key=lambda s: -s.rate)
    others = [o for o in active[: min(served, _NAMED + 1)] if o.job != it.job]
    named = []
    for other in others[:_NAMED]:
        known = name(other.job)
        facts = f" (yield {other.progress_yield:.3f})" if known else ""
        who = known or "another user's job"
        named.append(f"{who} {format_bandwidth(other.rate)}{facts}")
    besides = served - (it.rate > 0.0) - len(named)
    more = f" and {besides} more" if besides else ""
    return [f"Served besides: {', '.join(named)}{more}."] if named else []
