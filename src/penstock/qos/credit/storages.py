# SPDX-License-Identifier: MIT
"""Credit on several storages: shares of an application are shares of its total service.

Every storage has its own allocator (`penstock.qos.credit`). What an application is
served on one storage counts as a lead on all others, and the mounts of each storage are
told what the others have served, so that their schedulers count it too
(`penstock.qos.parts.remote_service`). Storages that serve the same applications
approach a common lead, so that an application is served evenly on all of them.

Totals count from the first report of a mount on, and only grow.

Pure: time (s) is passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from statistics import fmean

from penstock.qos.credit.allocator import CreditAllocator
from penstock.qos.interface import ApplicationUse, Credit

__all__ = ["StorageCredits"]


@dataclass(slots=True)
class _StorageAccount:
    """The allocator of a storage, and what the storage has served."""

    allocator: CreditAllocator = field(default_factory=CreditAllocator)
    sent_bytes: dict[str, dict[str, float]] = field(default_factory=dict)
    """Mount -> application -> the total in its last report."""
    served_bytes: dict[str, float] = field(default_factory=dict)
    """Application -> service by all mounts since their first reports."""


class StorageCredits:
    """Decides the credit of all mounts of all storages."""

    def __init__(self) -> None:
        self._storages: dict[str, _StorageAccount] = {}

    def report(
        self,
        storage: str,
        mount: str,
        weights: Mapping[str, float],
        uses: Mapping[str, ApplicationUse],
        now: float,
    ) -> None:
        """Record what the applications of a mount have used since it started."""
        account = self._storages.setdefault(storage, _StorageAccount())
        if mount in account.sent_bytes:
            for name, use in uses.items():
                before = account.sent_bytes[mount].get(name, 0.0)
                self._add_service(storage, name, use.sent_bytes - before)
        account.sent_bytes[mount] = {name: use.sent_bytes for name, use in uses.items()}
        account.allocator.report(mount, weights, uses, now)

    @property
    def storages(self) -> list[str]:
        """The storages that a mount has reported."""
        return list(self._storages)

    def forget(self, storage: str, mount: str) -> None:
        """Forget a mount that has ended; what it has served still counts."""
        if storage in self._storages:
            self._storages[storage].sent_bytes.pop(mount, None)
            self._storages[storage].allocator.forget(mount)

    def decide(self, storage: str, now: float) -> dict[str, Credit]:
        """Return the credit of each mount of a storage."""
        allocator = self._storages[storage].allocator
        return allocator.decide(now, self._mean_leads(allocator))

    def served_elsewhere(self, storage: str) -> dict[str, float]:
        """Return what all storages but one have served, by application."""
        total: dict[str, float] = {}
        for name, other in self._storages.items():
            if name != storage:
                for application, served_bytes in other.served_bytes.items():
                    total[application] = total.get(application, 0.0) + served_bytes
        return total

    def _mean_leads(self, allocator: CreditAllocator) -> dict[str, float]:
        """Return the mean leads of all storages that share the same applications."""
        weights = allocator.comparable_weights
        alike = [
            account.allocator
            for account in self._storages.values()
            if account.allocator.comparable_weights == weights
        ]
        return {
            name: fmean(each.lead_bytes(name) for each in alike) for name in weights
        }

    def _add_service(self, storage: str, application: str, new_bytes: float) -> None:
        if not 0.0 < new_bytes < inf:
            return
        for name, account in self._storages.items():
            if name == storage:
                served_bytes = account.served_bytes.get(application, 0.0)
                account.served_bytes[application] = served_bytes + new_bytes
            else:
                account.allocator.add_service(application, new_bytes)
