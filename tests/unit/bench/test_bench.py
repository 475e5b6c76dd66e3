# SPDX-License-Identifier: MIT
"""The benchmarks of live control: goals, names, and jobs that live on grants."""

from __future__ import annotations

import importlib
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench import BENCHES, Figure, Setting, measure, module_name
from penstock.bench.decisions import _ControlledJobs
from penstock.bench.fidelity import FidelityOutcome, _instance, _summary, ranks
from penstock.bench.writers import writers
from penstock.errors import InputError, UnknownNameError


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
    module = importlib.import_module(f"penstock.bench.{module_name(name)}")
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
    site = _ControlledJobs(policy, 20, inf)
    assert len(site.costs(20)) == 20
    site.costs(100)
    assert all(job.is_active for job in site._controller.jobs())
    # An event at an instant of its own: a completion, or the post that follows it.
    assert site._controller.decisions >= 100


def test_jobs_of_a_load_below_one_work_most_of_the_time() -> None:
    site = _ControlledJobs("fair-share", 50, 0.5)
    costs = site.costs(2000)
    assert all(cost.elapsed_s >= 0.0 for cost in costs)
    jobs = site._controller.jobs()
    assert sum(job.is_active for job in jobs) < 40
    assert sum(job.iterations for job in jobs) >= 900


def test_the_workload_of_fidelity_is_one_of_the_model() -> None:
    instance = _instance()
    assert len(instance.applications) == 8
    # Jobs are numbered as they come, live: ties go to the same ones as simulated.
    releases = [it.release for it in instance.applications]
    assert releases == sorted(set(releases))
    assert max(len(it.volume) for it in instance.applications) >= 3
    assert len(set(instance.caps)) >= 3


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), st.floats(0.0, 0.2))
def test_ranks_are_those_of_the_order_up_to_ties(
    values: list[float], tie: float
) -> None:
    found = ranks(values, tie)
    for value, (low, high) in zip(values, found, strict=True):
        place = 1 + sum(other > value for other in values)
        assert low <= place <= high
        group = [v for v, ends in zip(values, found, strict=True) if ends[0] == low]
        assert len(group) == high - low + 1
        for other, (first, _) in zip(values, found, strict=True):
            if first > high:
                assert value - other > tie * value


def _outcome(policy: str, live: float, simulated: float) -> FidelityOutcome:
    return FidelityOutcome(
        policy, np.array([live, 1.0]), np.array([simulated, 1.0]), 1.0
    )


def test_a_wrong_order_is_no_rank_and_a_tie_is_said() -> None:
    right = [_outcome("a", 0.91, 0.9), _outcome("b", 0.8, 0.8)]
    first, *order = _summary(right)
    assert first.value == pytest.approx(100 * (0.91 / 0.9 - 1))
    assert [(figure.value, figure.is_reached) for figure in order] == [
        (1, True),
        (2, True),
    ]
    wrong = [_outcome("a", 0.79, 0.9), _outcome("b", 0.8, 0.8)]
    first, *order = _summary(wrong)
    assert not first.is_reached
    assert not any(figure.is_reached for figure in order)
    tied = [_outcome("a", 0.898, 0.9), _outcome("b", 0.899, 0.8999)]
    _, *order = _summary(tied)
    assert all(figure.is_reached for figure in order)
    assert all("a tie of 2" in figure.name for figure in order)
