# SPDX-License-Identifier: MIT
"""Objectives: how good a run was, for the applications and for the platform.

With w_i and v_i the work and the volume of application i inside the window of
length T, T_i how long it was there, p_i its nodes, b_i its cap, y_i its last yield:

================ ================================================ ==============
MinYield         min y_i                                          papers/1 eq. 8
Utilization      sum p_i w_i / sum p_i C_i                        papers/1 eq. 9
Efficiency       sum p_i (w_i + v_i / b_i) / sum p_i C_i          papers/1 eq. 10
set utilization  sum w_i / sum C_i, every application counts one  papers/3 eq. 6
Stretch          max T_i / (w_i + v_i / b_i)                      papers/3 eq. 7
IO-slowdown      geometric mean of (T_i - w_i) / (v_i / b_i)      long IO-SETS
================ ================================================ ==============

C_i is T, as in the papers, but T_i for an application that has ended (open runs): from
then on its nodes are not its own. T_i is T, but for an application that starts inside
the window, or ends there: before and after that nobody delays it. Applications that
were not there at all do not count in the last two, nor do those that transferred
nothing and lost nothing in the IO-slowdown. Where all had ended before the window the
fractions are 1. The I/O pressure of an instance is `Instance.pressure`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from penstock.model import Column
from penstock.sim import Run

__all__ = ["Metrics", "measure"]

#: Of the window: what is shorter is rounding.
_INSTANT: Final = 1e-9


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
    present = _present(run)
    if (run.ended < instance.window.end).any():
        counted = np.where(run.ended < instance.window.end, present, length)
        weight, mean = float(nodes @ counted), float(counted.mean())
    else:
        # The sum of products would be another number in its last bits.
        weight, mean = length * float(nodes.sum()), length
    return Metrics(
        min_yield=float(run.yields.min()),
        utilization=_fraction(float(nodes @ run.work), weight),
        efficiency=_fraction(float(nodes @ progress), weight),
        set_utilization=_fraction(float(run.work.mean()), mean),
        stretch=_stretch(present, progress, length),
        io_slowdown=_io_slowdown(present, run),
    )


def _present(run: Run) -> Column:
    """Return T_i: how long every application was there, inside the window (s)."""
    starts = np.array([a.start for a in run.instance.applications])
    present: Column = run.ended - np.maximum(starts, run.instance.window.begin)
    return present.clip(min=0.0)


def _fraction(reached: float, possible: float) -> float:
    """Return the part of what was possible; of nothing nothing is missing."""
    return reached / possible if possible > 0 else 1.0


def _stretch(present: Column, progress: Column, length: float) -> float:
    """Return how many times longer the worst-off took than it would have alone."""
    there = present > _INSTANT * length
    if (progress[there] <= 0).any():
        return math.inf
    return float(np.max(present[there] / progress[there], initial=0.0)) or 1.0


def _io_slowdown(present: Column, run: Run) -> float:
    """Geometric mean over applications of time in I/O over time it needs alone."""
    spent = present - run.work
    alone = run.volume / run.instance.caps
    idle = (alone == 0) & (spent <= _INSTANT * run.instance.window.length)
    if idle.all():
        return 1.0
    if (alone[~idle] == 0).any():
        return math.inf
    return float(np.exp(np.mean(np.log(spent[~idle] / alone[~idle]))))
