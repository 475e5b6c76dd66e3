# SPDX-License-Identifier: MIT
"""random, static, best-bandwidth and n-sys on written-out problems."""

from __future__ import annotations

import pytest
from hypothesis import given

from penstock.model.problem import Problem
from penstock.placement import get_allocation
from unit.placement.problems import application, problem, problems


def allocate(text: str, it: Problem) -> tuple[int, ...]:
    """Return what an allocation gives."""
    return get_allocation(text).allocate(it)


# --- static -----------------------------------------------------------------------


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
    it = problem(20, application("a", [1.0] * 8, nodes=nodes), compute_nodes=480)
    assert allocate("static", it) == (expected,)


def test_static_gives_the_whole_to_the_whole() -> None:
    it = problem(20, application("a", nodes=480), compute_nodes=480)
    assert allocate("static", it) == (20,)


# --- best-bandwidth and n-sys -----------------------------------------------------


def test_best_bandwidth_takes_n_perf_however_it_is_known() -> None:
    it = problem(
        4,
        application("a", [1.0, 3.0, 3.0, 2.0, 9.0]),
        application("b"),
        best_targets=(0, 4),
    )
    assert allocate("best-bandwidth", it) == (2, 4)


def test_n_sys_takes_the_number_with_the_least_stress() -> None:
    # T_cpu = 2 s; T_io = 6, 1, 0.6 s: stress 3/4, 2/3, 9/13; and a flat profile.
    it = problem(
        4,
        application("a", [1, 6, 10], work=2, volume=6),
        application("b", [5.0, 5.0, 5.0]),
    )
    assert allocate("n-sys", it) == (2, 1)


# --- random -----------------------------------------------------------------------


def test_random_covers_its_range_and_nothing_else() -> None:
    it = problem(
        5,
        *(application(f"m{j}", [1.0, 2.0, 3.0]) for j in range(60)),
        *(application(f"w{j}", [1.0] * 8) for j in range(60)),
        *(application(f"u{j}") for j in range(60)),
    )
    drawn = allocate("random", it)
    assert set(drawn[:60]) == {1, 2, 3}
    assert set(drawn[60:120]) == {1, 2, 3, 4, 5}
    assert set(drawn[120:]) == {1, 2, 3, 4, 5}


def test_random_is_uniform() -> None:
    it = problem(4, *(application(f"a{j}") for j in range(2000)))
    drawn = allocate("random:seed=3", it)
    # 500 each, with a standard deviation of 19.
    assert all(abs(drawn.count(n) - 500) < 100 for n in (1, 2, 3, 4))


def test_random_depends_on_the_seed() -> None:
    it = problem(5, *(application(f"a{j}") for j in range(20)))
    assert allocate("random:seed=1", it) == allocate("random:seed=1", it)
    assert allocate("random:seed=1", it) != allocate("random:seed=2", it)
    assert allocate("random:seed=0", it) == allocate("random", it)


@given(problems())
def test_random_draws_for_an_application_whatever_the_others_are(it: Problem) -> None:
    first = Problem(it.resources, it.compute_nodes + 1, it.applications[:1])
    assert allocate("random:seed=5", it)[:1] == allocate("random:seed=5", first)
