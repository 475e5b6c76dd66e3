# SPDX-License-Identifier: MIT
"""Static: targets in proportion to nodes, rounded, within the profile."""

from __future__ import annotations

import pytest

from unit.placement.problems import (
    allocate,
    application,
    problem,
)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # Of 480 nodes and 20 targets, 24 nodes have one.
        (1, 1),
        (35, 1),
        (36, 2),
        (59, 2),
        (60, 3),
        (61, 3),
        (187, 8),
        (480, 8),
    ],
)
def test_static_rounds_a_half_up_and_stays_within_the_profile(
    nodes: int, expected: int
) -> None:
    task = problem(20, application("a", [1.0] * 8, nodes=nodes), compute_nodes=480)
    assert allocate("static", task) == (expected,)


def test_static_gives_the_whole_to_the_whole() -> None:
    task = problem(20, application("a", nodes=480), compute_nodes=480)
    assert allocate("static", task) == (20,)


def test_static_gives_at_least_one_target() -> None:
    task = problem(2, *(application(f"a{j}", nodes=1) for j in range(50)))
    assert allocate("static", task) == (1,) * 50
