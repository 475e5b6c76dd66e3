# SPDX-License-Identifier: MIT
"""Volumes that nobody announced: live yields in virtual time against simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf

import numpy as np
import pytest

from penstock.live.control.controller import Controller
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.jobs import JobHistory
from penstock.live.wire.messages import AgentConfig
from penstock.model import Application, Column, Instance, Platform, Window
from penstock.sim import simulate
from support.virtual_site import VirtualProgram, VirtualSite

B = 40e6
MB = 1e6
POLICIES = ("fair-share", "fcfs", "greedy-yield", "soft-deadline", "greedy-com")

#: A job: its release (s) and its phases of work (s) and volume (bytes).
Job = tuple[float, list[tuple[float, float]]]
#: Jobs that repeat themselves, and one that writes once, more than all others.
LATE_AND_LARGE: list[Job] = [
    (0.0, [(1.3, 100 * MB)] * 4),
    (0.4, [(2.1, 60 * MB)] * 4),
    (6.0, [(1.0, 252 * MB)]),
]
MANY: list[Job] = [
    (0.0, [(1.31, 61.3 * MB)] * 5),
    (0.4, [(2.17, 99.1 * MB)] * 3),
    (1.0, [(3.03, 20.7 * MB)] * 6),
    (2.0, [(2.56, 41.9 * MB)] * 5),
    (12.0, [(0.7, 252 * MB)]),
]


def simulated_yields(jobs: list[Job], policy: str) -> Column:
    """Return the yields if all volumes are known."""
    applications = (
        Application.from_phases(
            f"a{number}",
            1,
            [part for w, v in phases for part in (("work", w), ("io", v))],
            release=release,
        )
        for number, (release, phases) in enumerate(jobs)
    )
    instance = Instance(Platform(B, B), Window(0.0, 3600.0), tuple(applications))
    return simulate(instance, policy, steady=False).yields


def live_yields(
    jobs: list[Job], policy: str, recall: Callable[[str], JobHistory | None]
) -> Column:
    """Return the yields of programs that announce nothing, in virtual time."""
    programs = [
        VirtualProgram(f"0:{number}", phases, release)
        for number, (release, phases) in enumerate(jobs)
    ]
    config = AgentConfig("control", ["/s"], 0.05, 0.1, 3.0, inf, reads=True)
    controller = Controller(policy, B, inf, compiled=False)
    site = VirtualSite(Coordinator(controller, config, recall), programs, (0.001,))
    site.run(600.0)
    alone = [sum(w + v / B for w, v in phases) for _, phases in jobs]
    return np.array(
        [t / (p.end_s - p.release_s) for t, p in zip(alone, programs, strict=True)]
    )


def recall_all(
    jobs: list[Job], newcomers: Collection[int] = ()
) -> Callable[[str], JobHistory | None]:
    """Return the memory of a controller that has seen these jobs before."""

    def recall(job_key: str) -> JobHistory | None:
        number = int(job_key.partition(":")[2])
        release, phases = jobs[number]
        volumes = (phases[0][1],) * 2
        return None if number in newcomers else JobHistory(release, past_bytes=volumes)

    return recall


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
