# SPDX-License-Identifier: MIT
"""How good an allocation with its placement was, papers/2 section 3.3.2.

With T the length of the window, w_j and V_j the work and the volume of application
j inside it, T_j = T - w_j its time in I/O, n_j its number of targets, Q_j its nodes,
and O_r the fraction of T for which target r had something to transfer:

================== ===================================================== =====
Mean-I/O-SlowDown  mean of rho_j = T_j / (V_j / b_j(n_perf))             eq. 5
rho_io             mean of b_j(n_perf) / b_j(n_j): cost of the number
rho_con            mean of rho_j - rho_io_j: cost of waiting for others
I/O-spread         max O_r - min O_r                                     eq. 6
Machine-Idletime   sum T_j Q_j / (T Q)
================== ===================================================== =====

Phases that the window cuts count pro rata. papers/2 (5.4) asks that every application
has completed one compute + I/O phase, as `Run.operations` tells. RATIONALE: it is for
the caller to look: under load a slow application of two phases seldom completes the
first before a fast one ends, and to leave such problems out would keep the lucky ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.model import Column
from penstock.model.problem import Problem
from penstock.sim import Run

__all__ = ["PlacementMetrics", "measure_placement"]


@dataclass(frozen=True, eq=False, slots=True)
class PlacementMetrics:
    """The criteria of one run; less is better, in all of them."""

    mean_io_slowdown: float
    """1: every application as fast as alone on its best number of targets."""
    rho_io: float
    rho_con: float
    io_spread: float
    machine_idletime: float
    slowdowns: Column
    """rho_j by application."""
    occupancy: Column
    """O_r by target."""


def measure_placement(problem: Problem, run: Run) -> PlacementMetrics:
    """Return the criteria of `run`, an instance of `problem`.

    `problem` holds the true bandwidths, whatever the algorithms were told.
    """
    _check(problem, run)
    placed = run.instance.applications
    everyone = range(len(placed))
    length = run.instance.window.length
    fastest = np.array([problem.bandwidth(j, problem.n_perf(j)) for j in everyone])
    alone = [problem.bandwidth(j, len(placed[j].targets)) for j in everyone]
    nodes = np.array([a.nodes for a in placed], dtype=np.float64)
    in_io = length - run.work
    slowdowns = in_io / (run.volume / fastest)
    number = fastest / np.array(alone)
    occupancy = run.occupied / length
    return PlacementMetrics(
        mean_io_slowdown=float(slowdowns.mean()),
        rho_io=float(number.mean()),
        rho_con=float((slowdowns - number).mean()),
        io_spread=float(occupancy.max() - occupancy.min()),
        machine_idletime=float(nodes @ in_io) / (length * problem.compute_nodes),
        slowdowns=slowdowns,
        occupancy=occupancy,
    )


def _check(problem: Problem, run: Run) -> None:
    """Check that the run is one of the problem, and long enough to be measured."""
    names = [application.name for application in problem.applications]
    if [application.name for application in run.instance.applications] != names:
        raise InputError(
            "the run has other applications than the problem",
            remedy="simulate an instance of the same problem",
        )
    for j, name in enumerate(names):
        if not run.volume[j] > 0:
            raise InputError(
                f"{name!r} has transferred nothing by {run.instance.window.end:g} s, "
                "when the window ends",
                where=f"applications[{j}]",
                remedy="give it I/O, or shorter phases",
            )
