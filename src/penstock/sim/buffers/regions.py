# SPDX-License-Identifier: MIT
"""The storage targets of a simulation with burst buffers, and who is served there.

Targets that are always used together behave alike: they form a *region*, of which one
target is simulated for all. At first all targets are one region. A strategy that uses a
part of a region divides it: the run then starts over with the smaller regions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from penstock.errors import PenstockError
from penstock.sim.buffers.model import Storage
from penstock.sim.buffers.queue import Operation, Part, TargetQueue
from penstock.sim.buffers.sharing import Columns, TargetRules, share_target
from penstock.sim.buffers.state import ProcessGroup

__all__ = ["Region", "RegionSplitError", "Regions", "divided"]


class RegionSplitError(PenstockError):
    """A strategy used a part of a region: the run starts over with smaller ones."""

    regions: list[tuple[int, ...]]
    """The smaller regions."""


def divided(
    regions: Sequence[tuple[int, ...]], targets: Sequence[int]
) -> list[tuple[int, ...]]:
    """Return the regions, each divided into its part inside and outside `targets`."""
    chosen = set(targets)
    inside = [tuple(r for r in region if r in chosen) for region in regions]
    outside = [tuple(r for r in region if r not in chosen) for region in regions]
    return [part for part in (*inside, *outside) if part]


class Region:
    """Targets that are always used together: one is simulated for all of them."""

    __slots__ = ("carried", "completion", "queues", "targets", "wake")

    def __init__(self, targets: tuple[int, ...]) -> None:
        self.targets = targets
        self.queues: dict[int, TargetQueue] = {}
        """By entry, in ascending order."""
        self.carried = 0.0
        """Bytes written to each target."""
        self.completion = inf
        """When the next request is done (s)."""
        self.wake = inf
        """When the policy asked to be called again (s)."""

    def queue(self, entry: int) -> TargetQueue:
        """Return the queue of an entry."""
        if entry not in self.queues:
            self.queues[entry] = TargetQueue(entry)
            self.queues = dict(sorted(self.queues.items()))
        return self.queues[entry]


def _dealt(
    targets: tuple[int, ...], files: int, processes: float
) -> dict[float, tuple[int, ...]]:
    """Deal out files to targets; return the targets by files for each process."""
    each, more = divmod(files, len(targets))
    dealt = {(each + 1) / processes: targets[:more], each / processes: targets[more:]}
    return {weight: some for weight, some in dealt.items() if weight > 0 and some}


class Regions:
    """All storage targets, by region."""

    def __init__(
        self,
        storage: Storage,
        rules: TargetRules,
        regions: Sequence[tuple[int, ...]],
        columns: Callable[[], Columns],
    ) -> None:
        self._storage, self._columns = storage, columns
        self._rules = rules
        self._regions = [Region(targets) for targets in regions]
        self._by_targets: dict[tuple[int, ...], list[Region]] = {}
        self._undecided: dict[Region, None] = {}

    def next_instant(self) -> float:
        """Return when a request is done, or a policy asked to be called (s)."""
        return min(min(r.completion, r.wake) for r in self._regions)

    def carried(self) -> tuple[float, ...]:
        """Return what was written to each target (bytes)."""
        carried = {
            r: region.carried for region in self._regions for r in region.targets
        }
        return tuple(carried[r] for r in sorted(carried))

    def served(self, entry: int) -> float:
        """Return the processes of an entry that wait, each times its share."""
        served = 0.0
        for region in self._regions:
            queue = region.queues.get(entry)
            if queue:
                served += queue.weighted_share * queue.share
        return served

    def is_serving(self, first: int) -> bool:
        """Return True if a queue with the entry `first` or a later one is served."""
        return any(
            queue.rate > 0 and queue.entry >= first
            for region in self._regions
            for queue in region.queues.values()
        )

    def replace_rules(self, rules: TargetRules) -> None:
        """Share all targets by other rules from now on."""
        self._rules = rules
        self._undecided |= dict.fromkeys(self._regions)

    # --- Operations -------------------------------------------------------------------

    def start(
        self,
        operation: Operation,
        targets: tuple[int, ...],
        entry: int,
        gain: float,
        files: int = 0,
    ) -> Operation:
        """Begin an operation over `targets`, and return it.

        It has equal parts on all targets; with `files`, equal parts in that many files,
        which are dealt out to the targets. Raises `RegionSplitError` if targets with
        equal parts are a part of a region.
        """
        writer, width = operation.group.application.writer, len(targets)
        by_time = bool(self._storage.profile)
        alone = self._storage.alone(width, writer.limit_bytes_per_s)
        unit = alone / width if by_time else 1.0
        cap = alone / width / unit
        own = writer.limit_bytes_per_s / width / unit / writer.processes
        dealt = {1.0: targets}
        if files:
            dealt = _dealt(targets, files, operation.group.processes)
        operation.unit = unit * gain
        operation.width = sum(weight * len(some) for weight, some in dealt.items())
        need = operation.volume / operation.width / operation.unit
        need /= operation.group.processes
        for weight, some in dealt.items():
            for region in self._regions_of(some):
                queue = region.queue(entry)
                queue.cap = cap
                queue.request_cap = cap if by_time else min(cap, own)
                part = Part(operation, queue, len(region.targets), need, weight)
                operation.parts.append(part)
                queue.add(part, operation.posted)
                self._undecided[region] = None
        return operation

    def _regions_of(self, targets: tuple[int, ...]) -> list[Region]:
        """Return the regions that are made up of `targets`."""
        if targets not in self._by_targets:
            chosen = set(targets)
            regions = [r for r in self._regions if chosen.issuperset(r.targets)]
            if sum(len(region.targets) for region in regions) < len(chosen):
                split = RegionSplitError(f"{list(targets)} are a part of a region")
                split.regions = divided([r.targets for r in self._regions], targets)
                raise split
            self._by_targets[targets] = regions
        return self._by_targets[targets]

    def take_done(self, now: float, until: float) -> list[ProcessGroup]:
        """End the parts that are done; return the groups whose operation is done.

        Parts that are done by `until` belong to the instant `now`.
        """
        groups = []
        for region in self._regions:
            if region.completion > until:
                continue
            self._undecided[region] = None
            for queue in region.queues.values():
                if queue.completion <= until:
                    groups += self._end_parts(region, queue.take_done(now, until))
        return groups

    @staticmethod
    def _end_parts(region: Region, parts: Sequence[Part]) -> list[ProcessGroup]:
        done = []
        for part in parts:
            operation = part.operation
            region.carried += operation.volume * part.weight / operation.width
            operation.parts.remove(part)
            if not operation.parts:
                done.append(operation.group)
        return done

    def let_drain(
        self, drain: Operation, rate: float, now: float, *, drains: bool
    ) -> None:
        """Stop a drain, or let it go on at `rate` (bytes/s) at most."""
        limit = rate / drain.width / drain.unit
        for part in drain.parts:
            queue = part.queue
            if drain.is_stopped and drains:
                queue.add(part, now)
            elif not drain.is_stopped and not drains:
                queue.remove(part, now)
            elif queue.limit == limit:
                continue
            queue.limit = limit
            for region in self._regions:
                if region.queues.get(queue.entry) is queue:
                    self._undecided[region] = None
        drain.is_stopped = not drains

    # --- Sharing ----------------------------------------------------------------------

    def share(self, now: float, until: float) -> None:
        """Share every target that has changed or is due by `until`."""
        for region in self._regions:
            if region in self._undecided or region.wake <= until:
                self._share_region(region, now)
        self._undecided.clear()

    def _share_region(self, region: Region, now: float) -> None:
        queues = [queue for queue in region.queues.values() if queue.weight > 0]
        region.wake = region.completion = inf
        if not queues:
            return
        shares = share_target(self._rules, now, queues, self._columns)
        for queue in queues:
            queue.set_rate(shares.rates.get(queue.entry, 0.0), now)
            region.completion = min(region.completion, queue.completion)
        region.wake = shares.wake
