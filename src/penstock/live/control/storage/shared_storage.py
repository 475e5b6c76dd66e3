# SPDX-License-Identifier: MIT
"""One storage in the coordinator: its controller, and the bandwidth that jobs share.

Jobs on different storages share nothing. The bandwidth of a storage is a number that
the operator has given, or it is learnt (`bandwidth`). Where it is learnt, a job whose
storage no other job uses now is *free*: it is not held up. As long as nothing is known
about the storage, all jobs are free.

Times are in seconds, rates in bytes per second.
"""

from __future__ import annotations

from math import ceil, inf, log2
from typing import TYPE_CHECKING, Final

from penstock.live.control.activity.usage import Kind
from penstock.live.control.rates.controller import Controller
from penstock.live.control.storage.bandwidth import BandwidthEstimator
from penstock.live.wire.messages import BandwidthBelief, StorageStatus

if TYPE_CHECKING:
    from penstock.live.control.records import JobRecord  # imports this module

__all__ = ["START_SHARES", "UNKNOWN_CAPACITY", "SharedStorage", "start_rate"]

#: Capacity of the controller while nothing is known about a storage: a usual one, since
#: lengths of operations are predicted with it. Nobody is held to it.
UNKNOWN_CAPACITY: Final = 1e9
#: Jobs that begin at the same time may together draw this multiple of the bandwidth
#: until the decision reaches them, which takes milliseconds.
START_SHARES: Final = 2.0
#: A smaller change of the belief is not passed on to the controller.
_LEAST_CHANGE: Final = 1e-3


class SharedStorage:
    """A storage with the jobs that use it.

    Parameters
    ----------
    name
        Name of the file system; "" if all jobs share one storage.
    controller
        The controller of its jobs.
    estimator
        Learns the bandwidth; None: it is a number, the controller's capacity.
    """

    def __init__(
        self, name: str, controller: Controller, estimator: BandwidthEstimator | None
    ) -> None:
        self.name = name
        self.controller = controller
        self.estimator = estimator
        self.active: set[str] = set()
        """Keys of the jobs that have operations."""
        self.is_free = estimator is not None
        """True if its jobs are not held up."""
        self.is_touched = True
        """True if something has happened since its last decision."""
        self.wake_s = inf
        """When to decide again if nothing happens."""
        self.unused_since_s = inf
        """When its last job left; inf: it has jobs, or it never had one."""

    @property
    def learns(self) -> bool:
        """True if its bandwidth is learnt."""
        return self.estimator is not None

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth that its jobs share; None: not known yet."""
        if self.estimator is None or self.estimator.bandwidth < inf:
            return self.controller.capacity
        return None

    def join(self) -> None:
        """Note that its controller has got a job."""
        self.is_touched, self.unused_since_s = True, inf

    def take_over(self, job_key: str, origin: SharedStorage, now: float) -> None:
        """Move a job here from another storage, with its operation and its past."""
        self.controller.take_over(job_key, origin.controller, now)
        self.join()
        if job_key in origin.active:
            self.active.add(job_key)
        origin.leave(job_key, now)

    def read(self, job: JobRecord, now: float) -> None:
        """Take the counters of one of its jobs."""
        self.is_touched = True
        if self.estimator is not None:
            lends = job.controlled.is_frugal
            self.estimator.read(job.key, now, job.usage, lends=lends)

    def needs_all(self, job_key: str) -> bool:
        """Return True if a job lends nothing, although it is not held up.

        A free job has no share. A job that waits for the storage would draw more.
        """
        if self.estimator is None:
            return False
        return self.is_free or self.estimator.is_slowed(job_key)

    def leave(self, job_key: str, now: float) -> None:
        """Forget a job."""
        self.is_touched = True
        self.active.discard(job_key)
        self.controller.leave(job_key, now)
        if not self.controller.jobs():
            self.unused_since_s = now
        if self.estimator is not None:
            self.estimator.leave(job_key, now)

    def learn(self, now: float) -> bool:
        """Update what is known; return True if its active jobs need other grants."""
        if self.estimator is None:
            return False
        self.estimator.set_active(self.active, now)
        self.estimator.learn(now)
        bandwidth = self.estimator.bandwidth
        capacity = self.controller.capacity
        if bandwidth < inf and abs(bandwidth - capacity) > _LEAST_CHANGE * capacity:
            self.controller.set_capacity(bandwidth, now)
        was_free = self.is_free
        self.is_free = bandwidth == inf or len(self.active) < 2
        return self.is_free != was_free

    def fix(self, bandwidth: float, now: float) -> None:
        """Share this bandwidth from now on, and do not learn."""
        self.controller.set_capacity(bandwidth, now)
        self.estimator, self.is_free, self.is_touched = None, False, True

    def start_learning(self, estimator: BandwidthEstimator) -> None:
        """Learn the bandwidth from now on; the present one is forgotten."""
        self.estimator, self.is_free, self.is_touched = estimator, True, True

    def status(self, now: float) -> StorageStatus:
        """Return what is believed about it, and why."""
        beliefs = self.estimator.beliefs() if self.estimator else {}
        return StorageStatus(
            self.name,
            self.bandwidth,
            learns=self.learns,
            doing=str(self.estimator.kind or "") if self.estimator else "",
            beliefs={
                str(kind): BandwidthBelief(
                    belief.rate,
                    str(belief.reason),
                    max(now - belief.since_s, 0.0) if belief.since_s > -inf else None,
                    *belief.spread,
                )
                for kind, belief in beliefs.items()
            },
            active_jobs=len(self.active),
        )

    def learnt(self) -> dict[Kind, float]:
        """Return the beliefs that are worth keeping for the next run, by kind."""
        beliefs = self.estimator.beliefs() if self.estimator else {}
        return {kind: each.rate for kind, each in beliefs.items() if each.saturated}


def start_rate(capacity: float, places: int) -> float:
    """Return what a job without an operation may draw on a node, at most (bytes/s).

    With `places` pairs of a job and a node, 2^k of them rounded up, this is

        START_SHARES capacity / 2^k.

    If all of them begin before a decision reaches them, they draw at most START_SHARES
    of the capacity until then. A power of 2, so that not every job that comes or goes
    changes the grants of all others.
    """
    return START_SHARES * capacity / (1 << ceil(log2(max(places, 1))))
