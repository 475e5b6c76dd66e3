# SPDX-License-Identifier: MIT
"""The report of a past job: its numbers, its words and its page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.advice.job_report import report_document, report_html, report_sentences
from penstock.live.wire.messages import (
    Delay,
    JobReport,
    PastJob,
    ReportedOperation,
    RunWithOperations,
)

T0 = 1_700_000_000.0
FACTS = {"version": "1", "command": "penstock report b"}


def _run(name: str, begin: float, end: float, lost: float) -> RunWithOperations:
    job = PastJob(
        job_name=name,
        user=7,
        storage="",
        nodes=1,
        joined_s=T0,
        left_s=T0 + 10.0,
        cap=None,
        moved_bytes=3e9,
        lost_s=lost,
        progress_yield=1.0 - lost / 10.0,
        policy="fcfs",
    )
    done = ReportedOperation(
        T0 + begin, T0 + end, 3e9, 0.0, lost, 1e9, "fcfs", grants=[]
    )
    return RunWithOperations(job, [done])


def _report(*, operator: bool = True, **changes: Any) -> JobReport:
    """Return the report of b, which waited 3 s for a under fcfs."""
    own, other = _run("b", 2.001, 8.0, 3.0), _run("a", 2.0, 5.0, 0.0)
    facts: dict[str, Any] = {
        "job": own.job,
        "operations": own.operations,
        "delays": [Delay("a", 3.0, 3e9)],
        "others": [other] if operator else [],
        "operation_count": 1,
        "note": "" if operator else "only operators see other jobs",
    }
    return JobReport(**(facts | changes))


def test_other_policies_are_simulated_on_all_jobs() -> None:
    document = report_document(_report(), FACTS)
    json.dumps(document, allow_nan=False)
    assert document["policies"]["fcfs"] == pytest.approx(0.7, abs=1e-3)
    assert document["note"] == ""
    assert document["job"]["job"] == "b"


def test_the_words_name_who_was_waited_for_and_what_is_better() -> None:
    said = " ".join(report_sentences(report_document(_report(), FACTS)))
    assert "It moved 3 GB in 1 operation, which took 5.999 s (500.1 MB/s)." in said
    assert "its yield is 0.700" in said
    assert "It waited for a (3 s)." in said
    assert "better for it:" in said


def test_users_are_told_why_other_policies_are_not_simulated() -> None:
    report = _report(operator=False, delays=[Delay("", 3.0, 3e9)])
    document = report_document(report, FACTS)
    assert document["policies"] == {}
    said = " ".join(report_sentences(document))
    assert "jobs of other users (3 s)" in said
    assert "only operators see" in said


def test_a_job_alone_needs_no_operator() -> None:
    document = report_document(_report(operator=False, delays=[], note=""), FACTS)
    said = " ".join(report_sentences(document))
    assert "No other policy would have given it more than fcfs." in said


def test_the_page_escapes_names_and_loads_nothing() -> None:
    run = _run("<b>", 2.0, 5.0, 0.0)
    report = _report(job=run.job, operations=run.operations)
    page = report_html(report_document(report, FACTS), report)
    assert "<h1>Report on &lt;b&gt;</h1>" in page
    assert "<svg" in page
    assert "<script" not in page


def test_a_page_without_a_simulation_has_no_drawing() -> None:
    report = _report(operator=False)
    page = report_html(report_document(report, FACTS), report)
    assert "<svg" not in page
    assert "<h2>Operations</h2>" in page
