# SPDX-License-Identifier: MIT
"""The figure of a report has the panels that its reader may see."""

from __future__ import annotations

import pytest

from penstock.advice.job_report.drawing import drawing
from penstock.advice.job_report.simulation import instance_of_report
from penstock.sim import simulate
from unit.advice.job_report.reports import waited


def _titles(*, operator: bool, policy: str | None) -> list[str]:
    report = waited(operator=operator)
    run = None
    if policy:
        run = simulate(instance_of_report(report), policy, steady=False, record=True)
    return [panel.get_title(loc="left") for panel in drawing(report, run).axes]


def test_an_operator_sees_the_job_what_happened_and_another_policy() -> None:
    assert _titles(operator=True, policy="fair-share") == [
        "b: lost 3 s",
        "what happened, under fcfs: yield 0.700",
        "simulated under fair-share: yield 0.700",
    ]


def test_a_user_sees_the_own_job() -> None:
    assert _titles(operator=False, policy=None) == ["b: lost 3 s"]


def test_the_recorded_shares_are_those_of_the_archive() -> None:
    report = waited()
    shares = drawing(report, None).axes[1]
    own = shares.collections[0].get_paths()[0].get_extents()
    # The job had the whole bandwidth at the end of its operation only.
    assert own.y1 == pytest.approx(1.0, abs=0.01)
    assert shares.get_xlim() == (0.0, 10.0)
