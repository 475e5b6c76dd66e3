# SPDX-License-Identifier: MIT
"""Applications that arrive over time on storage targets."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.model import Application
from penstock.model.problem import Problem
from penstock.placement import get_allocation, get_placement
from penstock.placement.online import OnlinePlacement
from penstock.sim import arrivals as arrivals_module
from penstock.sim.arrivals import PlacementEvent, simulate_arrivals


def writer(name: str, volume: float = 60.0, work: float = 0.0) -> Application:
    """Return an application that draws 6 bytes/s on one target."""
    phases = [("work", work), ("io", volume)]
    return Application.from_phases(name, 1, phases, profile=[6.0])


def one_by_one(resources: int, nodes: int = 1) -> OnlinePlacement:
    """Return the non-clairvoyant placement."""
    return OnlinePlacement(
        resources,
        nodes,
        get_allocation("best-bandwidth"),
        get_placement("greedy-non-clairvoyant"),
    )


def test_two_on_one_target_share_it_while_both_are_there() -> None:
    """10 s each alone; B arrives after 5 s: A ends at 15 s, B at 20 s."""
    task = Problem(1, 2, (writer("A"), writer("B")))
    result = simulate_arrivals(task, [0.0, 5.0], one_by_one(1))
    assert result.run.ended.tolist() == pytest.approx([15.0, 20.0])
    assert result.slowdowns.tolist() == pytest.approx([1.5, 1.5])
    assert result.mean_io_slowdown == pytest.approx(1.5)


def test_an_application_that_has_ended_frees_its_target() -> None:
    """A ends at 10 s; C, which arrives at 11 s, takes its target and not B's."""
    task = Problem(2, 3, (writer("A"), writer("B", 600.0), writer("C")))
    result = simulate_arrivals(task, [0.0, 0.0, 11.0], one_by_one(2))
    assert result.events == (
        PlacementEvent(0.0, "A", (0,)),
        PlacementEvent(0.0, "B", (1,)),
        PlacementEvent(pytest.approx(10.0), "A", ()),  # type: ignore[arg-type]
        PlacementEvent(11.0, "C", (0,)),
    )
    assert result.slowdowns.tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_the_order_of_arrival_decides_not_that_of_the_list() -> None:
    task = Problem(2, 2, (writer("late"), writer("early")))
    result = simulate_arrivals(task, [3.0, 0.0], one_by_one(2))
    assert [event.name for event in result.events] == ["early", "late"]
    assert result.events[0].targets == (0,)


def test_the_placement_may_know_less_than_the_truth() -> None:
    task = Problem(2, 4, (writer("A"), writer("B")))
    unknown = [Application.from_phases(name, 1, []) for name in "AB"]
    placement = one_by_one(2, nodes=4)
    simulate_arrivals(task, [0.0, 0.0], placement, known=unknown)
    placed = placement.get("A")
    assert placed is not None
    assert placed.reason.startswith("static")


@pytest.mark.parametrize("arrivals", [[0.0], [0.0, -1.0], [0.0, float("nan")]])
def test_bad_arrivals_are_refused(arrivals: list[float]) -> None:
    task = Problem(1, 2, (writer("A"), writer("B")))
    with pytest.raises(InputError, match="are not the arrivals of 2"):
        simulate_arrivals(task, arrivals, one_by_one(1))


def test_another_number_of_targets_is_refused() -> None:
    with pytest.raises(InputError, match="the placement has 2 targets"):
        simulate_arrivals(Problem(1, 1, (writer("A"),)), [0.0], one_by_one(2))


@pytest.mark.parametrize("names", ["A", "BA", "AX", "ABC"])
def test_what_is_known_must_be_of_the_same_applications(names: str) -> None:
    task = Problem(1, 2, (writer("A"), writer("B")))
    known = [writer(name) for name in names]
    with pytest.raises(InputError, match=r"known: .*not the applications"):
        simulate_arrivals(task, [0.0, 5.0], one_by_one(1), known=known)


def test_an_application_that_does_not_end_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrivals_module, "_latest_end", lambda *_: 12.0)
    task = Problem(1, 2, (writer("A"), writer("B")))
    with pytest.raises(InputError, match="A does not end"):
        simulate_arrivals(task, [0.0, 5.0], one_by_one(1))
