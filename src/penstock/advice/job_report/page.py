# SPDX-License-Identifier: MIT
"""The report of a past job as one HTML file without other files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from penstock.advice.job_report.documents import (
    last_shared_bandwidth,
    only_policy,
    ranked,
    report_sentences,
)
from penstock.advice.job_report.drawing import drawing
from penstock.advice.job_report.simulation import instance_of_report
from penstock.experiments.output.html import document as html_document
from penstock.experiments.output.html import html_table
from penstock.experiments.output.plots import svg_text
from penstock.live.wire.messages import JobReport
from penstock.policies import get_policy
from penstock.sim import simulate
from penstock.units import format_bandwidth, format_instant, format_time, format_volume

__all__ = ["report_page"]


def report_page(
    document: Mapping[str, Any], report: JobReport, bandwidth: float | None = None
) -> str:
    """Return the page of a report; it needs no other file."""
    job = document["job"]
    facts = document["provenance"]
    parts = [
        f"<h1>Report on {escape(job['job'])}</h1>",
        "".join(
            f"<p>{escape(sentence)}</p>" for sentence in report_sentences(document)
        ),
        _drawing(document, report, bandwidth),
        _policy_table(document["policies"]),
        _operation_table(document["operations"]),
        f'<p class="small">penstock {escape(facts["version"])}: '
        f"<code>{escape(facts['command'])}</code></p>",
    ]
    return html_document(f"Report on {job['job']}", "".join(parts))


def _drawing(
    document: Mapping[str, Any], report: JobReport, bandwidth: float | None
) -> str:
    """Draw what happened, and what the best other policy would have given."""
    own = only_policy(document["job"])
    others = [name for name in ranked(document["policies"]) if name != own]
    simulated = None
    if others:
        instance = instance_of_report(report, bandwidth)
        simulated = simulate(instance, get_policy(others[0]), steady=False, record=True)
    return (
        f"<h2>What happened</h2><figure>{svg_text(drawing(report, simulated))}</figure>"
    )


def _policy_table(yields: Mapping[str, float]) -> str:
    if not yields:
        return ""
    rows = [("policy", "yield of the job")]
    rows += [(name, f"{yields[name]:.3f}") for name in ranked(yields)]
    return f"<h2>Other policies</h2>{html_table(rows)}"


def _operation_table(operations: Sequence[Mapping[str, Any]]) -> str:
    rows = [("begin", "took", "moved", "rate", "lost", "policy")]
    shared = last_shared_bandwidth(operations)
    rows += [_operation_row(operation, shared) for operation in operations]
    return f"<h2>Operations</h2>{html_table(rows)}"


def _operation_row(
    operation: Mapping[str, Any], shared: float
) -> tuple[str, str, str, str, str, str]:
    length_s = operation["end"] - operation["begin"]
    rate = operation["moved"] / length_s if length_s else 0.0
    return (
        format_instant(operation["begin"]),
        format_time(length_s),
        format_volume(operation["moved"], shared),
        format_bandwidth(rate, shared),
        format_time(operation["lost"]),
        operation["policy"],
    )
