# SPDX-License-Identifier: MIT
"""Instances of "striped": targets, the window, seeds, bad names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, UnknownNameError
from penstock.placement import get_allocation, get_placement
from penstock.sim import simulate
from penstock.workloads import get_workload
from penstock.workloads.striped import Striped, dedicated_window, seeded

SMALL: dict[str, Any] = {"applications": 12, "targets": 5, "compute_nodes": 60}


def _targets(workload: Striped, seed: int = 1, index: int = 0) -> list[tuple[int, ...]]:
    return [a.targets for a in workload.instance(seed, index).applications]


def test_the_instance_is_the_problem_with_the_targets_of_the_algorithms() -> None:
    workload = Striped(
        **SMALL, allocation="n-sys", placement="greedy-clairvoyant", load=0.6
    )
    problem, instance = workload.problem(3, 4), workload.instance(3, 4)
    allocation = get_allocation("n-sys").allocate(problem)
    placement = get_placement("greedy-clairvoyant").place(problem, allocation)
    assert [a.targets for a in instance.applications] == list(placement)
    for placed, application in zip(
        instance.applications, problem.applications, strict=True
    ):
        assert placed.name == application.name
        assert placed.work.tolist() == application.work.tolist()
        assert placed.volume.tolist() == application.volume.tolist()


def test_the_window_ends_with_the_smallest_dedicated_duration() -> None:
    workload = Striped(**SMALL)
    problem, instance = workload.problem(1, 0), workload.instance(1, 0)
    durations = [
        problem.compute_time[j] + problem.io_time(j, len(a.targets))
        for j, a in enumerate(instance.applications)
    ]
    assert instance.window.begin == 0
    assert instance.window.end == pytest.approx(min(durations), rel=1e-12)
    placement = tuple(a.targets for a in instance.applications)
    assert dedicated_window(problem, placement) == instance.window


@given(
    index=st.integers(0, 50),
    load=st.floats(0.05, 2.0),
    allocation=st.sampled_from(["random", "best-bandwidth", "t-cpu"]),
    policy=st.sampled_from(["fair-share", "greedy-com", "greedy-yield"]),
)
def test_no_application_ends_inside_the_window(
    index: int, load: float, allocation: str, policy: str
) -> None:
    instance = Striped(**SMALL, load=load, allocation=allocation).instance(1, index)
    run = simulate(instance, policy)
    assert (run.ended == instance.window.end).all()


def test_random_draws_depend_on_seed_and_index() -> None:
    workload = Striped(**SMALL, allocation="random", placement="random")
    first = _targets(workload)
    assert first == _targets(workload)
    assert first != _targets(workload, seed=2)
    assert first != _targets(workload, index=1)


def test_a_seed_of_its_own_is_kept() -> None:
    placer = get_placement("random:seed=7")
    assert seeded(placer, 1, 2) is placer
    # Also if it is the default.
    placer, allocator = get_placement("random:seed=0"), get_allocation("random:seed=0")
    assert seeded(placer, 1, 2) is placer
    assert seeded(allocator, 1, 2) is allocator
    deterministic = get_allocation("static")
    assert seeded(deterministic, 1, 2) is deterministic
    drawn = seeded(get_allocation("random"), 1, 2)
    assert drawn.label == "random"
    assert (
        drawn.settings["seed"] == seeded(get_placement("random"), 1, 2).settings["seed"]
    )
    assert (
        drawn.settings["seed"]
        != seeded(get_allocation("random"), 1, 3).settings["seed"]
    )


def test_the_workload_is_known_by_its_name() -> None:
    workload = get_workload("striped", ["Theta=0.5", "placement=random", "K=30"])
    assert workload == Striped(load=0.5, placement="random", applications=30)


@pytest.mark.parametrize("key", ["allocation", "placement"])
def test_an_unknown_algorithm_lists_the_known_ones(key: str) -> None:
    with pytest.raises(UnknownNameError, match="random"):
        get_workload("striped", [f"{key}=best"])


def test_a_load_that_cannot_be_made() -> None:
    with pytest.raises(InputError, match="cannot have an I/O-load of 3"):
        get_workload("striped", ["load=3"])
