# SPDX-License-Identifier: MIT
"""The page of a report: complete, safe, and with a drawing for every reader."""

from __future__ import annotations

from penstock.advice.job_report.documents import report_document
from penstock.advice.job_report.page import report_page
from unit.advice.job_report.reports import waited

FACTS = {"version": "1", "command": "penstock report b"}


def test_the_page_escapes_names_and_loads_nothing() -> None:
    report = waited("<b>")
    page = report_page(report_document(report, FACTS), report)
    assert "<h1>Report on &lt;b&gt;</h1>" in page
    assert "<svg" in page
    assert "<script" not in page


def test_what_happened_is_drawn_beside_another_policy() -> None:
    report = waited()
    page = report_page(report_document(report, FACTS), report)
    assert "what happened, under fcfs" in page
    assert "simulated under " in page
    assert "simulated under fcfs" not in page


def test_a_page_without_a_simulation_shows_what_the_job_did() -> None:
    report = waited(operator=False)
    page = report_page(report_document(report, FACTS), report)
    assert "b: lost 3 s" in page
    assert "simulated under" not in page
    assert "<h2>Operations</h2>" in page
