# SPDX-License-Identifier: MIT
"""The report of a past job: what it did, who held it up, what others would have given.

Other policies are simulated on the job and on all jobs that shared its storage
(`penstock.advice.past`). Only operators see those jobs, so only they get this part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import msgspec

from penstock.advice.past import instance_of_runs
from penstock.errors import InputError
from penstock.experiments.output.html import document, html_table
from penstock.experiments.output.plots import svg_text, timeline
from penstock.live.wire.messages import JobReport, RunWithOperations
from penstock.model import FORMAT, Instance
from penstock.policies import POLICIES, get_policy
from penstock.sim import simulate
from penstock.units import (
    counted,
    format_bandwidth,
    format_instant,
    format_time,
    format_volume,
)

__all__ = ["report_document", "report_html", "report_sentences"]

#: Jobs and policies that the words name.
_NAMED: Final = 3
_BETTER: Final = 0.01


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
        instance = _instance(report, bandwidth)
    except InputError as error:
        return {}, str(error)
    yields = {}
    for name in POLICIES:
        run = simulate(instance, get_policy(name), steady=False)
        yields[name] = float(run.yields[0])
    return yields, ""


def _instance(report: JobReport, bandwidth: float | None) -> Instance:
    """Return the job, which is the first application, and all jobs beside it."""
    if report.note:
        raise InputError(report.note)
    own = RunWithOperations(report.job, report.operations)
    return instance_of_runs([own, *report.others], bandwidth)


def report_sentences(advice: Mapping[str, Any]) -> list[str]:
    """Return a document of `report_document` in words."""
    job, operations = advice["job"], advice["operations"]
    left = "now" if job["left"] is None else format_instant(job["left"])
    sentences = [
        f"{job['job']} ran from {format_instant(job['joined'])} to {left} "
        f"on {counted(job['nodes'], 'node')}, under {job['policy']}.",
        f"It moved {format_volume(job['moved'])} in "
        f"{counted(advice['operation_count'], 'operation')}{_rate_words(operations)}.",
        f"It lost {format_time(job['lost'])} to control: its yield is "
        f"{job['progress_yield']:.3f}.",
    ]
    sentences += _delay_words(advice["delays"])
    return sentences + _policy_words(advice)


def _rate_words(operations: Sequence[Mapping[str, Any]]) -> str:
    length_s = sum(each["end"] - each["begin"] for each in operations)
    if not length_s:
        return ""
    moved_bytes = sum(each["moved"] for each in operations)
    rate = format_bandwidth(moved_bytes / length_s)
    return f", which took {format_time(length_s)} ({rate})"


def _delay_words(delays: Sequence[Mapping[str, Any]]) -> list[str]:
    named = [
        f"{each['job'] or 'jobs of other users'} ({format_time(each['lost'])})"
        for each in delays[:_NAMED]
        if each["lost"] > 0.0
    ]
    return [f"It waited for {', '.join(named)}."] if named else []


def _policy_words(advice: Mapping[str, Any]) -> list[str]:
    yields = advice["policies"]
    if not yields:
        return [f"Other policies were not simulated: {advice['note']}."]
    policy = advice["job"]["policy"]
    lived = yields.get(policy, advice["job"]["progress_yield"])
    better = sorted(
        (name for name in yields if yields[name] > lived + _BETTER),
        key=lambda name: -yields[name],
    )
    if not better:
        return [f"No other policy would have given it more than {policy}."]
    listed = ", ".join(f"{n} ({yields[n]:.3f})" for n in better[:_NAMED])
    return [f"Simulated, its yield is {lived:.3f}; better for it: {listed}."]


def report_html(
    advice: Mapping[str, Any], report: JobReport, bandwidth: float | None = None
) -> str:
    """Return the page of a report; it needs no other file."""
    job = advice["job"]
    facts = advice["provenance"]
    parts = [
        f"<h1>Report on {escape(job['job'])}</h1>",
        "".join(f"<p>{escape(sentence)}</p>" for sentence in report_sentences(advice)),
        _drawing(advice, report, bandwidth),
        _policy_table(advice["policies"]),
        _operation_table(advice["operations"]),
        f'<p class="small">penstock {escape(facts["version"])}: '
        f"<code>{escape(facts['command'])}</code></p>",
    ]
    return document(f"Report on {job['job']}", "".join(parts))


def _drawing(
    advice: Mapping[str, Any], report: JobReport, bandwidth: float | None
) -> str:
    """Draw the shares of all jobs under the policy of the job, and under its best."""
    yields = advice["policies"]
    if not yields:
        return ""
    best = max(yields, key=lambda name: yields[name])
    labels = dict.fromkeys((advice["job"]["policy"], best))
    instance = _instance(report, bandwidth)
    runs = [
        simulate(instance, get_policy(label), steady=False, record=True)
        for label in labels
    ]
    return (
        "<h2>Shares of the bandwidth, simulated</h2>"
        f"<figure>{svg_text(timeline(runs))}</figure>"
    )


def _policy_table(yields: Mapping[str, float]) -> str:
    if not yields:
        return ""
    rows = [("policy", "yield of the job")]
    rows += [
        (name, f"{yields[name]:.3f}")
        for name in sorted(yields, key=lambda name: -yields[name])
    ]
    return f"<h2>Other policies</h2>{html_table(rows)}"


def _operation_table(operations: Sequence[Mapping[str, Any]]) -> str:
    rows = [("begin", "took", "moved", "rate", "lost", "policy")]
    rows += map(_operation_row, operations)
    return f"<h2>Operations</h2>{html_table(rows)}"


def _operation_row(
    operation: Mapping[str, Any],
) -> tuple[str, str, str, str, str, str]:
    length_s = operation["end"] - operation["begin"]
    rate = operation["moved"] / length_s if length_s else 0.0
    return (
        format_instant(operation["begin"]),
        format_time(length_s),
        format_volume(operation["moved"]),
        format_bandwidth(rate),
        format_time(operation["lost"]),
        operation["policy"],
    )
