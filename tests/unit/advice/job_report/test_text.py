# SPDX-License-Identifier: MIT
"""The drawing of a terminal: who moved when, and who waited."""

from __future__ import annotations

from penstock.advice.job_report.text import text_drawing
from penstock.live.wire.messages import RunWithOperations
from unit.advice.job_report.reports import operation, past_job, report_of, waited


def test_a_job_waits_while_the_other_one_moves() -> None:
    own, other, legend = text_drawing(waited())
    # 64 signs are 10 s: the first two seconds are 12 signs.
    assert own.startswith("b  |" + " " * 12 + "." * 20 + "#" * 19)
    assert other.startswith("a  |" + " " * 12 + "+" + "#" * 19 + " ")
    assert "1 GB/s" in legend


def test_half_of_the_bandwidth_has_another_sign() -> None:
    run = RunWithOperations(past_job("long-name"), [operation(0.0, 10.0)])
    line, _ = text_drawing(report_of(run))
    assert line == f"long-name  |{'+' * 64}|"


def test_a_job_without_operations_is_an_empty_line() -> None:
    line, _ = text_drawing(report_of(RunWithOperations(past_job("a"), [])))
    assert line == f"a  |{' ' * 64}|"
