# SPDX-License-Identifier: MIT
"""Applications that arrive and end: how many targets they get, which, and why."""

from __future__ import annotations

import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.model import Application
from penstock.model.problem import Problem
from penstock.placement import get_allocation, get_placement
from penstock.placement.online import OnlinePlacement
from unit.placement.problems import allocate, application, place, problem, problems


def online(
    resources: int,
    allocation: str = "best-bandwidth",
    placement: str = "greedy-non-clairvoyant",
    nodes: int = 10,
) -> OnlinePlacement:
    """Return a placement without applications."""
    return OnlinePlacement(
        resources, nodes, get_allocation(allocation), get_placement(placement)
    )


def test_newcomers_take_the_next_targets_in_turn() -> None:
    placement = online(4)
    for name, profile, targets in (
        ("a", (1.0, 2.0, 3.0), (0, 1, 2)),
        ("b", (1.0, 2.0), (0, 3)),
        ("c", (1.0, 2.0), (1, 2)),
    ):
        assert placement.arrive(application(name, profile)).targets == targets


def test_targets_that_were_freed_are_taken_first() -> None:
    placement = online(4)
    for name in "abcd":
        placement.arrive(application(name, (1.0,)))
    placement.leave("b")
    placement.leave("c")
    placement.leave("unknown")
    assert placement.arrive(application("e", (1.0, 2.0))).targets == (1, 2)
    assert placement.get("b") is None


def test_the_clairvoyant_placement_takes_the_least_loaded_targets() -> None:
    placement = online(2, placement="greedy-clairvoyant")
    busy = application("busy", (1.0,), work=1.0, volume=9.0)
    idle = [application(name, (1.0,), work=9.0, volume=1.0) for name in "abc"]
    assert placement.arrive(busy).targets == (0,)
    assert [placement.arrive(each).targets for each in idle] == [(1,)] * 3


def test_one_that_is_there_keeps_its_targets() -> None:
    placement = online(4)
    first = placement.arrive(application("a", (1.0, 2.0)))
    assert placement.arrive(application("a", (1.0,))) is first


def test_one_that_had_targets_before_keeps_them_and_others_see_its_load() -> None:
    placement = online(4)
    kept = placement.arrive(application("a", (1.0, 2.0, 3.0)), kept=(3, 1))
    assert kept.targets == (1, 3)
    assert kept.reason == "it had them before the controller was restarted"
    assert placement.arrive(application("b", (1.0, 2.0))).targets == (0, 2)
    placement.leave("a")
    assert placement.arrive(application("c", (1.0, 2.0))).targets == (1, 3)


def test_the_allocation_sees_those_that_are_there() -> None:
    """t-cpu adds targets up to an I/O-load of 1: a later one gets fewer."""
    heavy = [application(name, (1.0, 1.5), work=1.0, volume=30.0) for name in "abc"]
    alone = online(3, "t-cpu").arrive(heavy[0])
    placement = online(3, "t-cpu")
    numbers = [len(placement.arrive(each).targets) for each in heavy]
    assert numbers[0] == len(alone.targets) == 2
    assert numbers[-1] == 1


@pytest.mark.parametrize(
    ("known", "number", "reason"),
    [
        (application("a", (1.0, 2.0)), 2, "t-cpu gives it 2 of 4 targets"),
        (
            application("a", (1.0, 2.0), work=0.0, volume=0.0),
            2,
            "best-bandwidth gives it 2 of 4 targets (t-cpu would have to know V_io, "
            "T_cpu)",
        ),
        (
            application("a", nodes=5),
            2,
            "static gives it 2 of 4 targets (t-cpu would have to know b_j)",
        ),
    ],
)
def test_if_something_is_not_known_an_allocation_that_needs_less_decides(
    known: Application, number: int, reason: str
) -> None:
    placed = online(4, "t-cpu").arrive(known)
    assert len(placed.targets) == number
    assert placed.reason == f"{reason}, greedy-non-clairvoyant has chosen which"


def test_those_of_which_little_is_known_do_not_prevent_a_decision() -> None:
    placement = online(4, "t-cpu", "greedy-clairvoyant")
    placement.arrive(application("unknown", nodes=5))
    placed = placement.arrive(application("known", (1.0, 2.0)))
    assert "t-cpu" in placed.reason


def test_a_placement_that_needs_all_at_once_is_refused() -> None:
    with pytest.raises(InputError, match="places all applications at once"):
        online(4, placement="exclusive")


@given(task=problems())
def test_the_largest_first_are_placed_as_if_all_came_at_once(task: Problem) -> None:
    """The greedy placements sort; in that order, one by one gives the same."""
    counts = allocate("best-bandwidth", task)
    for name in ("greedy-non-clairvoyant", "greedy-clairvoyant"):
        at_once = place(name, task, counts)
        if name == "greedy-non-clairvoyant":
            order = sorted(range(len(counts)), key=lambda j: -counts[j])
        else:
            order = sorted(
                range(len(counts)), key=lambda j: -task.io_ratio(j, counts[j])
            )
        placement = online(task.resources, placement=name, nodes=task.compute_nodes)
        for j in order:
            assert placement.arrive(task.applications[j]).targets == at_once[j]


def test_the_machine_may_be_larger_than_its_jobs() -> None:
    task = problem(4, application("a", nodes=5), compute_nodes=40)
    placed = online(4, "static", nodes=task.compute_nodes).arrive(task.applications[0])
    assert len(placed.targets) == 1
