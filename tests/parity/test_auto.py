# SPDX-License-Identifier: MIT
"""The strategy auto decides the same in the simulator and in the controller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.live.control.stager import Stager
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.sim.forecast import BufferForecast
from penstock.staging import Situation, StagingPlan, Strategy, get_strategy
from support.auto_scenes import SCENES

#: Scenes in which strategies of each kind are followed.
CHOSEN = ("pair, d = 0.25 s, D = 10 s", "limited nodes", "two that come back")


@pytest.mark.parametrize("name", CHOSEN)
def test_the_controller_orders_what_the_simulator_orders(name: str) -> None:
    scene = SCENES[name]
    auto = get_strategy("auto")
    seen: list[tuple[Situation, StagingPlan]] = []

    def record(situation: Situation, **settings: object) -> StagingPlan:
        plan: StagingPlan = auto.function(situation, **settings)
        seen.append((situation, plan))
        return plan

    recording = Strategy("auto", "auto", record, auto.settings)
    run = simulate_buffers(scene.storage, scene.writers, recording, scene.buffer)
    # The simulator may start over with smaller regions: its last run counts.
    seen = seen[-run.decisions :]
    stager = Stager(
        auto,
        scene.storage.targets,
        forecast=lambda _: BufferForecast(scene.storage, scene.buffer),
    )
    for situation, plan in seen:
        # The controller knows what the jobs do, and keeps the past itself.
        jobs = [replace(a, targets=()) for a in situation.applications]
        orders = stager.decide(jobs, situation.now_s, scene.storage.bandwidth)
        assert list(orders.values()) == plan.orders
        assert stager.reason == plan.reason
        assert stager.wake == plan.wake_s
    assert len({plan.reason for _, plan in seen}) > 1
