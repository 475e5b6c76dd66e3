# SPDX-License-Identifier: MIT
"""The delta benchmark without processes: strategies, files, points, goals."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from penstock.bench import BenchSettings, Measurement
from penstock.bench.accuracy import delta
from penstock.errors import InputError, UnknownNameError
from penstock.sim.buffers.delta import DeltaPoint

STORAGE = delta._DeltaStorage(Path("/r"), Path("/r/p"), Path("/r/shared"))


def test_the_uncontrolled_run_comes_first_and_once() -> None:
    settings = BenchSettings(1, Path(), policies=("2a", "none", "1a"))
    assert delta._chosen_strategies(settings) == ["none", "2a", "1a"]


def test_all_strategies_are_measured_unless_some_are_named() -> None:
    every = delta._chosen_strategies(BenchSettings(1, Path()))
    assert every == ["none", "1a", "1b", "2a", "2b", "controlled", "3a", "3b"]
    one_target = BenchSettings(1, Path(), storage=Path())
    assert delta._chosen_strategies(one_target) == every[:-2]


def test_strategies_that_cannot_be_measured_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="9z"):
        delta._chosen_strategies(BenchSettings(1, Path(), policies=("9z",)))
    settings = BenchSettings(1, Path(), policies=("3b",), storage=Path())
    with pytest.raises(InputError, match="3b partitions targets"):
        delta._chosen_strategies(settings)


@pytest.mark.parametrize("rate", [10e6, 40e6, 3e9])
def test_a_request_takes_the_same_time_on_every_storage(rate: float) -> None:
    storage = delta._DeltaStorage(Path(), Path(), Path(), rate)
    assert storage.size_bytes / rate == pytest.approx(20e6 / 40e6)


def test_groups_have_their_own_files() -> None:
    first, second = (delta._group_on_mount(STORAGE, name) for name in "AB")
    assert len({*first.paths, *second.paths}) == 4
    on_targets = delta._group_on_targets(STORAGE, "A")
    assert len(set(on_targets.paths)) == 8
    assert {Path(path).parent.name for path in on_targets.paths} == {"0", "1"}


def test_a_point_has_the_factors_over_the_time_alone() -> None:
    point = delta._point([(0.0, 6.0), (2.0, 5.0)], 2.0, 2.0)
    assert point == DeltaPoint(2.0, (3.0, 1.5), (6.0, 3.0), 2.0, 6.0)


def graph(first: float, second: float, total: float) -> list[DeltaPoint]:
    return [DeltaPoint(0.0, (first, second), (2 * first, 2 * second), 2.0, total)]


def results(strategy: str, live: list[DeltaPoint]) -> dict[str, Measurement]:
    simulated = graph(1.0, 1.5, 3.0)
    uncontrolled = graph(1.9, 1.9, 4.0), graph(2.0, 2.0, 4.0)
    graphs = {"none": uncontrolled, strategy: (live, simulated)}
    return {m.name: m for m in delta._measurements(STORAGE, strategy, graphs)}


def test_live_factors_are_compared_with_simulated_ones() -> None:
    """At D = 0 either group may be the favoured one."""
    measured = results("2a", graph(1.5, 1.02, 3.2))
    error = measured["2a: largest difference, live and simulated factors"]
    assert error.value == pytest.approx(0.02)
    assert error.parts["D=0s:A"] == 1.02
    assert error.parts["D=0s:A:simulated"] == 1.0
    assert measured["2a: factor of the favoured, D = 0"].value == 1.02
    assert measured["2a: factor of the staged, D = 0"].is_reached
    assert measured[
        "2a: total time / total time without control"
    ].value == pytest.approx(0.8)


def test_goals_can_be_missed() -> None:
    measured = results("2a", graph(1.7, 1.2, 4.4))
    assert not any(m.is_reached for m in measured.values())
    # Without control, and for the favoured group of 1b and 2b, there is no goal.
    assert (
        results("2b", graph(1.7, 1.2, 4.4))["2b: factor of the favoured, D = 0"].most
        == inf
    )
    assert not results("none", graph(1.7, 1.2, 4.4)).popitem()[1].has_goal
