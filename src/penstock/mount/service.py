# SPDX-License-Identifier: MIT
"""The control plane of one mount: scheduler, limiter, gate, meters and peers together.

A scheduler of `penstock.qos` orders requests by application and passes them to the
limiter. Without ``--slo`` requests go first come, first served.
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
from penstock.mount.peers import Peers
from penstock.mount.rules import FileOpener, application_of
from penstock.mount.slo_settings import OTHER, SloSettings, slo_settings_from
from penstock.qos import get_scheduler, slo_of, unmet

__all__ = ["MountService", "why_unmet"]

#: The scheduler of a mount without SLOs.
_DEFAULT_SCHEDULER: Final = "fifo:depth=0"
#: Keys of the file of ``--slo`` that cannot change while mounted.
_FIXED: Final = ("scheduler", "exchange")


def why_unmet(slo_settings: SloSettings | None, limits: Limits) -> str:
    """Return why the SLOs exceed the limit; empty if they do not."""
    if slo_settings is None or limits.total == inf:
        return ""
    problem = unmet(slo_settings.slos, limits.total)
    return "" if problem is None else str(problem)


class MountService:
    """Schedules, limits and measures the requests of one mount."""

    def __init__(
        self, limits: Limits, slo_settings: SloSettings | None, now: float
    ) -> None:
        self.limiter = Limiter(limits, now)
        self.slo_settings = slo_settings
        if slo_settings is None:
            self.scheduler = get_scheduler(_DEFAULT_SCHEDULER).make({}, now)
        else:
            self.scheduler = slo_settings.scheduler.make(slo_settings.slos, now)
        self._set_layout()
        self.gate = Gate(Cascade(self.scheduler, self.limiter))
        self.gate.meters = self._new_meters(now)

    def open_peers(self) -> Peers | None:
        """Open the socket for reports of other mounts; None: no exchange."""
        exchange = self.slo_settings.exchange if self.slo_settings else None
        if exchange is None:
            return None
        return Peers(exchange, self.scheduler, self.gate.dispatch)

    async def classify(self, opener: FileOpener) -> str:
        """Return the application that owns an opened file.

        Rules about jobs read the environment of the process, which takes a lock that
        the process may hold while it waits for this mount. So they run in a thread.
        """
        settings = self.slo_settings
        if settings is None:
            return OTHER
        if not settings.needs_jobs:
            return application_of(opener, settings.rules, settings.default)
        application: str = await trio.to_thread.run_sync(
            application_of,
            opener,
            settings.rules,
            settings.default,
            abandon_on_cancel=True,
        )
        return application

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits."""
        self.limiter.set_limits(limits, trio.current_time())
        self.gate.dispatch()

    def set_slo(self, document: dict[str, object]) -> SloSettings:
        """Replace SLOs, rules and default application; return the new settings."""
        if self.slo_settings is None:
            raise InputError("is mounted without --slo", remedy="mount it with --slo")
        for key in _FIXED:
            if document.get(key) != self.slo_settings.document.get(key):
                raise InputError(
                    "cannot be changed while mounted",
                    where=key,
                    remedy="unmount, and mount again with the new file",
                )
        now = trio.current_time()
        self.slo_settings = slo_settings_from(document)
        self.scheduler.set_slos(self.slo_settings.slos, now)
        self._set_layout()
        self.gate.meters = self._new_meters(now)
        self.gate.dispatch()
        return self.slo_settings

    def scheduler_status(self) -> SchedulerStatus | None:
        """Return the scheduler and the service of applications; None without SLOs."""
        settings = self.slo_settings
        if settings is None:
            return None
        queued, depth = self.gate.waiting_by_application(), self.scheduler.depth
        return SchedulerStatus(
            settings.scheduler.label,
            None if depth == inf else depth,
            self.scheduler.outstanding,
            why_unmet(settings, self.limiter.limits),
            [self._application_state(name, queued) for name in self.gate.meters],
            dict(settings.document),
        )

    def _set_layout(self) -> None:
        """Infer service at other mounts from the layout, if there are no reports."""
        if self.slo_settings is not None and self.slo_settings.exchange is None:
            self.scheduler.set_layout(self.slo_settings.layout)

    def _new_meters(self, now: float) -> dict[str, Meter]:
        """Return a meter per application; existing meters keep their counts."""
        if self.slo_settings is None:
            return {}
        slos, present = self.slo_settings.slos, self.gate.meters
        meters = {}
        for name in {**slos, self.slo_settings.default: None}:
            meters[name] = present.get(name) or Meter(0.0, now)
            meters[name].latency_s = slo_of(slos, name).latency_s
        return meters

    def _application_state(self, name: str, queued: Counter[str]) -> ApplicationState:
        meter = self.gate.meters[name]
        window = meter.last_window(trio.current_time())
        slo = slo_of(self.slo_settings.slos if self.slo_settings else {}, name)
        return ApplicationState(
            name=name,
            throughput_bytes_per_s=slo.throughput_bytes_per_s,
            latency_s=slo.latency_s,
            queued=queued[name],
            p95_s=window.p95_s,
            bytes_per_s=window.bytes_per_s,
            requests=meter.requests,
            moved_bytes=meter.moved_bytes,
            windows=meter.windows,
            kept_windows=meter.kept_windows,
        )
