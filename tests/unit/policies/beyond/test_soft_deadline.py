# SPDX-License-Identifier: MIT
"""Soft deadline: softness 0 is earliest-deadline; the burden of an operation."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide, random_scene

NAME = "soft-deadline"


@pytest.mark.parametrize("seed", range(20))
def test_without_softness_the_order_is_that_of_the_deadlines(seed: int) -> None:
    """u + max(0, u)^3 grows with u, so that softness 0 keeps the order."""
    scene = random_scene(seed)
    hard = decide(f"{NAME}:softness=0", scene)
    assert hard == decide("earliest-deadline", scene)


@pytest.mark.parametrize("softness", ["0.5", "100"])
def test_while_nothing_is_lost_softness_does_not_matter(softness: str) -> None:
    scene = Scene(cap=[1.0] * 3, remaining=[3.0, 1.0, 2.0], nodes=[1, 1, 9])
    soft = decide(f"{NAME}:softness={softness}", scene)
    assert soft == decide("earliest-deadline", scene) == ([0.0, 1.0, 0.0], inf)


def _contended(nodes: tuple[int, int] = (1, 1), iterations: int = 9) -> Scene:
    """Return two applications with completed iterations; the first is due first."""
    return Scene(
        cap=[1.0, 1.0],
        lost=[20.0, 10.0],
        remaining=[8.0, 1.0],
        iteration_time=[90.0, 90.0],
        nodes=list(nodes),
        iterations=[iterations] * 2,
    )


def test_a_short_operation_passes_if_softness_is_large() -> None:
    assert decide("earliest-deadline", _contended())[0] == [1.0, 0.0]
    assert decide(f"{NAME}:softness=0.01", _contended())[0] == [1.0, 0.0]
    assert decide(f"{NAME}:softness=100", _contended())[0] == [0.0, 1.0]


def test_nothing_is_softened_for_applications_that_completed_no_iteration() -> None:
    """rho = 0: no application is known to post again."""
    scene = _contended(iterations=0)
    assert decide(f"{NAME}:softness=100", scene)[0] == [1.0, 0.0]


def test_many_nodes_make_a_burden_small() -> None:
    scene = _contended(nodes=(10_000, 1))
    assert decide(f"{NAME}:softness=100", scene)[0] == [1.0, 0.0]
