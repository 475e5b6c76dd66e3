# SPDX-License-Identifier: MIT
"""Objectives of a run, for the applications and for the platform.

Inside the window of length T, application i does the work w_i and transfers the volume
v_i. It is present for T_i, has p_i nodes, the cap b_i, and the final yield y_i:

================ ================================================ ==================
MinYield         min y_i                                          sharing, eq. 8
Utilization      sum p_i w_i / sum p_i C_i                        sharing, eq. 9
Efficiency       sum p_i (w_i + v_i / b_i) / sum p_i C_i          sharing, eq. 10
cap efficiency   sum b_i (w_i + v_i / b_i) / sum b_i C_i          sharing, Figure 8
set utilization  sum w_i / sum C_i, every application counts one  IO-SETS, eq. 6
Stretch          max T_i / (w_i + v_i / b_i)                      IO-SETS, eq. 7
IO-slowdown      geometric mean of (T_i - w_i) / (v_i / b_i)      IO-SETS, long form
================ ================================================ ==================

"Sharing" is the paper on bandwidth sharing. Its text weighs applications by p_i, but
its Figure 8 shows the cap efficiency and its Figure 9 the set utilization. C_i is T, as
in the papers. In open runs it is T_i for an application that has ended, because its
nodes are free from then on. T_i is T, except for an application that starts or ends
inside the window. Stretch and IO-slowdown leave out applications that were never
present. IO-slowdown also leaves out applications that transferred nothing and lost
nothing. If all applications ended before the window, the fractions are 1. The I/O
pressure of an instance is `Instance.pressure`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from penstock.model import Column
from penstock.sim import Run

__all__ = ["Metrics", "measure"]

#: Fraction of the window below which a duration is a rounding error.
_INSTANT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Metrics:
    """The objectives of one run; the first five are fractions of 1."""

    min_yield: float
    utilization: float
    efficiency: float
    cap_efficiency: float
    set_utilization: float
    stretch: float
    io_slowdown: float


def measure(run: Run) -> Metrics:
    """Return the objectives of `run`."""
    instance = run.instance
    length = instance.window.length
    nodes = np.array([a.nodes for a in instance.applications], dtype=np.float64)
    progress = run.work + run.volume / instance.caps
    present = run.present
    if (run.ended < instance.window.end).any():
        counted = np.where(run.ended < instance.window.end, present, length)
        weight, mean = float(nodes @ counted), float(counted.mean())
        cap_weight = float(instance.caps @ counted)
    else:
        # Not a sum of products: that would change the last bits of the result.
        weight, mean = length * float(nodes.sum()), length
        cap_weight = length * float(instance.caps.sum())
    return Metrics(
        min_yield=float(run.yields.min()),
        utilization=_fraction(float(nodes @ run.work), weight),
        efficiency=_fraction(float(nodes @ progress), weight),
        cap_efficiency=_fraction(float(instance.caps @ progress), cap_weight),
        set_utilization=_fraction(float(run.work.mean()), mean),
        stretch=_stretch(present, progress, length),
        io_slowdown=_io_slowdown(present, run),
    )


def _fraction(reached: float, possible: float) -> float:
    """Return reached / possible, or 1 if nothing was possible."""
    return reached / possible if possible > 0 else 1.0


def _stretch(present: Column, progress: Column, length: float) -> float:
    """Return the largest ratio of presence to progress over all applications."""
    there = present > _INSTANT * length
    if (progress[there] <= 0).any():
        return math.inf
    return float(np.max(present[there] / progress[there], initial=0.0)) or 1.0


def _io_slowdown(present: Column, run: Run) -> float:
    """Return the geometric mean of time in I/O over time in I/O in dedicated mode."""
    spent = present - run.work
    alone = run.volume / run.instance.caps
    idle = (alone == 0) & (spent <= _INSTANT * run.instance.window.length)
    if idle.all():
        return 1.0
    if (alone[~idle] == 0).any():
        return math.inf
    return float(np.exp(np.mean(np.log(spent[~idle] / alone[~idle]))))
