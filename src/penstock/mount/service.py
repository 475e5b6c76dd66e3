# SPDX-License-Identifier: MIT
"""All that decides when the requests of a mount go, and what is measured of it.

A scheduler (`penstock.qos`) orders them by application and hands them to the limit;
without objectives it is first come, first served.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Final

import trio

from penstock.errors import InputError
from penstock.mount.cascade import Cascade
from penstock.mount.control import ApplicationState, SchedulerStatus
from penstock.mount.gate import Gate
from penstock.mount.limiter import Limiter, Limits
from penstock.mount.meters import Meter
from penstock.mount.objectives import REST, Objectives, objectives_from
from penstock.mount.peers import Peers
from penstock.mount.rules import FileOpener
from penstock.qos import get_scheduler, slo_of, unmet

__all__ = ["Service", "why_unmet"]

#: Who decides where nothing is promised.
_UNORDERED: Final = "fifo:depth=0"
#: What cannot be changed while requests are under way.
_FIXED: Final = ("scheduler", "exchange")


def why_unmet(objectives: Objectives | None, limits: Limits) -> str:
    """Say why not all can have what they are promised; empty: they can."""
    if objectives is None or limits.total == inf:
        return ""
    problem = unmet(objectives.slos, limits.total)
    return "" if problem is None else str(problem)


class Service:
    """Decides for one mount, and measures."""

    def __init__(
        self, limits: Limits, objectives: Objectives | None, now: float
    ) -> None:
        self.limiter = Limiter(limits, now)
        self.objectives = objectives
        maker = objectives.scheduler if objectives else get_scheduler(_UNORDERED)
        slos = objectives.slos if objectives else {}
        self.scheduler = maker.make(slos, now)
        self._spread()
        self.gate = Gate(Cascade(self.scheduler, self.limiter))
        self.gate.meters = self._meters(now)

    def peers(self) -> Peers | None:
        """Begin to listen to other mounts; None: there are none."""
        link = self.objectives.link if self.objectives else None
        return None if link is None else Peers(link, self.scheduler)

    async def application_of(self, caller: FileOpener) -> str:
        """Return whose a file is that somebody opens.

        Who asks a process for its job waits for a lock that the process may hold while
        it waits for us: so that is done in a thread.
        """
        if self.objectives is not None and self.objectives.asks_jobs:
            found: str = await trio.to_thread.run_sync(
                self.objectives.application_of, caller, abandon_on_cancel=True
            )
            return found
        return (
            REST if self.objectives is None else self.objectives.application_of(caller)
        )

    def limit(self, limits: Limits) -> None:
        """Set other limits."""
        self.limiter.change(limits, trio.current_time())
        self.gate.dispatch()

    def promise(self, document: dict[str, object]) -> Objectives:
        """Promise something else from now on."""
        if self.objectives is None:
            raise InputError("is mounted without --slo", remedy="mount it with --slo")
        for key in _FIXED:
            if document.get(key) != self.objectives.document.get(key):
                raise InputError(
                    "cannot be changed while mounted", where=key, remedy="mount anew"
                )
        now = trio.current_time()
        self.objectives = objectives_from(document)
        self.scheduler.set_slos(self.objectives.slos, now)
        self._spread()
        self.gate.meters = self._meters(now)
        self.gate.dispatch()
        return self.objectives

    def order(self) -> SchedulerStatus | None:
        """Tell how applications are served."""
        objectives = self.objectives
        if objectives is None:
            return None
        queued, depth = self.gate.queued(), self.scheduler.depth
        return SchedulerStatus(
            objectives.scheduler.label,
            None if depth == inf else depth,
            self.scheduler.outstanding,
            why_unmet(objectives, self.limiter.limits),
            [self._application(name, queued) for name in self.gate.meters],
            dict(objectives.document),
        )

    def _spread(self) -> None:
        """Infer service at other mounts from the layout, where it is not told."""
        if self.objectives is not None and self.objectives.link is None:
            self.scheduler.set_layout(self.objectives.layout)

    def _meters(self, now: float) -> dict[str, Meter]:
        """Return a meter for each application; those that stay go on counting."""
        if self.objectives is None:
            return {}
        slos, before = self.objectives.slos, self.gate.meters
        meters = {}
        for name in {**slos, self.objectives.default: None}:
            meters[name] = before.get(name) or Meter(0.0, now)
            meters[name].latency_s = slo_of(slos, name).latency_s
        return meters

    def _application(self, name: str, queued: Counter[str]) -> ApplicationState:
        meter = self.gate.meters[name]
        window = meter.last(trio.current_time())
        slo = slo_of(self.objectives.slos if self.objectives else {}, name)
        return ApplicationState(
            name,
            slo.throughput_bytes_per_s,
            slo.latency_s,
            queued[name],
            window.p95_s,
            window.bytes_per_s,
            meter.requests,
            meter.bytes,
            meter.windows,
            meter.kept,
        )
