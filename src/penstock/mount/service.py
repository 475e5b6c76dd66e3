# SPDX-License-Identifier: MIT
"""The control plane of one mount: scheduler, limits, rules and credit together.

The data path (`penstock.mount.data_path`) calls a scheduler of `penstock.qos`, which
orders reads, writes and syncs by application and passes them to the limits, and
`penstock.qos.metadata`, which orders all other requests. Without ``--slo`` there is
no scheduler, and requests go first come, first served. The scheduler also keeps the
caps of applications and, with ``exchange``, the credit that the controller of all
mounts gives.
"""

from __future__ import annotations

import os
import time
from math import inf
from typing import Any, Final

from penstock.errors import InputError
from penstock.live.wire.messages import MountCredit
from penstock.mount.callbacks import ErrorLog, SchedulerCallbacks, scheduler_pointers
from penstock.mount.control import ApplicationState, SchedulerStatus
from penstock.mount.data_path import MAX_APPLICATIONS, DataPath
from penstock.mount.exchange import CreditLink, MountState
from penstock.mount.job_lookups import JobLookups
from penstock.mount.limits import Limits
from penstock.mount.rules import FileOpener, application_of
from penstock.mount.slo_settings import SloSettings, slo_settings_from
from penstock.qos import Credit, CreditScheduler, QosScheduler, slo_of, unmet

__all__ = ["MountService", "compile_scheduler", "why_unmet"]

#: Keys of the file of ``--slo`` that cannot change while mounted.
_FIXED: Final = ("scheduler", "exchange", "metadata_depth")


def why_unmet(slo_settings: SloSettings | None, limits: Limits) -> str:
    """Return why the SLOs exceed the limit; empty if they do not."""
    if slo_settings is None or limits.total == inf:
        return ""
    problem = unmet(slo_settings.slos, limits.total)
    return "" if problem is None else str(problem)


def compile_scheduler(slo_settings: SloSettings) -> None:
    """Compile the schedulers of a mount, or load them from the cache."""
    from penstock.qos import metadata  # noqa: PLC0415 - NumPy
    from penstock.qos.scheduler import KernelScheduler  # noqa: PLC0415 - NumPy

    scheduler = slo_settings.scheduler.make(slo_settings.slos, 0.0)
    if isinstance(scheduler, KernelScheduler):
        scheduler.pointers()
    metadata.make({}, 0.0, slo_settings.metadata_depth).pointers()


class MountService:
    """Schedules, limits and measures the requests of one mount."""

    def __init__(
        self, data_path: DataPath, limits: Limits, slo_settings: SloSettings | None
    ) -> None:
        self.limits = limits
        self._data_path = data_path
        data_path.set_limits(limits)
        self._control = None
        if slo_settings is not None:
            self._control = _ScheduledApplications(data_path, slo_settings)

    def open_link(self) -> CreditLink | None:
        """Open the link to the controller of all mounts; None: no exchange."""
        return None if self._control is None else self._control.open_link()

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits."""
        self.limits = limits
        self._data_path.set_limits(limits)

    def set_slo(self, document: dict[str, object]) -> None:
        """Replace SLOs, rules and default application."""
        if self._control is None:
            raise InputError("is mounted without --slo", remedy="mount it with --slo")
        self._control.set_slo(document)

    def scheduler_status(self) -> SchedulerStatus | None:
        """Return the scheduler and the service of applications; None without SLOs."""
        return None if self._control is None else self._control.status(self.limits)


class _ScheduledApplications:
    """The scheduler of a mount with SLOs, its applications and their rules.

    Applications have an index in the data path, which stays the same for ever.
    """

    def __init__(self, data_path: DataPath, settings: SloSettings) -> None:
        from penstock.qos import metadata  # noqa: PLC0415 - NumPy
        from penstock.qos.credit.front import with_credit  # noqa: PLC0415 - NumPy

        self.settings = settings
        self._data_path = data_path
        self._errors = ErrorLog("a rule of the mount")
        self._job_lookups = JobLookups()
        now = time.monotonic()
        self._scheduler: QosScheduler = settings.scheduler.make(settings.slos, now)
        self._credit: CreditScheduler = with_credit(self._scheduler)
        self._link: CreditLink | None = None
        driver: Any = self._credit
        if not hasattr(driver, "pointers"):
            driver = SchedulerCallbacks(driver)
        self._driver = driver
        self._metadata = metadata.make({}, now, settings.metadata_depth)
        self._indices: dict[str, int] = {}
        self._set_layout(settings)
        self._credit.set_caps(settings.caps, now)
        self._set_applications(settings)
        data_path.set_schedulers(
            scheduler_pointers(driver),
            scheduler_pointers(self._metadata),
            (driver, self._metadata),
        )

    def open_link(self) -> CreditLink | None:
        """Open the link to the controller of all mounts; None: no exchange."""
        if self.settings.exchange is None:
            return None
        self._link = CreditLink(self.settings.exchange, self._mount_state, self._apply)
        return self._link

    def _mount_state(self) -> MountState:
        """Return what to report to the controller."""
        with self._data_path.locked():
            uses = self._credit.use(time.monotonic())
        slos = self.settings.slos
        promises = {
            name: slo_of(slos, name).throughput_bytes_per_s for name in {**slos, **uses}
        }
        return MountState(promises, uses)

    def _apply(self, credit: MountCredit) -> None:
        """Keep the rates until their lease ends; count service on other storages."""
        with self._data_path.locked():
            now = time.monotonic()
            granted = Credit(credit.rates, credit.parts, credit.slack)
            self._credit.set_credit(granted, credit.lease_s, now)
            if credit.elsewhere:
                self._scheduler.record_remote_service(
                    credit.controller, credit.elsewhere, now
                )
            self._data_path.dispatch()

    def set_slo(self, document: dict[str, object]) -> None:
        """Replace SLOs, rules and default application."""
        for key in _FIXED:
            if document.get(key) != self.settings.document.get(key):
                raise InputError(
                    "cannot be changed while mounted",
                    where=key,
                    remedy="unmount, and mount again with the new file",
                )
        settings = slo_settings_from(document, self.settings.backing)
        if len(self._indices.keys() | settings.slos.keys()) >= MAX_APPLICATIONS:
            raise InputError(
                f"more than {MAX_APPLICATIONS - 1} applications since it was mounted",
                where="applications",
                remedy="unmount, and mount again with the new file",
            )
        with self._data_path.locked():
            now = time.monotonic()
            self._scheduler.set_slos(settings.slos, now)
            self._set_layout(settings)
            self._credit.set_caps(settings.caps, now)
            self._data_path.dispatch()
        self._set_applications(settings)

    def status(self, limits: Limits) -> SchedulerStatus:
        """Return the scheduler and the service of applications."""
        settings = self.settings
        with self._data_path.locked():
            depth, outstanding = self._scheduler.depth, self._scheduler.outstanding
            metadata_outstanding = self._metadata.outstanding
        return SchedulerStatus(
            settings.scheduler.label,
            None if depth == inf else depth,
            outstanding,
            why_unmet(settings, limits),
            [self._application_state(settings, name) for name in _names(settings)],
            dict(settings.document),
            "" if self._link is None else self._link.words(),
            settings.metadata_depth,
            metadata_outstanding,
        )

    def _set_layout(self, settings: SloSettings) -> None:
        """Infer service at other mounts from the layout, if there are no reports."""
        if settings.exchange is None:
            self._scheduler.set_layout(settings.layout)

    def _set_applications(self, settings: SloSettings) -> None:
        """Tell the data path the applications, their bounds and the rules."""
        names = _names(settings)
        for name in names:
            self._indices[name] = self._driver.index_of(name)
            slo = slo_of(settings.slos, name)
            with self._data_path.locked():
                self._metadata.set_weight(
                    self._indices[name], slo.throughput_bytes_per_s
                )
            operations_per_s = settings.operations.get(name)
            self._data_path.measure(
                self._indices[name], slo.latency_s, operations_per_s
            )
        # Other threads look up applications: all have their index by now.
        self.settings = settings
        for name, index in self._indices.items():
            owner = name if name in names else settings.default
            self._data_path.replace(index, self._indices[owner])
        self._data_path.set_rules(
            self._classify,
            sorted({rule.path for rule in settings.rules if rule.path is not None}),
            by_process=settings.has_condition(
                *("job", "cgroup", "slurm_job", "group", "program")
            ),
            by_program=settings.has_condition("job", "program"),
        )

    def _classify(self, pid: int, uid: int, path: bytes) -> int:
        """Return the index of the application of a process that uses a file.

        The data path calls this in the thread of the request, so it must not wait for
        the storage, which may be this mount itself.
        """
        settings = self.settings
        with self._errors:
            opener = FileOpener(pid, uid, os.fsdecode(path), lookups=self._job_lookups)
            name = application_of(opener, settings.rules, settings.default)
            return self._indices[name]
        return self._indices[settings.default]

    def _application_state(self, settings: SloSettings, name: str) -> ApplicationState:
        service = self._data_path.service(self._indices[name])
        slo = slo_of(settings.slos, name)
        return ApplicationState(
            name=name,
            throughput_bytes_per_s=slo.throughput_bytes_per_s,
            latency_s=slo.latency_s,
            queued=service.queued,
            p95_s=service.p95_s,
            bytes_per_s=service.bytes_per_s,
            requests=service.requests,
            moved_bytes=service.moved_bytes,
            windows=service.windows,
            kept_windows=service.kept_windows,
            operations=service.operations,
            queued_operations=service.queued_operations,
            operations_per_s=settings.operations.get(name),
            cap_bytes_per_s=settings.caps.get(name),
        )


def _names(settings: SloSettings) -> list[str]:
    """Return the applications: those with an SLO, and the default."""
    return list({**settings.slos, settings.default: None})
