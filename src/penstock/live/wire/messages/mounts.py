# SPDX-License-Identifier: MIT
"""Messages between mounts that share a storage and the controller."""

from __future__ import annotations

from math import inf

import msgspec

from penstock.live.wire.messages.message import (
    Amount,
    Count,
    Counted,
    Message,
    Name,
    Text,
)

__all__ = ["MountCredit", "MountReport", "MountUse"]


class MountUse(msgspec.Struct, frozen=True, array_like=True):
    """What an application has used of a mount since the mount started.

    The fields are those of `penstock.qos.ApplicationUse`.
    """

    sent_bytes: Counted
    done_bytes: Counted
    busy_s: Counted
    blocked: Count
    slack: Amount = inf
    present_s: Counted = 0.0


class MountReport(Message):
    """Report what the applications of a mount have used: totals, not increments."""

    storage: Name
    """Mounts that name the same storage share it."""
    run: Name
    """Random name of the run of the mount; its totals start at 0."""
    number: Count
    """Number of the report in the run; older reports are ignored."""
    promises: dict[Name, Amount]
    """Application -> promised throughput."""
    uses: dict[Name, MountUse]


class MountCredit(Message):
    """Answer the reports of a mount: rates for applications ahead of their share."""

    run: Name
    """The run of the mount that this is for."""
    controller: Name
    """Random name of the run of the controller."""
    number: Count
    """Number of the decision in the run of the controller."""
    rates: dict[str, Amount]
    """Application -> most that it may draw here; not named: no limit."""
    lease_s: Amount
    """How long the rates hold, from the sending of that report on."""
    elsewhere: dict[str, Amount]
    """Application -> bytes served by mounts of other storages since this one joined."""
    parts: dict[str, Amount] = msgspec.field(default_factory=dict)
    """Application -> part of its rate on this storage that this mount has."""
    slack: Amount = inf
    """Least slack factor of all applications at other mounts of this storage."""
    conflicts: list[Text] = msgspec.field(default_factory=list)
    """Promises of this mount that contradict those of other mounts, in words."""
    report: Count = 0
    """Number of the last report of the mount, which this answers."""
