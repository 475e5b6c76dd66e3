# SPDX-License-Identifier: MIT
"""The controller: what happens to jobs goes in, the rates of jobs come out.

It has no clock, no I/O and no randomness: whoever drives it says what time it is.
The same policies as in the simulator decide, on books that the simulator's own
kernels keep (`job_columns`): fed with the events of a simulation it grants
what the simulator granted, bit by bit.

All that happens at one instant is told first, then ONE decision is taken with
`Controller.decide`. A decision holds until the next one.

What differs from a simulation:

- The volume of an operation is a guess. When it proves too small, by the progress
  reported or because the operation should be complete, it is doubled.
- What a job does not use of its grant is lent to others (see `lending`).
- The window has no end; policies that ask for one are shown `horizon` seconds.
- A policy that fails is replaced by `fair-share`, and the decision says so.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import Any, Final

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.live.control.job_columns import JobColumns
from penstock.live.control.jobs import JobHistory, JobState
from penstock.live.control.lending import Lender, Usage
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.sim.state import DECISIONS

__all__ = ["Controller", "Decision", "Rates"]

_FALLBACK: Final = "fair-share"


class Rates(Mapping[str, float]):
    """Rates of jobs (bytes/s), by name.

    Where all jobs share, all rates change with every event. Their names are looked up
    when they are asked for: who waits for the next event does not pay for it.
    """

    def __init__(self, names: Sequence[str], numbers: Any, rates: Any) -> None:
        self._names, self._numbers, self._rates = names, numbers, rates

    @cached_property
    def _by_name(self) -> dict[str, float]:
        names = map(self._names.__getitem__, self._numbers.tolist())
        return dict(zip(names, self._rates.tolist(), strict=True))

    def __getitem__(self, job: str) -> float:
        return self._by_name[job]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return repr(self._by_name)


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from a decision."""

    rates: Mapping[str, float]
    """Rate of every job for which it has changed (bytes/s)."""
    wake: float
    """When to call `Controller.decide` again if nothing happens (s)."""
    fault: str = ""
    """What the policy did wrong, if it had to be replaced."""


@dataclass(slots=True)
class _Job:
    """What the books do not hold of a job."""

    name: str
    number: int
    user: str
    group: str
    nodes: int
    cap: float
    """Most that it can draw, whatever its nodes (bytes/s)."""
    bandwidth: float
    """Most that it can draw by itself (bytes/s)."""
    ended: float
    """When its last operation ended and work began (s)."""
    limit: float = inf
    allowance: float = inf
    """What it may draw for now (bytes/s): see `allow`."""
    operates: bool = False
    volume: float = 0.0
    """Of the operation, as posted (bytes)."""
    lost_before: float = 0.0
    """Time lost when the operation was posted (s)."""
    reported: float = 0.0
    """What it had moved by the last report (bytes)."""
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class _Numbers:
    """Numbers for names, in the order in which they first appear."""

    known: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known))


class Controller:
    """Shares the bandwidth of one file system among jobs.

    Parameters
    ----------
    policy
        A policy, or its name with parameters as on the command line.
    capacity
        B: what all jobs together may draw (bytes/s).
    node_bandwidth
        b: what one node can draw (bytes/s).
    window
        Begin and end of the window that policies are shown (s). By default it
        begins at 0 and ends `horizon` after now.
    horizon
        How far policies may look ahead (s).
    dedicated_events
        E of papers/1 eq. 5, if it is known.
    lend
        False to leave unused what a job does not use of its grant.
    compiled
        False to interpret policy and bookkeeping: same decisions, no compilation.
    """

    def __init__(
        self,
        policy: Policy | str,
        capacity: float,
        node_bandwidth: float = inf,
        *,
        window: tuple[float, float] | None = None,
        horizon: float = 3600.0,
        dedicated_events: float = 0.0,
        lend: bool = True,
        compiled: bool = True,
    ) -> None:
        self._capacity = _bandwidth(capacity)
        self.node_bandwidth = node_bandwidth
        """b (bytes/s); see `set_nodes`."""
        self._horizon = None if window else horizon
        self._books = JobColumns(_policy(policy), self._capacity, compiled=compiled)
        self._lender = Lender(self._books, lends=lend)
        if window:
            self._books.set_scalar("window_begin", window[0])
            self._books.set_scalar("window_end", window[1])
        self._books.set_scalar("dedicated_events", dedicated_events)
        self._jobs: dict[str, _Job] = {}
        # By number. Replaced, never changed: decisions of the past refer to it.
        self._names: tuple[str, ...] = ()
        self._users, self._groups = _Numbers(), _Numbers()
        self._now = -inf

    # --- What happens -----------------------------------------------------------------

    def register(
        self,
        job: str,
        now: float,
        *,
        user: str = "",
        group: str = "",
        nodes: int = 1,
        cap: float = inf,
        period: float = 0.0,
        past: JobHistory | None = None,
    ) -> None:
        """Take notice of a job, which works from `now` until it posts."""
        if job in self._jobs:
            raise InputError(f"job {job!r} is there already", remedy="let it leave")
        past = past or JobHistory(now)
        bandwidth = min(nodes * self.node_bandwidth, cap)
        number = self._books.open(
            cap=min(bandwidth, self._capacity),
            bandwidth=min(bandwidth, self._capacity),
            release=past.release,
            lost=past.lost,
            nodes=nodes,
            period=period,
            user=self._users.of(user),
            group=self._groups.of(group),
            iterations=past.iterations,
            iteration_time=past.iteration_time,
        )
        made = _Job(job, number, user, group, nodes, cap, bandwidth, ended=now)
        self._jobs[job] = made
        missing = ("",) * (number + 1 - len(self._names))
        names = (*self._names, *missing)
        self._names = (*names[:number], job, *names[number + 1 :])

    def post(self, job: str, now: float, volume: float) -> None:
        """Begin an operation of about `volume` bytes; the time before it was work."""
        now = self._at(now)
        it = self._found(job)
        if it.operates:
            raise InputError(
                f"job {job!r} has an operation", remedy="complete it first"
            )
        it.operates, it.volume = True, volume
        it.lost_before = self._books.loss(it.number, now)
        it.reported = 0.0
        it.usage.measure_anew(now)
        self._books.post(it.number, now, now - it.ended, volume)

    def progress(
        self,
        job: str,
        now: float,
        moved: float,
        *,
        volume: float = 0.0,
        held_up: bool = True,
        pauses: bool = False,
    ) -> None:
        """Correct what remains of an operation, of which `moved` bytes are done.

        Parameters
        ----------
        volume
            Its volume, if that is sure (bytes).
        held_up
            Whether its grant has held the job up since the last report.
        pauses
            Whether it is known to do nothing at present.
        """
        now = self._at(now)
        it = self._operating(job)
        books, number = self._books, it.number
        known = float(books.state.volume[number])
        supposed = known - books.remaining(number, now)
        volume = volume or _raised(known, moved)
        books.state.volume[number] = volume
        # Of a volume that is sure, the last call may be in flight.
        remaining = max(volume - moved, 1.0)
        books.settle(number, now, remaining, float(books.program.cap[number]))
        it.usage.granted += max(supposed - it.reported, 0.0)
        it.usage.drawn += max(moved - it.reported, 0.0)
        it.reported = moved
        self._lender.watch(number, it.usage, now, held_up=held_up, pauses=pauses)

    def complete(
        self,
        job: str,
        now: float,
        *,
        ended: float | None = None,
        moved: float | None = None,
    ) -> None:
        """End the operation of a job.

        Parameters
        ----------
        ended
            When it ended, if that is known only now (s). The time since was work.
        moved
            Its true volume, if that was not known (bytes).
        """
        now = self._at(now)
        it = self._operating(job)
        posted = float(self._books.state.posted[it.number])
        ended = now if ended is None else min(max(ended, posted), now)
        volume = it.volume if moved is None else moved
        self._books.finish(it.number, ended, volume, it.lost_before)
        self._lender.give_back(it.number, it.usage)
        it.operates, it.ended = False, ended

    def wake(self, now: float) -> None:
        """Have the policy decide next time, though nothing has happened."""
        self._at(now)
        self._books.touch()

    def leave(self, job: str, now: float) -> None:
        """Forget a job; an operation that it has ends."""
        it = self._found(job)
        if it.operates:
            self.complete(job, now, moved=it.reported)
        del self._jobs[job]
        self._books.close(it.number)

    # --- What the operator wants ------------------------------------------------------

    @property
    def policy(self) -> str:
        """Name of the policy that decides, with its parameters."""
        return self._books.policy.label

    @property
    def capacity(self) -> float:
        """B (bytes/s)."""
        return self._capacity

    @property
    def decisions(self) -> int:
        """How often a policy was asked."""
        return int(self._books.state.counter[DECISIONS])

    def set_policy(self, policy: Policy | str, now: float) -> None:
        """Let another policy decide from now on; an unusable one changes nothing."""
        self._at(now)
        self._books.use(_policy(policy))

    def set_capacity(self, capacity: float, now: float) -> None:
        """Share another total bandwidth from now on (bytes/s)."""
        now = self._at(now)
        self._capacity = _bandwidth(capacity)
        self._books.set_capacity(self._capacity)
        for job in self._jobs.values():
            self._set_cap(job, now)

    def set_limit(self, job: str, limit: float, now: float) -> None:
        """Grant a job never more than `limit` bytes/s; inf takes the limit away."""
        it = self._found(job)
        it.limit = limit if limit == inf else _bandwidth(limit)
        self._set_cap(it, self._at(now))

    def allow(self, job: str, rate: float, now: float) -> None:
        """Grant a job at most `rate` bytes/s for now, whatever its limit; inf: all."""
        it = self._found(job)
        if it.allowance == rate:
            return
        it.allowance = rate
        self._set_cap(it, self._at(now))
        # What it drew when it was allowed less, or more, says nothing.
        self._lender.give_back(it.number, it.usage)
        it.usage.measure_anew(now)

    def set_nodes(self, job: str, nodes: int, now: float) -> None:
        """Note that a job runs on so many nodes now."""
        it = self._found(job)
        it.nodes, it.bandwidth = nodes, min(nodes * self.node_bandwidth, it.cap)
        self._books.program.nodes[it.number] = nodes
        self._set_cap(it, self._at(now))

    def _set_cap(self, it: _Job, now: float) -> None:
        books, number = self._books, it.number
        cap = min(it.bandwidth, it.limit, it.allowance, self._capacity)
        books.settle(number, now, books.remaining(number, now), cap)
        books.program.bandwidth[number] = cap
        books.touch()

    # --- The decision -----------------------------------------------------------------

    def decide(self, now: float) -> Decision:
        """Decide, if anything has happened; return what changes."""
        now = self._at(now)
        if self._horizon is not None:
            self._books.set_scalar("window_end", now + self._horizon)
        fault = ""
        try:
            self._decide(now)
        except PolicyError as error:
            fault = f"{error}; {_FALLBACK} decides from now on"
            self._books.use(_policy(_FALLBACK))
            self._decide(now)
        rates = Rates(self._names, *self._books.changes())
        return Decision(rates, self._books.next_instant(), fault)

    def _decide(self, now: float) -> None:
        books = self._books
        if books.begin_decision(now) > 0:
            self._lender.share_out(books.ask(), self._capacity)

    # --- What the books say -----------------------------------------------------------

    def __contains__(self, job: str) -> bool:
        return job in self._jobs

    def wait_for_end(self, job: str, until: float) -> None:
        """Suppose that an operation is complete at `until`, when somebody looks (s).

        One that is not served now is not complete before it is served.
        """
        state, number = self._books.state, self._operating(job).number
        if state.rate[number] > 0.0:
            state.completion[number] = until

    def overdue(self, now: float) -> list[str]:
        """Return the jobs whose operations should be complete by now."""
        return [self._names[i] for i in self._books.overdue(now)]

    def usable(self, job: str) -> float:
        """Return the most that a job can make use of now (bytes/s)."""
        it = self._found(job)
        return min(float(self._books.program.cap[it.number]), it.usage.usable)

    def operates(self, job: str) -> bool:
        """Tell whether a job has an operation."""
        return self._found(job).operates

    def share(self, job: str) -> tuple[float, float]:
        """Return what a job may draw now, and its cap (bytes/s)."""
        it = self._found(job)
        cap = float(self._books.program.cap[it.number])
        return (float(self._books.state.rate[it.number]) if it.operates else cap), cap

    def state(self, job: str, now: float) -> JobState:
        """Return how a job stands."""
        it = self._found(job)
        now = self._at(now)
        books, program, state = self._books, self._books.program, self._books.state
        i, active = it.number, it.operates
        return JobState(
            job=job,
            user=it.user,
            group=it.group,
            nodes=it.nodes,
            cap=float(program.cap[i]),
            limit=it.limit,
            active=active,
            rate=float(state.rate[i]) if active else 0.0,
            frugal=i in self._lender,
            waits=now - float(state.posted[i]) if active else 0.0,
            volume=float(state.volume[i]) if active else 0.0,
            remaining=books.remaining(i, now) if active else 0.0,
            completion=float(state.completion[i]) if active else inf,
            release=float(program.release[i]),
            age=now - float(program.release[i]),
            lost=books.loss(i, now),
            iterations=int(state.iterations[i]),
            iteration_time=float(state.iteration_time[i]),
        )

    def nodes(self, job: str) -> int:
        """Return on how many nodes a job runs."""
        return self._found(job).nodes

    def past(self, job: str, now: float) -> JobHistory:
        """Return what a job has done by now."""
        i, state = self._found(job).number, self._books.state
        return JobHistory(
            release=float(self._books.program.release[i]),
            lost=self._books.loss(i, self._at(now)),
            iterations=int(state.iterations[i]),
            iteration_time=float(state.iteration_time[i]),
        )

    def states(self, now: float) -> list[JobState]:
        """Return how all jobs stand, in the order in which they came."""
        return [self.state(job, now) for job in self._jobs]

    def _found(self, job: str) -> _Job:
        if job not in self._jobs:
            raise UnknownNameError("job", job, self._jobs)
        return self._jobs[job]

    def _operating(self, job: str) -> _Job:
        it = self._found(job)
        if not it.operates:
            raise InputError(f"job {job!r} has no operation", remedy="post one first")
        return it

    def _at(self, now: float) -> float:
        """Return `now`; time never goes back."""
        self._now = max(self._now, now)
        return self._now


def _raised(volume: float, moved: float) -> float:
    """Return a volume that was too small, doubled until it is more than `moved`."""
    while volume <= moved:
        volume = 2.0 * max(volume, 1.0)
    return volume


def _policy(policy: Policy | str) -> Policy:
    return get_policy(policy) if isinstance(policy, str) else policy


def _bandwidth(value: float) -> float:
    if not (isfinite(value) and value > 0.0):
        raise InputError(
            f"{value!r} is not a positive bandwidth",
            remedy='give bytes per second, e.g. "200 GiB/s"',
        )
    return float(value)
