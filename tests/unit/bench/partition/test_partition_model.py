# SPDX-License-Identifier: MIT
"""Simulated slowdowns of the scenes under strategies and placements."""

from __future__ import annotations

import pytest

from penstock.bench.partition.model import (
    placed_targets,
    simulate_scene,
    writer_of,
)
from penstock.bench.partition.scenes import PLACEMENTS, STRATEGIES, PartitionApp, scenes
from penstock.sim.buffers.model import Act

#: Bandwidths of one to four targets that add up (bytes/s).
PROFILE = (5e6, 10e6, 15e6, 20e6)
FIRST = PartitionApp("first", 4, 5_000_000, 0.0, start_s=0.0, work_s=2.0, phases=1)
SECOND = PartitionApp("second", 4, 5_000_000, 0.0, start_s=0.0, work_s=2.0, phases=1)


def test_a_writer_has_the_phases_of_its_application() -> None:
    app = PartitionApp("a", 3, 7, 0.5, start_s=1.5, work_s=4.0)
    writer = writer_of(app)
    acts = [step.act for step in writer.steps]
    assert acts.count(Act.WRITE) == 6
    assert acts.count(Act.CLOSE) == 2
    work_s = sum(step.amount for step in writer.steps if step.act is Act.WORK)
    assert work_s == 4 * 0.5 + 4.0
    assert writer.start_s == 1.5
    assert writer.redirects
    assert writer.merges


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("none", (2.0, 2.0)),
        ("2a", (1.0, 2.0)),
        ("3a", (2.0, 2.0)),
        ("auto", (1.0, 2.0)),
        # The first to join has all targets, the second two of them.
        ("static+greedy-non-clairvoyant", (2.0, 3.0)),
        ("best-bandwidth+greedy-clairvoyant", (2.0, 2.0)),
    ],
)
def test_two_equal_applications(setting: str, expected: tuple[float, float]) -> None:
    slowdowns = simulate_scene((FIRST, SECOND), setting, PROFILE).slowdowns
    assert sorted(slowdowns.values()) == pytest.approx(expected, rel=1e-3)


def test_placements_join_in_order() -> None:
    static = placed_targets((FIRST, SECOND), "static+greedy-non-clairvoyant", PROFILE)
    assert static == {"first": (0, 1, 2, 3), "second": (0, 1)}
    best = placed_targets((FIRST, SECOND), "best-bandwidth+greedy-clairvoyant", PROFILE)
    assert best == {"first": (0, 1, 2, 3), "second": (0, 1, 2, 3)}


@pytest.mark.parametrize("scene", ["two", "four"])
def test_auto_is_as_good_as_the_best_in_every_scene(scene: str) -> None:
    apps = scenes(quick=False)[scene]

    def mean(setting: str) -> float:
        slowdowns = simulate_scene(apps, setting, PROFILE).slowdowns
        return sum(slowdowns.values()) / len(slowdowns)

    means = {setting: mean(setting) for setting in (*STRATEGIES, *PLACEMENTS)}
    auto = means.pop("auto")
    assert auto <= 1.05 * min(means.values())
    assert auto < means["none"]
