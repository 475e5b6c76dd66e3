# SPDX-License-Identifier: MIT
"""Volumes that nobody announced: live yields in virtual time against simulated ones."""

from __future__ import annotations

import pytest

from support.unannounced import (
    UnannouncedJob,
    live_yields,
    recall_all,
    simulated_yields,
)

MB = 1e6
POLICIES = ("fair-share", "fcfs", "greedy-yield", "soft-deadline", "greedy-com")

#: Jobs that repeat themselves, and one that writes once, more than all others.
LATE_AND_LARGE: list[UnannouncedJob] = [
    (0.0, [(1.3, 100 * MB)] * 4),
    (0.4, [(2.1, 60 * MB)] * 4),
    (6.0, [(1.0, 252 * MB)]),
]
MANY: list[UnannouncedJob] = [
    (0.0, [(1.31, 61.3 * MB)] * 5),
    (0.4, [(2.17, 99.1 * MB)] * 3),
    (1.0, [(3.03, 20.7 * MB)] * 6),
    (2.0, [(2.56, 41.9 * MB)] * 5),
    (12.0, [(0.7, 252 * MB)]),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_that_were_seen_before_need_no_hints(policy: str) -> None:
    live = live_yields(MANY, policy, recall_all(MANY))
    assert live == pytest.approx(simulated_yields(MANY, policy), rel=0.01)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_large_newcomer_does_not_overtake(policy: str) -> None:
    """It writes 252 MB where the others write 60 and 100 MB."""
    live = live_yields(LATE_AND_LARGE, policy, recall_all(LATE_AND_LARGE, {2}))
    simulated = simulated_yields(LATE_AND_LARGE, policy)
    # soft-deadline serves the newcomer by its volume, which nobody can know.
    tolerance = 0.5 if policy == "soft-deadline" else 0.01
    assert live == pytest.approx(simulated, rel=tolerance)


@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-yield"])
def test_policies_that_do_not_look_at_volumes(policy: str) -> None:
    """Without any history they lose the gaps after operations of unknown volume."""
    live = live_yields(LATE_AND_LARGE, policy, lambda _: None)
    assert live == pytest.approx(simulated_yields(LATE_AND_LARGE, policy), rel=0.03)
