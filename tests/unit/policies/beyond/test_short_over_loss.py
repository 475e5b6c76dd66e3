# SPDX-License-Identifier: MIT
"""Short over loss: between greedy-com (exponent 0) and greedy-yield (large)."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide, random_scene

NAME = "short-over-loss"


@pytest.mark.parametrize("seed", range(15))
def test_exponent_0_is_greedy_com(seed: int) -> None:
    scene = random_scene(seed)
    assert decide(f"{NAME}:exponent=0", scene)[0] == decide("greedy-com", scene)[0]


@pytest.mark.parametrize("lost", [[10.0, 30.0, 20.0], [5.0, 4.0, 6.0]])
def test_a_large_exponent_is_greedy_yield(lost: list[float]) -> None:
    scene = Scene(cap=[1.0] * 3, lost=lost, remaining=[1.0, 50.0, 9.0])
    large = decide(f"{NAME}:exponent=1000", scene)
    assert large == decide("greedy-yield", scene)


def test_the_quotient_decides_in_between() -> None:
    # Exponent 1: 8 / 0.2 = 40 against 3 / 0.1 = 30.
    scene = Scene(cap=[1.0, 1.0], lost=[20.0, 10.0], remaining=[8.0, 3.0])
    assert decide(f"{NAME}:exponent=1", scene) == ([0.0, 1.0], inf)
    # Exponent 2: 8 / 0.04 = 200 against 3 / 0.01 = 300.
    assert decide(f"{NAME}:exponent=2", scene)[0] == [1.0, 0.0]


def test_without_losses_the_shortest_goes_first() -> None:
    scene = Scene(cap=[1.0, 1.0], remaining=[8.0, 3.0])
    assert decide(NAME, scene)[0] == [0.0, 1.0]
