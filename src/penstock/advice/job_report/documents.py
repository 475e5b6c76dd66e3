# SPDX-License-Identifier: MIT
"""The numbers and the words of a report: what a job did, and who held it up.

Other policies are simulated on the job and on all jobs that shared its storage
(`simulation`). Only operators see those jobs, so only they get this part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypedDict

import msgspec

from penstock.advice.job_report.simulation import instance_of_report
from penstock.errors import InputError, PenstockError
from penstock.live.control.past import DRY_RUN, OFF, missing_words
from penstock.live.wire.messages import (
    Delay,
    JobReport,
    PastJob,
    ReportedOperation,
)
from penstock.model import FORMAT
from penstock.policies import POLICIES, RECOMMENDED, get_policy
from penstock.sim import simulate
from penstock.units import (
    counted,
    format_bandwidth,
    format_instant,
    format_time,
    format_volume,
)

__all__ = [
    "ReportFormat",
    "last_shared_bandwidth",
    "only_policy",
    "ranked",
    "report_document",
    "report_sentences",
]

#: Jobs and policies that the words name.
_NAMED: Final = 3
_BETTER: Final = 0.01


class ReportFormat(TypedDict):
    """The report that ``penstock report --json`` writes."""

    penstock: Literal[1]
    provenance: dict[str, Any]
    job: PastJob
    operations: list[ReportedOperation]
    operation_count: int
    delays: list[Delay]
    policies: dict[str, float]
    note: str


def report_document(
    report: JobReport, provenance: Mapping[str, Any], bandwidth: float | None = None
) -> dict[str, Any]:
    """Return the document that ``penstock report --json`` writes."""
    policies, note = _other_policies(report, bandwidth)
    return {
        "penstock": FORMAT,
        "provenance": dict(provenance),
        "job": msgspec.to_builtins(report.job),
        "operations": msgspec.to_builtins(report.operations),
        "operation_count": report.operation_count,
        "delays": msgspec.to_builtins(report.delays),
        "policies": policies,
        "note": note,
    }


def _other_policies(
    report: JobReport, bandwidth: float | None
) -> tuple[dict[str, float], str]:
    """Return policy -> simulated yield of the job, and why there is none."""
    try:
        instance = instance_of_report(report, bandwidth)
    except InputError as error:
        return {}, str(error)
    policies = {name: get_policy(name) for name in POLICIES}
    # The job's own policy may be a plug-in or have parameters, or be unknown here.
    with suppress(PenstockError):
        policies.setdefault(report.job.policy, get_policy(report.job.policy))
    yields = {}
    for name, policy in policies.items():
        run = simulate(instance, policy, steady=False)
        yields[name] = float(run.yields[0])
    return yields, ""


def ranked(yields: Mapping[str, float]) -> list[str]:
    """Return the policies, best first; of equal ones the recommended one first."""
    return sorted(
        yields, key=lambda name: (-round(yields[name], 3), name != RECOMMENDED)
    )


def report_sentences(document: Mapping[str, Any]) -> list[str]:
    """Return a document of `report_document` in words."""
    job, operations = document["job"], document["operations"]
    left = "now" if job["left"] is None else format_instant(job["left"])
    sentences = [
        f"{job['job']} ran from {format_instant(job['joined'])} to {left} "
        f"on {counted(job['nodes'], 'node')}, {_control_words(job)}.",
        f"It moved {format_volume(job['moved'], last_shared_bandwidth(operations))} in "
        f"{counted(document['operation_count'], 'operation')}"
        f"{_rate_words(operations)}.",
        f"It lost {format_time(job['lost'])} to control: its yield is "
        f"{job['progress_yield']:.3f}.",
    ]
    sentences += missing_words(job.get("missing", ""))
    sentences += _limit_words(job)
    sentences += _delay_words(document["delays"])
    return sentences + _policy_words(document)


def last_shared_bandwidth(operations: Sequence[Mapping[str, Any]]) -> float:
    """Return the bandwidth that was shared last, in whose units amounts are printed."""
    return next((each["shared"] for each in operations[::-1] if each["shared"]), 0.0)


def only_policy(job: Mapping[str, Any]) -> str:
    """Return the policy of a job; "" if it saw several."""
    return "" if len(job["policies"]) > 1 else str(job["policy"])


def _control_words(job: Mapping[str, Any]) -> str:
    """Return under which policy a job ran, or how long under each."""
    if policy := only_policy(job):
        return _span_words(policy)
    return ", then ".join(
        f"{_span_words(span['policy'])} {_length_words(span)}"
        for span in job["policies"]
    )


def _span_words(policy: str) -> str:
    other = {DRY_RUN: "in a dry run", OFF: "without control"}
    return other.get(policy, f"under {policy}")


def _length_words(span: Mapping[str, Any]) -> str:
    if span["end"] is None:
        return f"since {format_instant(span['begin'])}"
    return f"for {format_time(span['end'] - span['begin'])}"


def _rate_words(operations: Sequence[Mapping[str, Any]]) -> str:
    length_s = sum(each["end"] - each["begin"] for each in operations)
    if not length_s:
        return ""
    moved_bytes = sum(each["moved"] for each in operations)
    rate = format_bandwidth(moved_bytes / length_s, last_shared_bandwidth(operations))
    return f", which took {format_time(length_s)} ({rate})"


def _limit_words(job: Mapping[str, Any]) -> list[str]:
    limit = job.get("limit")
    if limit is None:
        return []
    return [
        f"An operator had limited it to {format_bandwidth(limit)}. What the limit took "
        "does not count as lost time, and its yield is relative to the limit."
    ]


def _delay_words(delays: Sequence[Mapping[str, Any]]) -> list[str]:
    named = [
        f"{each['job'] or 'jobs of other users'} ({format_time(each['lost'])})"
        for each in delays[:_NAMED]
        if each["lost"] > 0.0
    ]
    return [f"It waited for {', '.join(named)}."] if named else []


def _policy_words(document: Mapping[str, Any]) -> list[str]:
    yields = document["policies"]
    if not yields:
        return [f"Other policies were not simulated: {document['note']}."]
    policy = only_policy(document["job"])
    archived_yield = document["job"]["progress_yield"]
    present = yields.get(policy, archived_yield)
    better = [name for name in ranked(yields) if yields[name] > present + _BETTER]
    if not better:
        return ["No other policy would have given it more."]
    listed = ", ".join(f"{n} ({yields[n]:.3f})" for n in better[:_NAMED])
    if policy in yields:
        return [f"Simulated, its yield is {present:.3f}; better for it: {listed}."]
    return [f"Its yield was {present:.3f}; simulated, better for it: {listed}."]
