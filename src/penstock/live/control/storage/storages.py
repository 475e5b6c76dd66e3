# SPDX-License-Identifier: MIT
"""All storages of a coordinator: which jobs share one, and when each one decides.

If the bandwidth is a number, all jobs share the *first* storage, whose name is "". If
it is learnt, each file system is a storage; the first one is that of jobs whose file
system is not known. `set_bandwidth` changes between the two while jobs run.

A storage decides only if one of its jobs sent something or its time has come. One that
has had no job for `UNUSED_S` is dropped: what it learnt was saved long before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Final

from penstock.live.control.activity.usage import Kind
from penstock.live.control.rates.controller import Controller
from penstock.live.control.storage.bandwidth import BandwidthEstimator
from penstock.live.control.storage.shared_storage import UNKNOWN_CAPACITY, SharedStorage

__all__ = ["UNUSED_S", "Storages"]

#: A storage is dropped if it has had no job for this time (s).
UNUSED_S: Final = 600.0


class Storages:
    """The storages that jobs use now or have used lately.

    Parameters
    ----------
    controller
        The controller of the first storage. Those of other storages are made like it.
    estimator
        Returns what learns the bandwidth of the storage of this name. None: the
        bandwidth is the controller's capacity.
    """

    def __init__(
        self,
        controller: Controller,
        estimator: Callable[[str], BandwidthEstimator] | None,
    ) -> None:
        self._estimator = estimator or (lambda _: BandwidthEstimator())
        self.first = SharedStorage("", controller, estimator("") if estimator else None)
        self._by_name = {"": self.first}
        self._dropped_decisions = 0

    def __iter__(self) -> Iterator[SharedStorage]:
        return iter(self._by_name.values())

    def get(self, name: str) -> SharedStorage:
        """Return the storage for jobs on a file system; make it if it is new."""
        if not self.first.learns:
            return self.first
        if name not in self._by_name:
            controller = self.first.controller.another(UNKNOWN_CAPACITY)
            self._by_name[name] = SharedStorage(name, controller, self._estimator(name))
        return self._by_name[name]

    def set_bandwidth(self, bandwidth: float | None, now: float) -> None:
        """Set the bandwidth of the first storage; None: learn those of all storages.

        The caller moves the jobs to the storages that `get` returns from now on.
        """
        if bandwidth is not None:
            self.first.fix(bandwidth, now)
        elif not self.first.learns:
            self.first.start_learning(self._estimator(""))

    def due(self, now: float) -> list[SharedStorage]:
        """Return the storages that have to decide now."""
        return [each for each in self if each.is_touched or each.wake_s <= now]

    @property
    def wake_s(self) -> float:
        """When the next storage has to decide if nothing happens."""
        return min((each.wake_s for each in self), default=inf)

    def drop_unused(self, now: float) -> None:
        """Drop the storages that have had no job for long."""
        for storage in list(self):
            if storage is not self.first and now - storage.unused_since_s > UNUSED_S:
                self._dropped_decisions += storage.controller.decisions
                del self._by_name[storage.name]

    @property
    def decisions(self) -> int:
        """How often a policy was asked on any storage."""
        return self._dropped_decisions + sum(each.controller.decisions for each in self)

    def shown(self) -> list[SharedStorage]:
        """Return the storages that jobs can be on with the present setting."""
        if not self.first.learns:
            return [self.first]
        others = [each for each in self if each is not self.first]
        # The first storage is not used if the agents name those of their jobs.
        return list(self) if self.first.controller.jobs() or not others else others

    def learnt(self) -> dict[str, dict[Kind, float]]:
        """Return the bandwidths that were learnt, by storage and kind, to be saved."""
        learnt = {each.name: each.learnt() for each in self}
        return {name: rates for name, rates in learnt.items() if rates}
