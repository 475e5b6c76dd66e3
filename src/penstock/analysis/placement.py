# SPDX-License-Identifier: MIT
"""Criteria for an allocation with its placement (target allocation, section 3.3.2).

T is the length of the window. Inside it, application j does the work w_j, transfers the
volume V_j, and spends T_j = T - w_j in I/O. It has n_j targets and Q_j nodes. O_r is
the fraction of T for which target r has something to transfer.

================== ===================================================== ==========
Mean-I/O-SlowDown  mean of rho_j = T_j / (V_j / b_j(n_perf))             equation 5
rho_io             mean of b_j(n_perf) / b_j(n_j): cost of the number
rho_con            mean of rho_j - rho_io_j: cost of waiting for others
I/O-spread         max O_r - min O_r                                     equation 6
Machine-Idletime   sum T_j Q_j / (T Q)
================== ===================================================== ==========

A phase that crosses an edge of the window counts pro rata. Section 5.4 of the paper
requires that every application has completed one iteration (`Run.operations`).
RATIONALE: the caller checks this, not this module. Under load, a slow application
seldom completes its first iteration before a fast one ends. Leaving out such problems
would bias the results towards easy problems.
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
    """The criteria of one run; for all of them, smaller is better."""

    mean_io_slowdown: float
    """1 if every application is as fast as alone on its best number of targets."""
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

    `problem` holds the true bandwidths, even if the algorithms had other inputs.
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
    """Check that the run belongs to the problem, and is long enough to be measured."""
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
