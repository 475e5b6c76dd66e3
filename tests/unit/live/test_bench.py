# SPDX-License-Identifier: MIT
"""The benchmarks of live control: goals, names, and jobs that live on grants."""

from __future__ import annotations

import importlib
from math import inf
from pathlib import Path

import pytest

from penstock.errors import InputError, UnknownNameError
from penstock.live.bench import BENCHES, Figure, Setting, measure
from penstock.live.bench.decisions import _Site
from penstock.live.bench.writers import writers


@pytest.mark.parametrize(
    ("value", "least", "most", "has_goal", "is_reached"),
    [
        (5.0, -inf, inf, False, True),
        (5.0, 5.0, 5.0, True, True),
        (5.0, 5.1, inf, True, False),
        (5.0, -inf, 4.9, True, False),
        (float("nan"), 1.0, 2.0, True, False),
    ],
)
def test_a_goal_is_reached_or_not(
    value: float, least: float, most: float, has_goal: bool, is_reached: bool
) -> None:
    figure = Figure("a", value, "", least, most)
    assert (figure.has_goal, figure.is_reached) == (has_goal, is_reached)


@pytest.mark.parametrize("name", BENCHES)
def test_every_benchmark_is_a_module(name: str) -> None:
    module = importlib.import_module(f"penstock.live.bench.{name}")
    assert callable(module.measure)


def test_an_unknown_benchmark_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="overhead, pacing"):
        next(measure("pace", Setting(1, tmp_path)))


def test_a_folder_that_is_not_there_gives_one_message(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="no benchmark here"),
        writers(tmp_path / "none"),
    ):
        pytest.fail("there is no folder")


@pytest.mark.parametrize("policy", ["fair-share", "greedy-yield"])
def test_where_no_job_works_all_are_active(policy: str) -> None:
    site = _Site(policy, 20, inf)
    assert len(site.costs(20)) == 20
    site.costs(100)
    assert all(state.active for state in site._controller.states(site._wake))
    # An event at an instant of its own: a completion, or the post that follows it.
    assert site._controller.decisions >= 100


def test_jobs_of_a_load_below_one_work_most_of_the_time() -> None:
    site = _Site("fair-share", 50, 0.5)
    costs = site.costs(2000)
    assert all(cost.elapsed_s >= 0.0 for cost in costs)
    states = site._controller.states(site._wake)
    assert sum(state.active for state in states) < 40
    assert sum(state.iterations for state in states) >= 900
