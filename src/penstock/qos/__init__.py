# SPDX-License-Identifier: MIT
"""Which request goes next, and how many at once: throughput and latency together.

A scheduler is a state machine: it is told what arrives and what completes, and says
what may go (`Scheduler`). Time is passed in. The simulator and the mount drive the same
object.

A scheduler is one file with a function ``make(slos, now, ...)``, and a row in
`SCHEDULERS`. One outside of penstock needs no row: name it by its dotted name, or
install it under the entry-point group ``penstock.schedulers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.qos.elsewhere import (
    Layout,
    RemoteService,
    ReportedService,
    ServiceReporter,
)
from penstock.qos.request import (
    KINDS,
    LEAST_COST,
    Kind,
    QosScheduler,
    Request,
    Scheduler,
)
from penstock.qos.slo import Slo, slo_of, unmet
from penstock.registry import Parameter, Registry, TableRow, labelled, parameter_values

__all__ = [
    "KINDS",
    "LEAST_COST",
    "SCHEDULERS",
    "SCHEDULER_REGISTRY",
    "Kind",
    "Layout",
    "Parameter",
    "QosScheduler",
    "RemoteService",
    "ReportedService",
    "Request",
    "Scheduler",
    "SchedulerSpec",
    "ServiceReporter",
    "Slo",
    "TableRow",
    "get_scheduler",
    "slo_of",
    "unmet",
]

SCHEDULERS: Final[dict[str, TableRow]] = {
    "fifo": TableRow("fifo", "Send requests as they come.", "baseline"),
    "sfq": TableRow(
        "sfq",
        "Share throughput in proportion to the SLOs, a fixed number at once.",
        "papers/5 §2 (SFQ(D))",
    ),
    "edf": TableRow(
        "edf",
        "Send the earliest deadline first, a fixed number at once.",
        "papers/5 §3.2",
    ),
    "two-level": TableRow(
        "two_level",
        "Share throughput, then the earliest deadline first, as deep as latency bears.",
        "papers/5 §3",
    ),
}

SCHEDULER_REGISTRY: Final = Registry(
    kind="scheduler",
    plural="schedulers",
    decides="which request goes next, and how many at once",
    package=__name__,
    table=SCHEDULERS,
    function="make",
    arguments=("slos", "now"),
)


@dataclass(frozen=True)
class SchedulerSpec:
    """A scheduler by name, its parameters set: makes as many as there are servers."""

    name: str
    label: str
    """`name` with the parameters that are not at their default."""
    function: Callable[..., QosScheduler] = field(repr=False)
    settings: Mapping[str, float] = field(repr=False)

    def make(self, slos: Mapping[str, Slo], now: float) -> QosScheduler:
        """Return a scheduler that begins at `now` (s)."""
        return self.function(slos, now, **self.settings)


def get_scheduler(text: str) -> SchedulerSpec:
    """Return the scheduler for ``name`` or ``name:key=value,key=value``."""
    found = SCHEDULER_REGISTRY.find(text)
    values = parameter_values(f"scheduler {found.name}", found.declared, found.given)
    label = labelled(found.name, found.declared, values)
    return SchedulerSpec(found.name, label, found.function, values)
