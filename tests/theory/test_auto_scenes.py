# SPDX-License-Identifier: MIT
"""The strategy auto is about as good as the best single strategy in every scene."""

from __future__ import annotations

from statistics import fmean

import pytest

from penstock.errors import InputError
from penstock.sim.buffers.delta import factors
from penstock.sim.buffers.simulation import simulate_buffers
from support.auto_scenes import SCENES, AutoScene

SINGLE = ("none", "1a", "1b", "2a", "2b", "3a", "3b")


def _slowdown(scene: AutoScene, strategy: str) -> float:
    alone = [
        simulate_buffers(scene.storage, [writer]).io_times[0]
        for writer in scene.writers
    ]
    run = simulate_buffers(scene.storage, scene.writers, strategy, scene.buffer)
    return fmean(factors(run, alone))


@pytest.mark.parametrize("name", SCENES)
def test_auto_is_within_5_percent_of_the_best(name: str) -> None:
    scene = SCENES[name]
    slowdowns = {}
    for strategy in SINGLE:
        try:
            slowdowns[strategy] = _slowdown(scene, strategy)
        except InputError:
            continue
    auto, best = _slowdown(scene, "auto"), min(slowdowns.values())
    assert auto <= 1.05 * best
    if best < 0.99 * slowdowns["none"]:
        assert auto < slowdowns["none"]
