# SPDX-License-Identifier: MIT
"""Placement problems of target allocation: load, nodes, phases, streams, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from penstock.errors import InputError, UnknownNameError
from penstock.model.problem import Problem, problem_to_document
from penstock.workloads.parameters import parse_settings
from penstock.workloads.profiles.profiles import profiles
from penstock.workloads.striped import (
    Striped,
    largest_ratio,
    minimum_load,
    node_counts,
)


def _problems(workload: Striped, count: int, seed: int = 1) -> list[Problem]:
    return [workload.problem(seed, index) for index in range(count)]


def _ratios(problems: list[Problem]) -> np.ndarray:
    """Return X = T_cpu / T_io(1) of all applications."""
    return np.array(
        [
            problem.compute_time[j] / problem.io_time(j, 1)
            for problem in problems
            for j in range(len(problem.applications))
        ]
    )


# --- Load -------------------------------------------------------------------------


@given(st.floats(1e-6, 0.999))
def test_the_largest_ratio_solves_its_equation(stress: float) -> None:
    bound = largest_ratio(stress)
    assert bound > 0
    assert np.log1p(bound) / bound == pytest.approx(stress, rel=1e-9)


@given(st.floats(0.999, 1.0, exclude_max=True))
def test_the_largest_ratio_near_one(stress: float) -> None:
    bound = largest_ratio(stress)
    mean = np.log1p(bound) / bound if bound > 0 else 1.0
    assert mean == pytest.approx(stress, abs=5e-5)


def test_the_largest_ratio_of_the_paper() -> None:
    # Theta = 1, N = 20, K = 60: log(1 + b) = b / 3.
    assert largest_ratio(1 / 3) == pytest.approx(5.711441083, rel=1e-9)


@pytest.mark.parametrize("case", ["io-nodes", "osts"])
@pytest.mark.parametrize(
    ("load", "applications", "targets"),
    [(1.0, 60, 20), (0.2, 60, 20), (2.5, 60, 20), (1.0, 100, 20), (0.5, 10, 16)],
)
def test_mean_stress_and_load_are_those_aimed_at(
    load: float, applications: int, targets: int, case: str
) -> None:
    workload = Striped(load=load, applications=applications, targets=targets, case=case)
    problems = _problems(workload, 40)
    stress = 1 / (1 + _ratios(problems))
    aimed = load * targets / applications
    # E[1 / (1 + X)^2] = 1 / (1 + b) for X uniform in [0, b].
    variance = 1 / (1 + largest_ratio(aimed)) - aimed**2
    error = np.sqrt(variance / stress.size)
    assert abs(stress.mean() - aimed) < 3.5 * error
    loads = [problem.io_load([1] * applications) for problem in problems]
    assert abs(np.mean(loads) - load) < 3.5 * error * load / aimed
    assert np.std(loads) < 2 * load / aimed * np.sqrt(variance / applications)


def test_ratios_are_uniform() -> None:
    ratios = _ratios(_problems(Striped(), 40)) / largest_ratio(1 / 3)
    assert stats.kstest(ratios, "uniform").pvalue > 0.01


# --- Applications -----------------------------------------------------------------


def test_profiles_and_phases_are_uniform_and_do_not_depend_on_one_another() -> None:
    applications = [a for p in _problems(Striped(), 100) for a in p.applications]
    names = [profile.name for profile in profiles("io-nodes")]
    drawn = np.array([names.index(a.group) for a in applications])
    phases = np.array([len(a.volume) for a in applications])
    assert stats.chisquare(np.bincount(drawn, minlength=189)).pvalue > 0.01
    counts = np.bincount(phases, minlength=21)
    assert counts[:2].sum() == 0
    assert counts.size == 21
    assert stats.chisquare(counts[2:]).pvalue > 0.01
    ratios = _ratios(_problems(Striped(), 100))
    for one, other in ((drawn, phases), (drawn, ratios), (phases, ratios)):
        assert stats.spearmanr(one, other).pvalue > 0.01
    # Neighbours, too: the streams of two applications have nothing in common.
    assert stats.spearmanr(ratios[:-1], ratios[1:]).pvalue > 0.01


@pytest.mark.parametrize("case", ["io-nodes", "osts"])
def test_every_application_fills_the_horizon_in_equal_phases(case: str) -> None:
    known = {profile.name: profile.bandwidth for profile in profiles(case)}
    problem = Striped(case=case, horizon=700.0).problem(2, 3)
    assert (problem.resources, problem.compute_nodes) == (20, 480)
    assert len(problem.applications) == 60
    for j, application in enumerate(problem.applications):
        assert application.name == f"app{j}"
        assert application.profile.tolist() == known[application.group].tolist()
        total = problem.compute_time[j] + problem.io_time(j, 1)
        assert total == pytest.approx(700.0, rel=1e-12)
        assert application.work[-1] == 0.0
        assert len(set(application.work[:-1].tolist())) == 1
        assert len(set(application.volume.tolist())) == 1


# --- Nodes ------------------------------------------------------------------------


def test_nodes_of_the_paper() -> None:
    assert node_counts(60, 480) == [60] * 6 + [5] * 12 + [4] * 6 + [1] * 36


@pytest.mark.parametrize(
    ("applications", "compute_nodes", "nodes"),
    [
        (1, 480, [360]),
        (1, 1, [1]),
        (2, 100, [75, 20]),
        (3, 100, [75, 20, 5]),
        (10, 1000, [750, 67, 67, 66, *[9] * 2, *[8] * 4]),
        (10, 10, [1] * 10),
        (10, 12, [3, *[1] * 9]),
        (20, 40, [11, 11, *[1] * 18]),
        (40, 480, [90] * 4 + [8] * 12 + [1] * 24),
    ],
)
def test_nodes_by_hand(applications: int, compute_nodes: int, nodes: list[int]) -> None:
    assert node_counts(applications, compute_nodes) == nodes


@given(st.integers(1, 300), st.integers(0, 5000))
def test_nodes_never_exceed_the_machine(applications: int, more: int) -> None:
    compute_nodes = applications + more
    nodes = node_counts(applications, compute_nodes)
    assert len(nodes) == applications
    assert min(nodes) >= 1
    assert sum(nodes) <= compute_nodes


@given(st.integers(1, 30), st.integers(13, 100))
def test_shares_of_the_classes_where_nodes_abound(tens: int, factor: int) -> None:
    applications, compute_nodes = 10 * tens, 200 * tens * factor
    nodes = node_counts(applications, compute_nodes)
    assert sum(nodes) == compute_nodes
    assert sum(nodes[:tens]) == 0.75 * compute_nodes
    assert sum(nodes[tens : 4 * tens]) == 0.20 * compute_nodes
    assert nodes == sorted(nodes, reverse=True)


# --- Streams ----------------------------------------------------------------------


def _document(workload: Striped, seed: int, index: int) -> str:
    return json.dumps(problem_to_document(workload.problem(seed, index)))


def test_seed_and_index_decide_alone() -> None:
    workload = Striped()
    drawn = {_document(workload, s, k) for s in range(3) for k in range(3)}
    assert len(drawn) == 9
    assert _document(workload, 2, 1) == _document(Striped(), 2, 1)


def test_an_application_does_not_depend_on_how_many_there_are() -> None:
    few = Striped(applications=30, load=0.5).problem(4, 7).applications
    many = Striped(applications=60, load=1.0).problem(4, 7).applications
    for one, other in zip(few, many, strict=False):
        assert one.group == other.group
        assert one.volume.tolist() == other.volume.tolist()
        assert one.work.tolist() == other.work.tolist()


def test_another_process_draws_the_same_bytes() -> None:
    script = (
        "import json\n"
        "from penstock.model.problem import problem_to_document\n"
        "from penstock.workloads.striped import Striped\n"
        "problem = Striped(case='osts').problem(7, 23)\n"
        "print(json.dumps(problem_to_document(problem)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == _document(Striped(case="osts"), 7, 23)


# --- Minimum load -----------------------------------------------------------------


@pytest.mark.parametrize("index", range(5))
def test_no_allocation_has_less_than_the_minimum_load(index: int) -> None:
    workload = Striped(applications=4, targets=5, compute_nodes=16, load=0.4)
    problem = workload.problem(1, index)
    loads = [problem.io_load(widths) for widths in product(range(1, 6), repeat=4)]
    assert minimum_load(problem) == pytest.approx(min(loads), rel=1e-12)


# --- Parameters -------------------------------------------------------------------


def test_settings_by_name_and_by_symbol() -> None:
    settings = ["Theta=0.5", "K=30", "N=10", "Q=100", "horizon=60", "case=osts"]
    made = Striped(**parse_settings(Striped, settings))
    assert made == Striped(0.5, 30, 10, 100, 60.0, "osts")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"load": 3.0}, "60 applications cannot have an I/O-load of 3 on 20 targets"),
        ({"load": 4.0}, "less than K / N = 3"),
        ({"load": 0.0}, "more than 0"),
        ({"load": -1.0}, "more than 0"),
        ({"load": float("nan")}, "load: nan is out of range"),
        ({"applications": 20}, "less than K / N = 1"),
        ({"applications": 481}, "481 applications do not fit on 480 nodes"),
        ({"applications": 0}, "applications: 0 is out of range"),
        ({"targets": 0}, "targets: 0 is out of range"),
        ({"compute_nodes": 0}, "compute_nodes: 0 is out of range"),
        ({"horizon": 0.0}, "horizon: 0.0 is out of range"),
    ],
)
def test_parameters_without_a_problem_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        Striped(**settings)
    assert message in str(caught.value)


def test_an_unknown_set_of_profiles_lists_the_known() -> None:
    with pytest.raises(UnknownNameError, match="known: io-nodes, osts"):
        Striped(case="tapes")
