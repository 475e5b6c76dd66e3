# SPDX-License-Identifier: MIT
"""What advice rests on: instances, and how uncertain they are.

Instances that a user wrote are taken as they are. Logs tell more or less about the
phases of a job. Where the inner structure of a log is not known, an ensemble of
instances agrees with it. The bandwidth of the storage is uncertain unless it was given,
or is the one that live control shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from penstock.advice.importing.importer import Imported
from penstock.advice.logs.record import LoggedJob
from penstock.advice.scenarios import Uncertainty
from penstock.errors import PenstockError
from penstock.live.control.past import DRY_RUN
from penstock.model import Instance
from penstock.policies import get_policy
from penstock.units import counted, format_bandwidth

__all__ = ["Evidence", "PresentPolicy", "of_instances", "of_logs"]

#: Detail of a log -> by which part the lengths of its phases are uncertain.
_BY_DETAIL: Final = {
    "dxt": 0.05,
    "history": 0.05,
    "heatmap": 0.1,
    "counters": 0.2,
    "accounting": 0.3,
}
#: Details that do not tell when the I/O inside a burst happened.
_COARSE: Final = ("counters", "accounting")
#: Uncertainty of a bandwidth that is only the highest rate in the logs.
_ESTIMATED: Final = 0.3
#: Part of the scenarios that are members of an ensemble; the others are changed copies.
_MEMBERS: Final = 0.5


#: How to name another policy in use.
_OTHER: Final = "--now POLICY names another"


class PresentPolicy(NamedTuple):
    """The policy in use, and how it is known."""

    label: str = "fair-share"
    source: str = f"assumed: storage without control shares like this; {_OTHER}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Instances that may have happened, the first one most likely."""

    instances: tuple[Instance, ...]
    uncertainty: Uncertainty
    operations: int
    """Operations that were observed."""
    notes: tuple[str, ...]
    """What is assumed."""
    present: PresentPolicy


def of_instances(instances: Sequence[Instance], bandwidth: float | None) -> Evidence:
    """Return the evidence of instances; `bandwidth` replaces theirs (bytes/s)."""
    origin = "that of the instance"
    if bandwidth is not None:
        origin = "given"
        instances = [
            replace(one, platform=replace(one.platform, bandwidth=bandwidth))
            for one in instances
        ]
    return Evidence(
        tuple(instances),
        Uncertainty(),
        sum(_operations(one) for one in instances),
        (_bandwidth_sentence(instances[0], origin),),
        PresentPolicy(),
    )


def of_logs(imported: Imported, scenarios: int, seed: int) -> Evidence:
    """Return the evidence of imported logs, with an ensemble if they are coarse."""
    details = {job.detail for job in imported.jobs}
    members = [imported.instance]
    if details & set(_COARSE):
        members = imported.ensemble(max(round(scenarios * _MEMBERS), 1), seed)
    is_shared = any(record.shared_rates for record in imported.records)
    is_known = imported.is_bandwidth_known or is_shared
    given: tuple[str, ...] = ()
    if imported.is_bandwidth_known:
        given = (_bandwidth_sentence(imported.instance, "given"),)
    return Evidence(
        tuple(members),
        Uncertainty(
            max(_BY_DETAIL[detail] for detail in details),
            0.0 if is_known else _ESTIMATED,
        ),
        sum(job.operations for job in imported.jobs),
        (
            f"{counted(len(imported.jobs), 'job')} "
            f"{'was' if len(imported.jobs) == 1 else 'were'} imported with the detail "
            f"{', '.join(sorted(details))}.",
            *given,
            *(f"{note[0].upper()}{note[1:]}." for note in imported.notes),
        ),
        _present(imported.records),
    )


def _bandwidth_sentence(instance: Instance, origin: str) -> str:
    rate = format_bandwidth(instance.platform.bandwidth)
    return f"The storage has a bandwidth of {rate} ({origin})."


def _present(records: Sequence[LoggedJob]) -> PresentPolicy:
    """Return the policy in use: that of the last past job of penstock, if it tells."""
    policy = max(records, key=lambda record: record.start_s + record.run_s).policy
    if not policy:
        return PresentPolicy()
    last = "the last job of the archive"
    if policy == DRY_RUN:
        source = f"{last} ran in a dry run, without control; {_OTHER}"
        return PresentPolicy(source=source)
    try:
        return PresentPolicy(get_policy(policy).label, f"that of {last}; {_OTHER}")
    except PenstockError:
        source = f"{last} ran under {policy}, which is not known here; {_OTHER}"
        return PresentPolicy(source=source)


def _operations(instance: Instance) -> int:
    return sum(len(application.volume) for application in instance.applications)
