# SPDX-License-Identifier: MIT
"""The central part of all mounts: reports in, credit out.

Mounts that name the same storage share it, and applications share the total of all
storages (`penstock.qos.credit.storages`).

Promises of an application must be the same at all mounts of a storage. If they are not,
the promise that most mounts name holds; among equal numbers, the present one. A mount
that names another promise is told so in its credit.

Every run of a mount starts at zero; messages of earlier runs are ignored.

Pure: time (s) is passed in. A mount that has been silent for a lease is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from penstock.live.wire.messages import MountCredit, MountReport
from penstock.qos import ApplicationUse
from penstock.qos.credit.allocator import LEASE_S
from penstock.qos.credit.storages import StorageCredits
from penstock.units import format_bandwidth

__all__ = ["MountCredits"]


@dataclass(slots=True)
class _Member:
    """A mount that sends reports."""

    report: MountReport
    reported_s: float
    elsewhere_before: dict[str, float]
    """Service on other storages before it joined."""


@dataclass(slots=True)
class _SharedStorage:
    """The mounts of one storage."""

    members: dict[str, _Member] = field(default_factory=dict)
    promises: dict[str, float] = field(default_factory=dict)
    """Application -> the promise that holds."""


class MountCredits:
    """Decides the credit of all mounts of all storages.

    Parameters
    ----------
    run
        Name of this run of the controller, unlike those of other runs.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._number = 0
        self._storages: dict[str, _SharedStorage] = {}
        self._credits = StorageCredits()

    def receive(self, mount: str, report: MountReport, now: float) -> list[str]:
        """Record a report; return warnings for the log of the controller."""
        storage = self._storages.setdefault(report.storage, _SharedStorage())
        member = storage.members.get(mount)
        is_same = member is not None and member.report.promises == report.promises
        if member is None or member.report.run != report.run:
            self._credits.forget(report.storage, mount)
            before = self._credits.served_elsewhere(report.storage)
            storage.members[mount] = _Member(report, now, before)
        elif report.number <= member.report.number:
            return []
        else:
            member.report, member.reported_s = report, now
        if not is_same:
            storage.promises = _agreed_promises(storage)
        uses = {
            name: ApplicationUse(
                u.sent_bytes, u.done_bytes, u.busy_s, u.blocked, u.slack, u.present_s
            )
            for name, u in report.uses.items()
            if name in storage.promises
        }
        self._credits.report(report.storage, mount, storage.promises, uses, now)
        return [
            f"mount {mount!r}: {conflict}"
            for conflict in _conflicts(report, storage.promises)
        ]

    def decide(self, now: float) -> list[tuple[str, MountCredit]]:
        """Return the credit to send to each mount."""
        self._number += 1
        answers = []
        for name, storage in list(self._storages.items()):
            self._forget_silent(name, storage, now)
            if not storage.members and len(self._storages) > 1:
                # Keep what was served: others count from totals that only grow.
                continue
            elsewhere = self._credits.served_elsewhere(name)
            for mount, credit in self._credits.decide(name, now).items():
                member = storage.members[mount]
                answer = MountCredit(
                    run=member.report.run,
                    controller=self._run,
                    number=self._number,
                    rates=dict(credit.rates),
                    parts=dict(credit.parts),
                    slack=credit.slack,
                    lease_s=LEASE_S,
                    elsewhere=_since(elsewhere, member.elsewhere_before),
                    conflicts=_conflicts(member.report, storage.promises),
                    report=member.report.number,
                )
                answers.append((mount, answer))
        return answers

    def _forget_silent(self, name: str, storage: _SharedStorage, now: float) -> None:
        """Forget the mounts that have been silent for a lease."""
        silent = [
            mount
            for mount, member in storage.members.items()
            if now - member.reported_s > LEASE_S
        ]
        for mount in silent:
            del storage.members[mount]
            self._credits.forget(name, mount)
        if silent:
            storage.promises = _agreed_promises(storage)


def _since(
    totals: Mapping[str, float], before: Mapping[str, float]
) -> dict[str, float]:
    """Return the growth of totals, where there is some."""
    grown = {name: total - before.get(name, 0.0) for name, total in totals.items()}
    return {name: growth for name, growth in grown.items() if growth > 0.0}


def _agreed_promises(storage: _SharedStorage) -> dict[str, float]:
    """Return the promise of each application that most mounts name."""
    named: dict[str, Counter[float]] = {}
    for member in storage.members.values():
        for name, promise in member.report.promises.items():
            if 0.0 < promise < inf:
                named.setdefault(name, Counter())[promise] += 1
    agreed = {}
    for name, votes in named.items():
        present = storage.promises.get(name)
        most = max(votes.values())
        best = [promise for promise, count in votes.items() if count == most]
        agreed[name] = present if present in best and present else best[0]
    return agreed


def _conflicts(report: MountReport, agreed: Mapping[str, float]) -> list[str]:
    """Return in words which promises of a mount do not hold."""
    return [
        f"{name} is promised {format_bandwidth(promise)} here and "
        f"{format_bandwidth(agreed[name])} at other mounts of {report.storage}, which "
        "holds between mounts (give it the same promise at all of them)"
        for name, promise in report.promises.items()
        if name in agreed and promise != agreed[name]
    ]
