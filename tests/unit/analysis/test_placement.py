# SPDX-License-Identifier: MIT
"""The criteria of target allocation, by hand and on runs with a closed form."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.analysis.placement import measure_placement
from penstock.errors import InputError
from penstock.model import Application, Window
from penstock.model.problem import Problem
from penstock.sim import simulate
from unit.placement.problems import application, problem


def pair() -> Problem:
    """Return two applications on 3 targets of a machine with 16 nodes."""
    return problem(
        3,
        application("a", [2.0, 4.0, 8.0], nodes=8),
        application("b", [5.0, 10.0], nodes=4),
        compute_nodes=16,
    )


def run_of(task: Problem, placement: Any, length: float, **columns: Any) -> Any:
    """Return a run with the given columns, as a simulation returns it."""
    rest = {key: np.array(value) for key, value in columns.items()}
    rest.setdefault("operations", np.ones(len(task.applications), dtype=np.int64))
    instance = task.instance(placement, Window(0.0, length))
    return SimpleNamespace(instance=instance, **rest)


def test_all_criteria_by_hand() -> None:
    run = run_of(
        pair(),
        [(0, 1), (1,)],
        100.0,
        work=[60.0, 90.0],
        volume=[80.0, 25.0],
        occupied=[40.0, 45.0, 0.0],
    )
    criteria = measure_placement(pair(), run)
    # a: 40 s for what takes 80 / 8 = 10 s; b: 10 s for 25 / 10 = 2.5 s.
    assert criteria.slowdowns.tolist() == [4.0, 4.0]
    assert criteria.mean_io_slowdown == 4.0
    # Of 8 and 10 B/s on the best numbers, they have 4 and 5 alone.
    assert criteria.rho_io == 2.0
    assert criteria.rho_con == 2.0
    assert criteria.occupancy.tolist() == [0.4, 0.45, 0.0]
    assert criteria.io_spread == 0.45
    # 40 s x 8 nodes and 10 s x 4 nodes, of 100 s x 16 nodes.
    assert criteria.machine_idletime == pytest.approx(360 / 1600)


def test_means_are_over_applications() -> None:
    run = run_of(
        pair(),
        [(0, 1, 2), (1,)],
        10.0,
        work=[5.0, 4.0],
        volume=[40.0, 15.0],
        occupied=[5.0, 6.0, 5.0],
    )
    criteria = measure_placement(pair(), run)
    assert criteria.slowdowns.tolist() == [1.0, 4.0]
    assert criteria.mean_io_slowdown == 2.5
    assert (criteria.rho_io, criteria.rho_con) == (1.5, 1.0)


def test_every_application_must_have_transferred_something() -> None:
    columns = {"work": [60.0, 99.0], "volume": [80.0, 0.0], "occupied": [1.0] * 3}
    run = run_of(pair(), [(0,), (1,)], 100.0, **columns)
    with pytest.raises(InputError) as caught:
        measure_placement(pair(), run)
    assert str(caught.value).startswith("applications[1]: 'b' has transferred nothing")


def test_a_phase_that_is_not_complete_counts_pro_rata() -> None:
    columns = {"work": [60.0, 99.0], "volume": [80.0, 5.0], "occupied": [1.0] * 3}
    run = run_of(pair(), [(0,), (1,)], 100.0, operations=[3, 0], **columns)
    assert measure_placement(pair(), run).slowdowns.min() > 0


def test_a_run_of_other_applications_is_refused() -> None:
    run = run_of(pair(), [(0,), (1,)], 1.0, work=[], volume=[], occupied=[])
    other = problem(3, application("a", [1.0]), application("c", [1.0]))
    with pytest.raises(InputError, match="other applications than the problem"):
        measure_placement(other, run)


# --- Simulated --------------------------------------------------------------------


def synchronous(name: str, nodes: int) -> Application:
    """Return 6 s of work and 4 s of I/O on 1 target (2 s on 2), time and again."""
    phases = [("work", 6.0), ("io", 4.0)] * 4
    return Application.from_phases(name, nodes, phases, profile=[1.0, 2.0])


def measured(*placement: tuple[int, ...], length: float) -> Any:
    """Return the criteria of a simulation on 2 targets and 8 nodes."""
    applications = [synchronous(f"a{j}", 4) for j in range(len(placement))]
    task = problem(2, *applications, compute_nodes=8)
    instance = task.instance(placement, Window(0.0, length))
    return measure_placement(task, simulate(instance, "fair-share", compiled=False))


def test_an_application_with_its_own_target_is_not_slowed_down() -> None:
    criteria = measured((0,), (1,), length=20.0)
    assert criteria.slowdowns.tolist() == [2.0, 2.0]
    assert (criteria.rho_io, criteria.rho_con) == (2.0, 0.0)
    assert criteria.occupancy.tolist() == [0.4, 0.4]
    assert criteria.io_spread == 0.0
    assert criteria.machine_idletime == pytest.approx(0.4)


def test_applications_that_share_a_target_take_twice_as_long() -> None:
    # 6 s of work, then both transfer 4 from the one target, 8 s long.
    criteria = measured((0,), (0,), length=28.0)
    assert criteria.slowdowns.tolist() == [4.0, 4.0]
    assert (criteria.rho_io, criteria.rho_con) == (2.0, 2.0)
    assert criteria.occupancy.tolist() == pytest.approx([16 / 28, 0.0])
    assert criteria.machine_idletime == pytest.approx(16 / 28)


def test_applications_that_share_all_targets_run_at_half_speed() -> None:
    criteria = measured((0, 1), (0, 1), length=20.0)
    assert criteria.slowdowns.tolist() == [2.0, 2.0]
    assert (criteria.rho_io, criteria.rho_con) == (1.0, 1.0)
    assert criteria.occupancy.tolist() == [0.4, 0.4]
