# SPDX-License-Identifier: MIT
"""One job in the controller, and its history that is saved between two runs.

The engine's columns (`job_columns`) hold what policies read of a job. `ControlledJob`
holds the rest, and reads the columns for those who ask about the job.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from penstock.live.control.rates.job_columns import JobColumns

__all__ = ["ControlledJob", "JobHistory", "by_rate"]


@dataclass(frozen=True, slots=True)
class JobHistory:
    """What a job has done, as saved for the case that the controller is restarted."""

    release_s: float
    """tau_i: instant from which its age counts."""
    lost_s: float = 0.0
    """Time lost since then, by its grants: what policies read."""
    iterations: int = 0
    """Iterations completed; what precedes the first operation that the controller
    saw is not one (see `penstock.policies.view.View`)."""
    iteration_time_s: float = 0.0
    """Sum over its iterations of work + volume / cap."""
    past_bytes: tuple[float, ...] = ()
    """Volumes of its last operations, oldest first."""
    shown_lost_s: float = 0.0
    """Time lost since then, as users see it: see `JobRecord.lost_s`."""
    processes: int = 0
    """Most processes that it had at a time; 0: not counted."""
    round_bytes: float = 0.0
    """Bytes of one request of every process; 0: not known."""
    pause_s: float = 0.0
    """Mean time between two requests of a process."""
    is_lasting: bool = True
    """False if no later run has its key: a number that a batch system has given."""

    @property
    def is_of_use(self) -> bool:
        """True if it says something about a later run."""
        return bool(self.past_bytes or self.iterations or self.processes)

    def for_new_run(self, now: float) -> JobHistory:
        """Return what it says about a run that begins now and has lost nothing yet."""
        return replace(self, release_s=now, lost_s=0.0, shown_lost_s=0.0)


@dataclass(slots=True, eq=False)
class ControlledJob:
    """A job in the controller: state outside the engine's columns, and a view of them.

    Only `Controller` and `Lender` change it.
    """

    key: str
    number: int
    """Index of the job in the columns."""
    user_number: int
    """Number of its user in the columns."""
    columns: JobColumns
    nodes: int
    own_cap: float
    """Most that it can draw, however many nodes it has."""
    bandwidth: float
    """Most that it can draw on its nodes, alone and without limits."""
    work_since_s: float
    """When its last operation ended and work began."""
    limit: float = inf
    """Limit set by an operator; inf: none."""
    allowance: float = inf
    """Temporary limit of a job that stages or drains: see `Controller.allow`."""
    is_active: bool = False
    """True if it has an operation."""
    posted_bytes: float = 0.0
    """Volume of the operation, as posted."""
    lost_at_post_s: float = 0.0
    """Time lost when the operation was posted."""
    reported_bytes: float = 0.0
    """Volume that the operation had moved at the last report."""
    granted_bytes: float = 0.0
    """Volume that its rates granted since the operation was posted, however small the
    operation is."""
    ahead_at_post_bytes: float = 0.0
    """`ahead_bytes` when the operation was posted."""
    needs_all: bool = False
    """True if it lends nothing, whatever it draws: see `SharedStorage.needs_all`."""
    pauses: bool = False
    """True if the operation is known to pause: see `lending`."""
    measured_since_s: float = 0.0
    """Begin of the interval over which its draw is compared with its grant."""
    drawn_bytes: float = 0.0
    """Volume moved in this interval."""
    offered_bytes: float = 0.0
    """Volume that its grant allowed in this interval."""
    offered_until_s: float = 0.0
    """When its grants were last measured."""
    ahead_bytes: float = 0.0
    """Volume that it has moved and its grants have not allowed yet: a large call, or a
    step of a drain, is made in one piece and held up afterwards. A grant that it did
    not use before does not count."""
    surplus_bytes: float = 0.0
    """`ahead_bytes` at the begin of this interval."""
    always_held_up: bool = True
    """True if calls were held up before every report of this interval."""
    supposed_bytes: float = 0.0
    """Volume that its operation had moved when its grants were last measured, if it
    drew them since the last report."""
    overdue_bytes: float = 0.0
    """Volume that its rates had granted beyond the operation at that time."""
    frugal_draw: float = 0.0
    """Rate that it drew when it was found to be frugal."""
    kept_rate: float = inf
    """Rate that it keeps while the rest of its grant is lent; inf: nothing is lent."""

    def restart_measurement(self, now: float) -> None:
        """Begin a new interval over which its draw is compared with its grant."""
        if self.ahead_bytes < 0.0:
            self.ahead_bytes = 0.0
        self.surplus_bytes = self.ahead_bytes
        self.measured_since_s, self.drawn_bytes, self.offered_bytes = now, 0.0, 0.0
        self.always_held_up = True

    def add_drawn(self, moved_bytes: float) -> None:
        """Add a volume that it has moved since the last report."""
        self.drawn_bytes += moved_bytes
        self.ahead_bytes = max(self.ahead_bytes + moved_bytes, 0.0)

    def measure_grants(self, now: float) -> None:
        """Add what its rates have granted its operation since the last measurement.

        If all of its operation is moved, it is allowed nothing more. What its rate
        still grants pays for what its calls have moved ahead.
        """
        supposed_bytes, overdue_bytes = self.columns.granted(self.number, now)
        allowed_bytes = max(supposed_bytes - self.supposed_bytes, 0.0)
        granted_bytes = max(allowed_bytes + overdue_bytes - self.overdue_bytes, 0.0)
        self.supposed_bytes, self.overdue_bytes = supposed_bytes, overdue_bytes
        self.offered_bytes += allowed_bytes
        self.granted_bytes += granted_bytes
        self.ahead_bytes -= granted_bytes
        self.offered_until_s = now

    def pay_ahead(self, now: float, rate: float) -> None:
        """Pay for what its calls have moved ahead; it has no operation, but `rate`."""
        self.ahead_bytes -= rate * (now - self.offered_until_s)
        self.offered_until_s = now

    def forget_surplus(self) -> None:
        """Forget what it has moved ahead of its grants."""
        self.ahead_bytes = self.surplus_bytes = 0.0

    @property
    def evidence_bytes(self) -> float:
        """Volume that shows that it uses its grant in this interval."""
        return self.surplus_bytes + self.drawn_bytes

    @property
    def is_frugal(self) -> bool:
        """True if a part of its grant is lent to other jobs."""
        return self.kept_rate < inf

    # --- The job in the columns -------------------------------------------------------

    @property
    def cap(self) -> float:
        """b_i: most that it can draw now, by its nodes, limits and the capacity."""
        return float(self.columns.inputs.cap[self.number])

    @property
    def alone(self) -> float:
        """Most that it may draw if no other job uses the storage; inf: no limit."""
        return min(self.bandwidth, self.limit, self.allowance)

    @property
    def usable(self) -> float:
        """Most that it makes use of now."""
        return min(self.cap, self.kept_rate)

    @property
    def rate(self) -> float:
        """Bandwidth that its operation holds; 0 without an operation."""
        return float(self.columns.state.rate[self.number]) if self.is_active else 0.0

    @property
    def borrowed(self) -> float:
        """Part of its rate that other jobs lend."""
        shares = self.columns.shares_before_lending
        if shares is None or self.number >= len(shares):
            return 0.0
        return max(self.rate - float(shares[self.number]), 0.0)

    @property
    def grant(self) -> float:
        """Bandwidth that it may draw: its cap while it has no operation."""
        return self.rate if self.is_active else self.cap

    @property
    def volume_bytes(self) -> float:
        """Volume of its operation, as far as it is known; 0 without an operation."""
        return float(self.columns.state.volume[self.number]) if self.is_active else 0.0

    @property
    def completion_s(self) -> float:
        """When its operation is complete if it keeps its rate; inf without one."""
        state = self.columns.state
        return float(state.completion[self.number]) if self.is_active else inf

    @property
    def release_s(self) -> float:
        """tau_i: instant from which its age counts."""
        return float(self.columns.inputs.release[self.number])

    @property
    def iterations(self) -> int:
        """Iterations completed."""
        return int(self.columns.state.iterations[self.number])

    @property
    def iteration_time_s(self) -> float:
        """Sum over its iterations of work + volume / cap."""
        return float(self.columns.state.iteration_time[self.number])

    def remaining_bytes(self, now: float) -> float:
        """Return the remaining volume of its operation; 0 without an operation."""
        return self.columns.remaining(self.number, now) if self.is_active else 0.0

    def since_post_s(self, now: float) -> float:
        """Return how long ago its operation was posted; 0 without an operation."""
        posted_s = float(self.columns.state.posted[self.number])
        return now - posted_s if self.is_active else 0.0

    def age_s(self, now: float) -> float:
        """Return the time since its release."""
        return now - self.release_s

    def lost_s(self, now: float) -> float:
        """Return the time that it has lost since its release, by its grants."""
        return self.columns.loss(self.number, now)

    def progress_yield(self, now: float) -> float:
        """Return y_i = 1 - lost / age (bandwidth sharing, equation 6)."""
        age_s = self.age_s(now)
        return 1.0 - self.lost_s(now) / age_s if age_s > 0.0 else 1.0

    def history(self, now: float) -> JobHistory:
        """Return what it has done by now."""
        lost_s = self.lost_s(now)
        return JobHistory(
            self.release_s, lost_s, self.iterations, self.iteration_time_s
        )


def by_rate(jobs: Iterable[ControlledJob]) -> list[ControlledJob]:
    """Return the jobs that have an operation, highest rate first."""
    return sorted((job for job in jobs if job.is_active), key=lambda job: -job.rate)
