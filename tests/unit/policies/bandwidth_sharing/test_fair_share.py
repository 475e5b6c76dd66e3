# SPDX-License-Identifier: MIT
"""Fair share: the same fraction of the cap for every active application."""

from __future__ import annotations

from math import inf

import pytest

from penstock.sim import simulate
from support.views import Scene, decide, random_scene
from unit.samples import app, make


def test_all_applications_get_their_caps_without_contention() -> None:
    scene = Scene(cap=[1.0, 2.0], capacity=3.0)
    assert decide("fair-share", scene) == ([1.0, 2.0], inf)


def test_caps_are_scaled_down_by_the_same_fraction() -> None:
    scene = Scene(cap=[1.0, 3.0, 4.0], capacity=4.0)
    assert decide("fair-share", scene)[0] == [0.5, 1.5, 2.0]


def test_inactive_applications_get_nothing_and_take_nothing() -> None:
    scene = Scene(cap=[4.0, 4.0, 4.0], capacity=4.0, active=[0, 2])
    assert decide("fair-share", scene)[0] == [2.0, 0.0, 2.0]


@pytest.mark.parametrize("seed", range(20))
def test_alpha_is_the_same_for_all(seed: int) -> None:
    scene = random_scene(seed)
    rates, _ = decide("fair-share", scene)
    alphas = [rates[i] / scene.cap[i] for i in scene.active_indices]
    assert alphas == pytest.approx([alphas[0]] * len(alphas), rel=1e-12)


def test_n_equal_operations_take_n_times_as_long() -> None:
    """n operations of length V, posted together, all complete after n V."""
    applications = [
        app(f"a{j}", ("work", 1.0), ("io", 2.0), ("work", 99.0)) for j in range(4)
    ]
    run = simulate(make(*applications, window=(0.0, 20.0)), "fair-share")
    assert run.lost == pytest.approx([6.0] * 4)
