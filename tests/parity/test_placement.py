# SPDX-License-Identifier: MIT
"""Targets of jobs that come and go: the simulator and the controller decide alike.

The simulation says when applications arrive and end. The same events, as messages of
an agent, reach a coordinator, and every job must get the same targets. The controller
knows nothing but b(n) and the nodes, so the simulated placement is told no more.
"""

from __future__ import annotations

import numpy as np
import pytest

from penstock.live.control.coordinator import Coordinator
from penstock.live.control.placing import JobPlacer
from penstock.live.control.rates.controller import Controller
from penstock.live.wire.messages import AgentConfig, AgentHello, JobJoined, JobLeft
from penstock.model import Application
from penstock.model.problem import Problem
from penstock.placement import get_allocation, get_placement
from penstock.placement.online import OnlinePlacement
from penstock.sim.arrivals import PlacementEvent, simulate_arrivals

TARGETS = 5
PROFILE = [10.0, 18.0, 21.0]


def _online(placement: str) -> OnlinePlacement:
    allocation = get_allocation("t-cpu")
    return OnlinePlacement(TARGETS, 1, allocation, get_placement(placement))


def _simulated(placement: str, seed: int) -> tuple[PlacementEvent, ...]:
    random = np.random.default_rng(seed)
    everyone = [
        Application.from_phases(
            f"0:{number}",
            int(random.integers(1, 5)),
            [("work", random.uniform(0.0, 9.0)), ("io", random.uniform(1.0, 200.0))],
            profile=PROFILE,
        )
        for number in range(12)
    ]
    known = [
        Application.from_phases(a.name, a.nodes, [], profile=PROFILE) for a in everyone
    ]
    problem = Problem(TARGETS, sum(a.nodes for a in everyone), tuple(everyone))
    arrivals = random.uniform(0.0, 60.0, len(everyone)).tolist()
    return simulate_arrivals(problem, arrivals, _online(placement), known=known).events


@pytest.mark.parametrize("placement", ["greedy-non-clairvoyant", "greedy-clairvoyant"])
@pytest.mark.parametrize("seed", range(3))
def test_live_jobs_get_the_simulated_targets(placement: str, seed: int) -> None:
    events = _simulated(placement, seed)
    assert any(not event.targets for event in events), "some jobs must end in between"
    config = AgentConfig("control", ["/s"], 0.1, 0.1, 1e9, 1.0, reads=True)
    coordinator = Coordinator(Controller("fair-share", 1.0, compiled=False), config)
    names = [str(number) for number in range(TARGETS)]
    coordinator.placer = JobPlacer(_online(placement), names, PROFILE)
    coordinator.receive("n", AgentHello([]), 0.0)
    for event in events:
        now = event.time_s
        if event.targets:
            joined = JobJoined(event.name, 0, "0", 1, 0.0)
            coordinator.receive("n", joined, now)
            assert coordinator.decide(now).retargeted == {event.name: event.targets}
        else:
            coordinator.receive("n", JobLeft(event.name), now)
            assert coordinator.decide(now).retargeted == {}
