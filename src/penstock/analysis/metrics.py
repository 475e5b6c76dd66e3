# SPDX-License-Identifier: MIT
"""Objectives: how good a run was, for the applications and for the platform.

With w_i and v_i the work and the volume of application i inside the window of
length T, p_i its nodes, b_i its cap, y_i its yield at the end:

================ ================================================ ==============
MinYield         min y_i                                          papers/1 eq. 8
Utilization      sum p_i w_i / (T sum p_i)                        papers/1 eq. 9
Efficiency       sum p_i (w_i + v_i / b_i) / (T sum p_i)          papers/1 eq. 10
set utilization  sum w_i / (T m), every application counts one    papers/3 eq. 6
Stretch          max T / (w_i + v_i / b_i)                        papers/3 eq. 7
IO-slowdown      geometric mean of (T - w_i) / (v_i / b_i)        long IO-SETS
================ ================================================ ==============

Applications that transferred nothing and lost nothing do not count in the
IO-slowdown. The I/O pressure of an instance is `Instance.pressure`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.sim import Run

__all__ = ["Metrics", "measure"]


@dataclass(frozen=True, slots=True)
class Metrics:
    """The objectives of one run; all but the last two are fractions of 1."""

    min_yield: float
    utilization: float
    efficiency: float
    set_utilization: float
    stretch: float
    io_slowdown: float


def measure(run: Run) -> Metrics:
    """Return the objectives of `run`."""
    instance = run.instance
    length = instance.window.length
    nodes = np.array([a.nodes for a in instance.applications], dtype=np.float64)
    progress = run.work + run.volume / instance.caps
    weight = length * float(nodes.sum())
    slowest = float(progress.min())
    return Metrics(
        min_yield=float(run.yields.min()),
        utilization=float(nodes @ run.work) / weight,
        efficiency=float(nodes @ progress) / weight,
        set_utilization=float(run.work.mean()) / length,
        stretch=length / slowest if slowest > 0 else math.inf,
        io_slowdown=_io_slowdown(run),
    )


def _io_slowdown(run: Run) -> float:
    """Geometric mean over applications of time in I/O over time it needs alone."""
    length = run.instance.window.length
    spent = length - run.work
    alone = run.volume / run.instance.caps
    idle = (alone == 0) & (spent <= 1e-9 * length)
    if idle.all():
        return 1.0
    if (alone[~idle] == 0).any():
        return math.inf
    return float(np.exp(np.mean(np.log(spent[~idle] / alone[~idle]))))
