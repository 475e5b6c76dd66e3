# SPDX-License-Identifier: MIT
"""Request schedulers: which request is sent next, and how many at once.

A scheduler is a pure state machine (`Scheduler`): the driver reports arrivals and
completions with their times and asks which requests to send. The simulator and the
mount drive the same code: kernels (`penstock.kernels`) on a state in columns.

A scheduler is one file with a function ``make(slos, now, ...)`` and a row in
`SCHEDULERS`. A scheduler outside of penstock needs no row: name it by its dotted name,
or install it under the entry-point group ``penstock.schedulers``.

Files: `interface` (requests, SLOs, guarantees), `state` (columns), `scheduler` (runs
kernels), the schedulers `fifo`, `sfq`, `edf` and `two_level`, `metadata` (orders the
other requests of a mount), `parts` (of which schedulers are made) and `credit` (several
client nodes, caps).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.qos.credit.allocator import CreditAllocator
from penstock.qos.interface import (
    KINDS,
    MIN_COST_BYTES,
    ApplicationUse,
    Credit,
    CreditScheduler,
    Guarantees,
    Kind,
    QosScheduler,
    Request,
    Scheduler,
    Slo,
    percentile,
    slo_of,
    unmet,
)
from penstock.qos.parts.remote_service import ReportedService, ServiceReporter
from penstock.registry import BoundPlugin, Parameter, Registry, TableRow

__all__ = [
    "KINDS",
    "MIN_COST_BYTES",
    "SCHEDULERS",
    "SCHEDULER_REGISTRY",
    "ApplicationUse",
    "Credit",
    "CreditAllocator",
    "CreditScheduler",
    "Guarantees",
    "Kind",
    "Parameter",
    "QosScheduler",
    "ReportedService",
    "Request",
    "Scheduler",
    "SchedulerSpec",
    "ServiceReporter",
    "Slo",
    "TableRow",
    "get_scheduler",
    "percentile",
    "slo_of",
    "unmet",
]

SCHEDULERS: Final[dict[str, TableRow]] = {
    "fifo": TableRow("fifo", "Send requests in order of arrival.", "baseline"),
    "sfq": TableRow(
        "sfq",
        "Share throughput in proportion to the SLOs, at a fixed depth (SFQ(D), DSFQ).",
        "two-level scheduling, section 2",
    ),
    "edf": TableRow(
        "edf",
        "Send the earliest deadline first, at a fixed depth (EDF).",
        "two-level scheduling, section 3.2",
    ),
    "two-level": TableRow(
        "two_level",
        "Share throughput by start tags, then send by deadline; feedback sets depth.",
        "two-level scheduling, section 3",
    ),
}

SCHEDULER_REGISTRY: Final = Registry(
    kind="scheduler",
    plural="schedulers",
    decides="which request is sent next, and how many at once",
    package=__name__,
    table=SCHEDULERS,
    function="make",
    arguments=("slos", "now"),
)


@dataclass(frozen=True)
class SchedulerSpec(BoundPlugin):
    """A scheduler with its parameters set; makes one scheduler per server."""

    KIND = "scheduler"

    def make(self, slos: Mapping[str, Slo], now: float) -> QosScheduler:
        """Return a new scheduler that starts at `now` (s).

        Raises `PolicyError` if the scheduler's own code fails.
        """
        return self.call(slos, now)  # type: ignore[no-any-return]


def get_scheduler(text: str) -> SchedulerSpec:
    """Return the scheduler for ``name`` or ``name:key=value,key=value``."""
    return SchedulerSpec.bind(SCHEDULER_REGISTRY.find(text))
