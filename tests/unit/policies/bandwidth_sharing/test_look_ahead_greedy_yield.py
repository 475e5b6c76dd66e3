# SPDX-License-Identifier: MIT
"""Look-ahead greedy yield: the best minimum yield at the next completion."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide, random_scene

NAME = "look-ahead-greedy-yield"


def test_a_short_operation_may_pass_the_lowest_yield() -> None:
    """By hand: ages 100 s, lost 20 and 19 s; operations of 50 and 1 s.

    First the long one: at the horizon 50 s the other has lost 69 of 150 s (46 %).
    First the short one: at the horizon 1 s the first has lost 21 of 101 s (21 %).
    """
    scene = Scene(cap=[1.0, 1.0], lost=[20.0, 19.0], remaining=[50.0, 1.0])
    assert decide("greedy-yield", scene)[0] == [1.0, 0.0]
    assert decide(NAME, scene) == ([0.0, 1.0], inf)


def test_equal_candidates_go_by_yield() -> None:
    scene = Scene(cap=[1.0, 1.0], lost=[10.0, 20.0], remaining=[5.0, 5.0])
    assert decide(NAME, scene)[0] == [0.0, 1.0]


def test_one_application_alone_gets_its_cap() -> None:
    assert decide(NAME, Scene(cap=[0.5]))[0] == [0.5]


@pytest.mark.parametrize("seed", range(30))
def test_no_other_first_application_is_better(seed: int) -> None:
    """Compare with all candidates, computed by brute force."""
    scene = random_scene(seed)
    rates, _ = decide(NAME, scene)
    order = sorted(scene.active_indices, key=lambda i: (-_loss(scene, i), i))
    losses = [_worst(scene, _greedy(scene, i, order)) for i in order]
    assert _worst(scene, rates) == pytest.approx(min(losses), rel=1e-12)


def _loss(scene: Scene, i: int) -> float:
    age = scene.now - scene.release[i]
    return scene.lost[i] / age if age > 0 else 1.0


def _greedy(scene: Scene, first: int, order: list[int]) -> list[float]:
    rates, left = [0.0] * len(scene.cap), scene.capacity
    for i in (first, *(j for j in order if j != first)):
        rates[i] = min(scene.cap[i], left)
        left -= rates[i]
    return rates


def _worst(scene: Scene, rates: list[float]) -> float:
    """Return the largest loss of an active application at the first completion."""
    served = [i for i in scene.active_indices if rates[i] > 0]
    horizon = min(scene.remaining[i] / rates[i] for i in served)
    worst = 0.0
    for i in scene.active_indices:
        lost = scene.lost[i] + horizon * (1 - rates[i] / scene.cap[i])
        age = scene.now - scene.release[i] + horizon
        worst = max(worst, lost / age if age > 0 else 1.0)
    return worst
