# SPDX-License-Identifier: MIT
"""The controller: events of jobs go in, the rates of jobs come out.

It has no clock, no I/O and no randomness: its caller says what time it is. The same
policies as in the simulator decide, on columns that the simulator's own kernels update
(`job_columns`). Fed with the events of a simulation it grants exactly what the
simulator granted, bit by bit.

The caller reports all events of one instant first, then calls `Controller.decide` once.
A decision holds until the next one.

Differences from a simulation:

- The volume of an operation is an estimate (`volumes`), renewed at each report. An
  operation that should be complete and is not is taken to be half done.
- Bandwidth that a job does not use is lent to others (see `lending`).
- The window has no end. Policies that ask for one are shown `horizon` seconds.
- A policy that fails is replaced by `fair-share`; the decision names the fault.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import Any, Final, NamedTuple

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.live.control.rates.job_columns import JobColumns
from penstock.live.control.rates.jobs import ControlledJob, JobHistory
from penstock.live.control.rates.lending import Lender
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.policies.view import HORIZON_S
from penstock.sim.state import DECISIONS

__all__ = ["Controller", "Decision", "Rates"]

_FALLBACK: Final = "fair-share"


class Rates(Mapping[str, float]):
    """Rates of jobs (bytes/s) by job key.

    Where all jobs share, every event changes all rates. Keys are therefore looked up on
    demand: a caller that only waits for the next event does not pay for them.
    """

    def __init__(self, keys: Sequence[str], numbers: Any, rates: Any) -> None:
        self._keys, self._numbers, self._rates = keys, numbers, rates

    @cached_property
    def _by_key(self) -> dict[str, float]:
        keys = map(self._keys.__getitem__, self._numbers.tolist())
        return dict(zip(keys, self._rates.tolist(), strict=True))

    def __getitem__(self, job_key: str) -> float:
        return self._by_key[job_key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return repr(self._by_key)


class Decision(NamedTuple):
    """Result of `Controller.decide`."""

    rates: Mapping[str, float]
    """Job key -> new rate, for every job whose rate has changed (bytes/s)."""
    wake: float
    """When to call `Controller.decide` again if nothing happens (s)."""
    fault: str = ""
    """Error of the policy that had to be replaced; empty if there was none."""


@dataclass(slots=True)
class _Numbering:
    """Numbers names in the order in which they first appear."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number_of(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def name_of(self, number: int) -> str:
        return list(self.numbers)[number]


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
        E (bandwidth sharing, equation 5), if it is known.
    lend
        False: do not lend the unused part of a job's grant.
    compiled
        False: interpret the policy and the columns' kernels. The decisions are the
        same, and nothing has to be compiled.
    """

    def __init__(
        self,
        policy: Policy | str,
        capacity: float,
        node_bandwidth: float = inf,
        *,
        window: tuple[float, float] | None = None,
        horizon: float = HORIZON_S,
        dedicated_events: float = 0.0,
        lend: bool = True,
        compiled: bool = True,
    ) -> None:
        self._capacity = _bandwidth(capacity)
        self.node_bandwidth = node_bandwidth
        """b (bytes/s); see `set_nodes`."""
        self.start_rate = inf
        """What a job without an operation may draw on each node, at most (bytes/s)."""
        self._horizon = None if window else horizon
        self._columns = JobColumns(_policy(policy), self._capacity, compiled=compiled)
        self._lender = Lender(self._columns, lends=lend)
        self._same_options: dict[str, Any] = {"lend": lend, "compiled": compiled}
        if window:
            self._columns.set_scalar("window_begin", window[0])
            self._columns.set_scalar("window_end", window[1])
        self._columns.set_scalar("dedicated_events", dedicated_events)
        self._jobs: dict[str, ControlledJob] = {}
        # Job number -> key. Replaced, never changed: past decisions refer to it.
        self._keys: tuple[str, ...] = ()
        self._users, self._groups = _Numbering(), _Numbering()
        self._now = -inf

    def another(self, capacity: float) -> Controller:
        """Return a controller without jobs, with the same policy and options."""
        policy = self._columns.policy
        return Controller(policy, capacity, self.node_bandwidth, **self._same_options)

    # --- Events -----------------------------------------------------------------------

    def register(
        self,
        job_key: str,
        now: float,
        *,
        user: str = "",
        group: str = "",
        nodes: int = 1,
        cap: float = inf,
        period: float = 0.0,
        history: JobHistory | None = None,
    ) -> None:
        """Register a job, which works from `now` until its first operation.

        Parameters
        ----------
        cap
            Most that the job can draw, however many nodes it has (bytes/s).
        period
            omega_i, if it is known (s).
        history
            What the job did before, if it is known.
        """
        if job_key in self._jobs:
            raise InputError(
                f"job {job_key!r} is already registered", remedy="use another name"
            )
        history = history or JobHistory(now)
        bandwidth = min(nodes * self.node_bandwidth, cap)
        number = self._columns.add_job(
            cap=min(bandwidth, self._capacity),
            bandwidth=min(bandwidth, self._capacity),
            release=history.release_s,
            lost=history.lost_s,
            nodes=nodes,
            period=period,
            user=self._users.number_of(user),
            group=self._groups.number_of(group),
            iterations=history.iterations,
            iteration_time=history.iteration_time_s,
        )
        self._jobs[job_key] = ControlledJob(
            job_key,
            number,
            self._users.number_of(user),
            self._columns,
            nodes,
            cap,
            bandwidth,
            work_since_s=now,
        )
        missing = ("",) * (number + 1 - len(self._keys))
        keys = (*self._keys, *missing)
        self._keys = (*keys[:number], job_key, *keys[number + 1 :])

    def set_past(self, job_key: str, history: JobHistory) -> None:
        """Take what earlier runs teach of a job, unless it has done something itself.

        Its age and its lost time stay as they are.
        """
        job = self.job(job_key)
        if not (job.is_active or job.iterations):
            self._columns.set_iterations(
                job.number, history.iterations, history.iteration_time_s
            )

    def take_over(self, job_key: str, origin: Controller, now: float) -> None:
        """Register a job of another controller, with its operation, past and limits.

        The job stays in the other controller until it leaves it.
        """
        now = self._at(now)
        old, columns = origin.job(job_key), origin._columns
        self.register(
            job_key,
            now,
            user=origin._users.name_of(int(columns.inputs.user[old.number])),
            group=origin._groups.name_of(int(columns.inputs.group[old.number])),
            nodes=old.nodes,
            cap=old.own_cap,
            period=float(columns.inputs.period[old.number]),
            history=old.history(now),
        )
        job = self.job(job_key)
        job.limit, job.allowance = old.limit, old.allowance
        self._set_cap(job, now)
        if old.is_active:
            self._continue_operation(job, old, now)
        else:
            job.work_since_s = old.work_since_s
        job.ahead_bytes = job.surplus_bytes = old.ahead_bytes
        job.offered_until_s = old.offered_until_s
        self._columns.copy_past(job.number, columns, old.number)

    def _continue_operation(
        self, job: ControlledJob, old: ControlledJob, now: float
    ) -> None:
        """Continue the operation of `old`, the same job in another controller."""
        origin = old.columns.state
        job.work_since_s = now - float(origin.work_before[old.number])
        self.post(job.key, now, old.posted_bytes)
        job.lost_at_post_s, job.reported_bytes = old.lost_at_post_s, old.reported_bytes
        job.supposed_bytes = old.reported_bytes
        state = self._columns.state
        state.posted[job.number] = origin.posted[old.number]
        state.volume[job.number] = old.volume_bytes
        remaining_bytes = max(old.remaining_bytes(now), 1.0)
        self._columns.update(job.number, now, remaining_bytes, job.cap)

    def post(self, job_key: str, now: float, volume_bytes: float) -> None:
        """Begin an operation of about this volume; the time before it was work."""
        now = self._at(now)
        job = self.job(job_key)
        if job.is_active:
            raise InputError(
                f"job {job_key!r} already has an operation", remedy="complete it first"
            )
        self._pay_ahead(job, now)
        job.restart_measurement(now)
        job.granted_bytes, job.ahead_at_post_bytes = 0.0, job.ahead_bytes
        job.is_active, job.posted_bytes = True, volume_bytes
        job.lost_at_post_s = job.lost_s(now)
        job.reported_bytes = job.supposed_bytes = job.overdue_bytes = 0.0
        self._columns.post(job.number, now, now - job.work_since_s, volume_bytes)
        self._lender.begin(job, now)

    def progress(
        self,
        job_key: str,
        now: float,
        moved_bytes: float,
        *,
        volume_bytes: float = 0.0,
        held_up: bool = True,
        pauses: bool = False,
    ) -> None:
        """Correct what remains of an operation that has moved `moved_bytes` so far.

        Parameters
        ----------
        volume_bytes
            Volume of the operation, known or estimated; 0: as posted, but more than
            was moved.
        held_up
            Whether a call of the job was held up since the last report.
        pauses
            Whether the job is known to do no I/O at present.
        """
        now = self._at(now)
        job = self._active_job(job_key)
        columns, number = self._columns, job.number
        job.measure_grants(now)
        volume_bytes = volume_bytes or _raised(job.volume_bytes, moved_bytes)
        columns.state.volume[number] = volume_bytes
        # The last call may be in flight when all of a certain volume is counted.
        remaining_bytes = max(volume_bytes - moved_bytes, 1.0)
        columns.update(number, now, remaining_bytes, job.cap)
        job.add_drawn(max(moved_bytes - job.reported_bytes, 0.0))
        job.reported_bytes = job.supposed_bytes = moved_bytes
        job.overdue_bytes = 0.0
        self._lender.watch(job, now, held_up=held_up, pauses=pauses)

    def _pay_ahead(self, job: ControlledJob, now: float) -> None:
        """Let a job without an operation pay for what its calls have moved ahead."""
        if job.ahead_bytes > 0.0:
            job.pay_ahead(now, min(job.cap, job.nodes * self.start_rate))

    def set_needs_all(self, job_key: str, *, needs_all: bool) -> None:
        """Set whether a job keeps its whole grant, whatever it draws of it."""
        self.job(job_key).needs_all = needs_all

    def is_doubted(self, job_key: str, now: float) -> bool:
        """Return True if reports of the user of a job were false: see `lending`."""
        return self._lender.is_doubted(self.job(job_key), self._at(now))

    def doubt(self, job_key: str, now: float) -> None:
        """Give a job no share before it draws: what was reported of it was false."""
        self._lender.doubt(self.job(job_key), self._at(now))

    def forget_surplus(self, job_key: str) -> None:
        """Forget what a job has moved ahead of its grants: nothing holds it up."""
        self.job(job_key).forget_surplus()

    def complete(
        self,
        job_key: str,
        now: float,
        *,
        ended: float | None = None,
        moved_bytes: float | None = None,
    ) -> None:
        """End the operation of a job.

        Parameters
        ----------
        ended
            When it ended, if that was before `now` (s). The time since was work.
        moved_bytes
            Its true volume, if the volume posted was a prediction.
        """
        now = self._at(now)
        job = self._active_job(job_key)
        if ended is None:
            ended = now
        else:
            posted = float(self._columns.state.posted[job.number])
            ended = min(max(ended, posted), now)
        volume_bytes = job.posted_bytes if moved_bytes is None else moved_bytes
        job.measure_grants(now)
        job.add_drawn(max(volume_bytes - job.reported_bytes, 0.0))
        self._lender.end(job, now, volume_bytes)
        job.restart_measurement(now)
        self._columns.finish(job.number, ended, volume_bytes, job.lost_at_post_s)
        self._lender.give_back(job)
        job.is_active, job.work_since_s = False, ended

    def wake(self, now: float) -> None:
        """Make the policy decide next time, even if nothing has happened."""
        self._at(now)
        self._columns.request_decision()

    def leave(self, job_key: str, now: float) -> None:
        """Forget a job; its operation, if it has one, ends."""
        job = self.job(job_key)
        if job.is_active:
            self.complete(job_key, now, moved_bytes=job.reported_bytes)
        del self._jobs[job_key]
        self._columns.remove_job(job.number)

    def wait_for_end(self, job_key: str, until: float) -> None:
        """Expect the end of an operation at `until`, when its counters are read (s).

        An operation that is not served now cannot be complete then: nothing changes.
        """
        state, number = self._columns.state, self._active_job(job_key).number
        if state.rate[number] > 0.0:
            state.completion[number] = until

    # --- Changes by operators and by staging ------------------------------------------

    @property
    def policy(self) -> str:
        """Name of the policy that decides, with its parameters."""
        return self._columns.policy.label

    @property
    def capacity(self) -> float:
        """B (bytes/s)."""
        return self._capacity

    @property
    def decisions(self) -> int:
        """How often a policy was asked."""
        return int(self._columns.state.counter[DECISIONS])

    def set_policy(self, policy: Policy | str, now: float) -> None:
        """Replace the policy from now on; an unusable policy changes nothing."""
        self._at(now)
        self._columns.set_policy(_policy(policy))

    def set_capacity(self, capacity: float, now: float) -> None:
        """Replace the total bandwidth from now on (bytes/s)."""
        now = self._at(now)
        self._capacity = _bandwidth(capacity)
        self._columns.set_capacity(self._capacity)
        self._columns.request_decision()
        inputs = self._columns.inputs
        for job in self._jobs.values():
            if job.is_active:
                self._set_cap(job, now)
            else:
                # There may be thousands of idle jobs: set no more than their caps.
                cap = min(job.alone, self._capacity)
                inputs.cap[job.number] = inputs.bandwidth[job.number] = cap

    def set_limit(self, job_key: str, limit: float, now: float) -> None:
        """Never grant a job more than `limit` (bytes/s); inf removes the limit."""
        job = self.job(job_key)
        job.limit = limit if limit == inf else _bandwidth(limit)
        self._set_cap(job, self._at(now))

    def allow(self, job_key: str, rate: float, now: float) -> None:
        """Grant a job at most `rate` for now (bytes/s); inf removes this bound."""
        job = self.job(job_key)
        if job.allowance == rate:
            return
        now = self._at(now)
        if job.is_active:
            job.measure_grants(now)
        else:
            self._pay_ahead(job, now)
        job.allowance = rate
        self._set_cap(job, now)
        # What it drew under the old allowance says nothing about the new one.
        self._lender.give_back(job)
        job.restart_measurement(now)

    def set_nodes(self, job_key: str, nodes: int, now: float) -> None:
        """Change the number of nodes of a job."""
        job = self.job(job_key)
        job.nodes, job.bandwidth = nodes, min(nodes * self.node_bandwidth, job.own_cap)
        self._columns.inputs.nodes[job.number] = nodes
        self._set_cap(job, self._at(now))

    def _set_cap(self, job: ControlledJob, now: float) -> None:
        columns, number = self._columns, job.number
        cap = min(job.alone, self._capacity)
        columns.update(number, now, columns.remaining(number, now), cap)
        columns.inputs.bandwidth[number] = cap
        columns.request_decision()

    # --- The decision -----------------------------------------------------------------

    def decide(self, now: float) -> Decision:
        """Ask the policy, if anything has happened; return the changed rates."""
        now = self._at(now)
        if self._horizon is not None:
            self._columns.set_scalar("window_end", now + self._horizon)
        fault = ""
        try:
            self._decide(now)
        except PolicyError as error:
            fault = f"{error}; {_FALLBACK} decides from now on"
            self._columns.set_policy(_policy(_FALLBACK))
            self._decide(now)
        rates = Rates(self._keys, *self._columns.changes())
        return Decision(rates, self._columns.next_instant(), fault)

    def _decide(self, now: float) -> None:
        if self._columns.begin_decision(now) > 0:
            self._lender.end_decision(self._columns.ask(), self._capacity)

    # --- Queries ----------------------------------------------------------------------

    def __contains__(self, job_key: str) -> bool:
        return job_key in self._jobs

    def job(self, job_key: str) -> ControlledJob:
        """Return a job; it shows the present state until the job leaves."""
        if job_key not in self._jobs:
            raise UnknownNameError("job", job_key, self._jobs)
        return self._jobs[job_key]

    def jobs(self) -> list[ControlledJob]:
        """Return all jobs in the order of their registration."""
        return list(self._jobs.values())

    def overdue(self, now: float) -> list[str]:
        """Return the keys of jobs whose operations should be complete by now."""
        return [self._keys[number] for number in self._columns.overdue(now)]

    def _active_job(self, job_key: str) -> ControlledJob:
        job = self.job(job_key)
        if not job.is_active:
            raise InputError(
                f"job {job_key!r} has no operation", remedy="post one first"
            )
        return job

    def _at(self, now: float) -> float:
        """Return `now`, or the latest instant seen: time never goes back."""
        if now > self._now:
            self._now = now
        return self._now


def _raised(volume_bytes: float, moved_bytes: float) -> float:
    """Return the volume, doubled until it exceeds what has been moved."""
    while volume_bytes <= moved_bytes:
        volume_bytes = 2.0 * max(volume_bytes, 1.0)
    return volume_bytes


def _policy(policy: Policy | str) -> Policy:
    return get_policy(policy) if isinstance(policy, str) else policy


def _bandwidth(value: float) -> float:
    if not (isfinite(value) and value > 0.0):
        raise InputError(
            f"{value!r} is not a positive bandwidth",
            remedy='give bytes per second, e.g. "200 GiB/s"',
        )
    return float(value)
