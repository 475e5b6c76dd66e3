# SPDX-License-Identifier: MIT
"""Advice as one HTML file without other files: words, tables and timelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from penstock.advice.documents import roles_of_policies
from penstock.experiments.output.html import document, html_table
from penstock.experiments.output.plots import svg_text, timeline
from penstock.model import Instance
from penstock.policies import get_policy
from penstock.sim import simulate

__all__ = ["report_page"]


def report_page(advice: Mapping[str, Any], instance: Instance) -> str:
    """Return the page of a document of `penstock.advice.documents`.

    The timelines show the first instance under the present policy and the best one.
    """
    title = "Advice: " + str(advice["summary"])
    facts = advice["provenance"]
    parts = [
        f"<h1>{escape(str(advice['summary']))}</h1>",
        _paragraphs(advice["reasons"]),
        "<h2>Policies</h2>",
        "<p>Mean over the scenarios. Yield: progress of a job, compared with its "
        "progress without other jobs. Efficiency: progress of all jobs together, by "
        "their nodes. Both are 1 if no job waits for another one.</p>",
        _policy_table(advice),
        "<h2>Shares of the bandwidth over time</h2>",
        _timelines(advice, instance),
        "<h2>Jobs</h2>",
        _job_table(advice["applications"]),
        _placement(advice.get("placement")),
        "<h2>Assumptions</h2>",
        _paragraphs(advice["assumptions"]),
        f'<p class="small">penstock {escape(facts["version"])}: '
        f"<code>{escape(facts['command'])}</code></p>",
    ]
    return document(title, "".join(parts))


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _policy_table(advice: Mapping[str, Any]) -> str:
    roles = roles_of_policies(advice)
    rows = [("policy", "", "yield of the worst job", "efficiency")]
    rows += [
        (
            outcome["policy"],
            roles.get(outcome["policy"], ""),
            f"{outcome['min_yield']:.3f}",
            f"{outcome['efficiency']:.3f}",
        )
        for outcome in advice["policies"]
    ]
    rows.append(("no policy can exceed", "", f"{advice['bound']['min_yield']:.3f}", ""))
    return html_table(rows)


def _job_table(applications: Sequence[Mapping[str, Any]]) -> str:
    rows = [("job", "yield now", "yield then", "what its owner can do")]
    rows += [
        (
            job["name"],
            f"{job['yield_now']:.3f}",
            f"{job['yield_advised']:.3f}",
            " ".join(job["advice"]) or "nothing",
        )
        for job in applications
    ]
    return html_table(rows)


def _placement(placement: Mapping[str, Any] | None) -> str:
    if placement is None:
        return ""
    sentence = escape(placement["sentence"])
    words = f"<h2>Storage targets</h2><p>{sentence}</p>"
    if not placement["worthwhile"]:
        return words
    rows = [("job", "targets")]
    rows += [
        (name, ", ".join(map(str, targets)))
        for name, targets in placement["targets"].items()
    ]
    return f"{words}{html_table(rows)}"


def _timelines(advice: Mapping[str, Any], instance: Instance) -> str:
    labels = dict.fromkeys((advice["now"]["policy"], advice["gain"]["policy"]))
    runs = [
        simulate(instance, get_policy(label), steady=False, record=True)
        for label in labels
    ]
    return f"<figure>{svg_text(timeline(runs))}</figure>"
