# SPDX-License-Identifier: MIT
"""The report of a past job: its numbers and its words."""

from __future__ import annotations

import json

import pytest

from penstock.advice.job_report.documents import (
    ranked,
    report_document,
    report_sentences,
)
from penstock.live.wire.messages import Delay, PolicySpan, RunWithOperations
from unit.advice.job_report.reports import (
    T0,
    operation,
    past_job,
    report_of,
    waited,
)

FACTS = {"version": "1", "command": "penstock report b"}


def test_other_policies_are_simulated_on_all_jobs() -> None:
    document = report_document(waited(), FACTS)
    json.dumps(document, allow_nan=False)
    assert document["policies"]["fcfs"] == pytest.approx(0.7, abs=1e-3)
    assert document["note"] == ""
    assert document["job"]["job"] == "b"


def test_the_words_name_who_was_waited_for_and_what_is_better() -> None:
    said = " ".join(report_sentences(report_document(waited(), FACTS)))
    assert "It moved 3 GB in 1 operation, which took 5.999 s (500.1 MB/s)." in said
    assert "its yield is 0.700" in said
    assert "It waited for a (3 s)." in said
    assert "better for it:" in said


def test_a_limit_is_said() -> None:
    report = waited(job=past_job("b", limit=2e6))
    said = " ".join(report_sentences(report_document(report, FACTS)))
    assert "An operator had limited it to 2 MB/s." in said
    assert "its yield is relative to the limit" in said


def test_of_equal_policies_the_recommended_one_is_named_first() -> None:
    yields = {"fcfs": 0.5, "greedy-com": 0.9, "soft-deadline": 0.9 - 1e-9}
    assert ranked(yields) == ["soft-deadline", "greedy-com", "fcfs"]


def test_users_are_told_why_other_policies_are_not_simulated() -> None:
    report = waited(operator=False, delays=[Delay("", 3.0, 3e9)])
    document = report_document(report, FACTS)
    assert document["policies"] == {}
    said = " ".join(report_sentences(document))
    assert "jobs of other users (3 s)" in said
    assert "only operators see" in said


def test_a_job_alone_needs_no_operator() -> None:
    document = report_document(waited(operator=False, delays=[], note=""), FACTS)
    said = " ".join(report_sentences(document))
    assert "No other policy would have given it more." in said


@pytest.mark.parametrize("policy", ["set-10:period=given", "dry-run", "gone-policy"])
def test_a_measured_yield_is_not_called_simulated(policy: str) -> None:
    own = past_job("b", lost_s=3.0, progress_yield=0.123, policy=policy)
    document = report_document(waited(job=own), FACTS)
    said = report_sentences(document)[-1]
    assert ("Its yield was 0.123; simulated" in said) == (":" not in policy)
    assert (policy in document["policies"]) == (":" in policy)


def test_a_run_under_several_policies_names_them_with_their_times() -> None:
    spans = [
        PolicySpan("fair-share", T0, T0 + 4.0),
        PolicySpan("fcfs", T0 + 4.0, T0 + 7.0),
        PolicySpan("dry-run", T0 + 7.0, T0 + 8.0),
        PolicySpan("off", T0 + 8.0, T0 + 10.0),
    ]
    job = past_job("b", policies=spans, policy="dry-run", progress_yield=0.5)
    report = report_of(RunWithOperations(job, [operation(2.0, 8.0)]))
    words = " ".join(report_sentences(report_document(report, FACTS)))
    assert (
        "under fair-share for 4 s, then under fcfs for 3 s, then in a dry run for 1 s, "
        "then without control for 2 s." in words
    )
    # No single policy is the one that it is compared with: its own yield is.
    assert "Its yield was 0.500; simulated, better for it:" in words
