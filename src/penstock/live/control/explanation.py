# SPDX-License-Identifier: MIT
"""Explanations of ``penstock ctl explain``: why a job has the grant that it has."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from penstock.live.control.rates.jobs import ControlledJob
from penstock.units import format_bandwidth, format_time, format_volume

__all__ = ["Circumstances", "explain"]

#: How many other jobs an explanation names.
_NAMED: Final = 3
#: A smaller difference of two lost times is not named, as a part of the age.
_NOTABLE_LOSS: Final = 0.01
#: A smaller part of a grant is not named as lent.
_LEAST_LOAN: Final = 0.01


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of a job beside the controller."""

    like: float | None = None
    """The shared bandwidth (bytes/s): all amounts are in its units, decimal or binary.
    None: the cap of the job."""
    free_because: str = ""
    """Why the job is not held to a share; "": it is."""
    is_announced: bool = False
    """True if the volume of its operation was announced."""
    has_history: bool = False
    """True if its age and its lost time include earlier runs."""
    lost_of: Callable[[str], float] | None = None
    """Returns the time that a job has lost, as users see it. None: by its grants."""

    def lost_s(self, job: ControlledJob, now: float) -> float:
        """Return the time that a job has lost, as users see it."""
        return self.lost_of(job.key) if self.lost_of else job.lost_s(now)


def explain(
    job: ControlledJob,
    active: Sequence[ControlledJob],
    policy: str,
    now: float,
    name_of: Callable[[str], str | None] = str,
    circumstances: Circumstances | None = None,
) -> str:
    """Return why a job has the grant that it has, in sentences for its user.

    Parameters
    ----------
    active
        All jobs that have an operation, as `by_rate` returns them.
    name_of
        Returns the name to show for a job key; None hides the job's name and yield.
    """
    name = name_of(job.key)
    circumstances = circumstances or Circumstances()
    like = _units_of(job, circumstances)
    free = circumstances.free_because
    if free:
        state = "is not held up" if job.is_active else "does no I/O now"
        sentences = [f"{name} {state}: {free}."]
    else:
        sentences = [f"{name} {_grant_reason(job, len(active), policy, like)}"]
    if job.is_active:
        sentences.append(_progress(job, now, like, circumstances))
        if job.rate < job.cap and not job.is_frugal and not free:
            sentences += _competitors(job, active, now, name_of, circumstances)
    if isfinite(job.limit):
        sentences.append(
            f"An operator has limited it to {format_bandwidth(job.limit, like)} "
            f"(remove the limit with: penstock ctl limit {name} none). What the "
            "limit takes does not count as lost time."
        )
    sentences.append(_loss(job, now, circumstances))
    return " ".join(sentences)


def _units_of(job: ControlledJob, circumstances: Circumstances) -> float:
    """Return the amount whose units, decimal or binary, all amounts get."""
    return job.cap if circumstances.like is None else circumstances.like


def _loss(job: ControlledJob, now: float, circumstances: Circumstances) -> str:
    """Return the sentences on the time that it has lost."""
    begin = "its first run on record" if circumstances.has_history else "it started"
    lost_s, age_s, by_grants_s = (
        circumstances.lost_s(job, now),
        job.age_s(now),
        job.lost_s(now),
    )
    text = (
        f"It has lost {format_time(lost_s)} of the {format_time(age_s)} since {begin} "
        f"(yield {_yield(lost_s, age_s):.3f})."
    )
    if by_grants_s - lost_s > _NOTABLE_LOSS * age_s:
        text += (
            f" For the policy it counts as {format_time(by_grants_s)}: what its grants "
            "cost, whether they held up its calls or not."
        )
    return text


def _yield(lost_s: float, age_s: float) -> float:
    return 1.0 - lost_s / age_s if age_s > 0.0 else 1.0


def _progress(
    job: ControlledJob, now: float, like: float, circumstances: Circumstances
) -> str:
    """Return the sentence on the volume of the operation."""
    remaining = format_volume(job.remaining_bytes(now), like)
    volume = format_volume(job.volume_bytes, like)
    of_all = (
        f"the announced {volume} remain"
        if circumstances.is_announced
        else f"about {volume} remain (nobody has announced the volume: penstock "
        "guesses it)"
    )
    begun = format_time(job.since_post_s(now))
    return f"Its operation began {begun} ago; {remaining} of {of_all}."


def _grant_reason(job: ControlledJob, active: int, policy: str, like: float) -> str:
    """Return the predicate of the sentence that names the grant and its reason."""
    cap, rate = format_bandwidth(job.cap, like), format_bandwidth(job.rate, like)
    if not job.is_active:
        return f"does no I/O now. Its next operation may begin at {cap}."
    if job.is_frugal:
        return (
            f"may draw {rate}: it drew less than its grant, so the rest is lent to "
            "other jobs until it draws nearly all of that, or a call is held up."
        )
    if job.rate >= job.cap:
        return f"may draw {rate}, all that it can use{_loan(job, like)}."
    if job.rate > 0.0:
        return (
            f"may draw {rate}, {job.rate / job.cap:.0%} of the {cap} that it can use"
            f"{_loan(job, like)}: policy {policy} divides the bandwidth among {active} "
            "active jobs."
        )
    return f"waits: policy {policy} serves other jobs first."


def _loan(job: ControlledJob, like: float) -> str:
    """Return which part of the grant other jobs lend; "" if they lend nothing."""
    if job.borrowed < _LEAST_LOAN * job.rate or job.rate == 0.0:
        return ""
    return f", of which {format_bandwidth(job.borrowed, like)} is lent by other jobs"


def _competitors(
    job: ControlledJob,
    active: Sequence[ControlledJob],
    now: float,
    name_of: Callable[[str], str | None],
    circumstances: Circumstances,
) -> list[str]:
    """Return a sentence that names the other jobs with the highest rates."""
    like = _units_of(job, circumstances)
    served = bisect_left(active, 0.0, key=lambda other: -other.rate)
    # With thousands of jobs, only the few that are named are looked at.
    others = [other for other in active[: min(served, _NAMED + 1)] if other is not job]
    named = []
    for other in others[:_NAMED]:
        name = name_of(other.key)
        shown = _yield(circumstances.lost_s(other, now), other.age_s(now))
        facts = f" (yield {shown:.3f})" if name else ""
        label = name or "another user's job"
        named.append(f"{label} with {format_bandwidth(other.rate, like)}{facts}")
    unnamed = served - (job.rate > 0.0) - len(named)
    more = f" and {unnamed} more" if unnamed else ""
    return [f"Also served: {', '.join(named)}{more}."] if named else []
