# SPDX-License-Identifier: MIT
"""Figures of the papers by name: one row each, loaded when asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from penstock.errors import UnknownNameError

if TYPE_CHECKING:
    from penstock.experiments.reproduction import Reproduction

__all__ = ["FIGURES", "get_figure"]

#: Figure -> (module in this package, what it shows).
FIGURES: Final = {
    "p1-fig2": ("p1.synthetic", "papers/1 Figure 2: impact of the I/O pressure"),
    "p1-fig3": ("p1.synthetic", "papers/1 Figure 3: yields by iteration length"),
    "p1-fig4": ("p1.synthetic", "papers/1 Figure 4: yields by I/O fraction"),
    "p1-params": ("p1.synthetic", "papers/1 §6.2.2: n_small, sigma, noise"),
    "p1-table2": (
        "p1.table2",
        "papers/1 Table 2: lower bounds on competitive ratios",
    ),
    "p1-fig5": ("p1.apex", "papers/1 Figure 5: MinYield of fair-share on APEX"),
    "p1-fig6": ("p1.apex", "papers/1 Figure 6: MinYield over fair-share, NERSC"),
    "p1-fig7": ("p1.apex", "papers/1 Figure 7: MinYield over fair-share, TRILAB"),
    "p1-fig8": ("p1.apex", "papers/1 Figure 8: Efficiency on APEX"),
    "p1-fig9": ("p1.apex", "papers/1 Figure 9: Utilization on APEX"),
    "p1-fig10": ("p1.apex", "papers/1 Figure 10: simulation time on APEX"),
    "p2-fig1": ("p2.profiles", "papers/2 Figure 1: profiles by number of I/O nodes"),
    "p2-fig2": ("p2.profiles", "papers/2 Figure 2: by number of OSTs (generated)"),
    "p2-fig5": ("p2.placement", "papers/2 Figure 5: placements, relative slowdown"),
    "p2-fig6": ("p2.placement", "papers/2 Figure 6: I/O-spread at I/O-load 0.5"),
    "p2-fig7": ("p2.placement", "papers/2 Figure 7: I/O-spread and I/O-load"),
    "p2-fig8": ("p2.allocation", "papers/2 Figure 8: allocations, Mean-I/O-SlowDown"),
    "p2-fig9": ("p2.allocation", "papers/2 Figure 9: allocations, Machine-Idletime"),
    "p2-fig10": ("p2.profiles", "papers/2 Figure 10: one curve per class"),
    "p2-fig11": ("p2.robustness", "papers/2 Figure 11: told only the class"),
    "p2-fig12": ("p2.osts", "papers/2 Figure 12: OSTs (profiles generated)"),
    "p2-fig13": ("p2.osts", "papers/2 Figure 13: OSTs and I/O nodes compared"),
    "p2-fig14": ("p2.placement", "papers/2 Figure 14: Figure 5 with OSTs"),
    "p2-fig15": ("p2.placement", "papers/2 Figure 15: Figure 6 with OSTs"),
    "p2-fig16": ("p2.placement", "papers/2 Figure 16: Figure 7 with OSTs"),
    "p2-fig17": ("p2.allocation", "papers/2 Figure 17: Figure 8 with OSTs"),
    "p2-fig18": ("p2.allocation", "papers/2 Figure 18: Figure 9 with OSTs"),
    "p2-sharing": (
        "beyond.sharing",
        "papers/1 and papers/2: sharing policies over many targets",
    ),
    "p3-fig1a": ("p3.sets", "papers/3 Figure 1a: Utilization"),
    "p3-fig1b": ("p3.sets", "papers/3 Figure 1b: Stretch"),
    "p3-ablation": ("p3.sets", "papers/3: sets without priorities, and so on"),
    "p4-fig4": ("p4.delta", "papers/4 Figure 4: interference without a strategy"),
    "p4-fig5": ("p4.delta", "papers/4 Figure 5: strategy 1a"),
    "p4-fig6": ("p4.delta", "papers/4 Figure 6: strategy 1b"),
    "p4-fig7": ("p4.delta", "papers/4 Figure 7: strategy 2a"),
    "p4-fig8": ("p4.delta", "papers/4 Figure 8: strategy 2b"),
    "p4-fig9": ("p4.partition", "papers/4 Figure 9: static partitions (3a)"),
    "p4-fig10": ("p4.partition", "papers/4 Figure 10: dynamic partitions (3b)"),
    "p4-fig11": ("p4.applications", "papers/4 Figure 11: LANL App1 and others"),
    "p4-fig12": ("p4.applications", "papers/4 Figure 12: CM1 and others"),
    "p4-fig13": ("p4.scaling", "papers/4 Figure 13: 1 to 4 instances at a time"),
    "p4-fig14": ("p4.scaling", "papers/4 Figure 14: strategies for 3 at a time"),
    "p4-fig15": ("p4.limits", "papers/4 Figure 15: where buffering does not help"),
    "p4-fig16": ("p4.limits", "papers/4 Figure 16: durations of requests"),
    "p4-drains": ("beyond.drains", "papers/4 and papers/1: policies that order drains"),
    "p5-fig1": ("p5.interference", "papers/5 Figure 1: BTIO beside IOR (fitted)"),
    "p5-fig3": ("p5.slo", "papers/5 Figure 3: issue rates of two IORs"),
    "p5-fig4": ("p5.slo", "papers/5 Figure 4: depth of the EDF queue"),
    "p5-fig5": ("p5.slo", "papers/5 Figure 5: 95th percentile of response times"),
    "frontier": (
        "beyond.frontier",
        "papers/1 and beyond: every policy, with the bound",
    ),
    "frontier-utilization": (
        "beyond.frontier",
        "papers/1 and beyond: the same, Utilization",
    ),
    "frontier-gains": (
        "beyond.frontier",
        "papers/1 and beyond: the recommended default",
    ),
    "frontier-domination": (
        "beyond.frontier",
        "papers/1 and beyond: who dominates whom",
    ),
    "frontier-windows": (
        "beyond.frontier",
        "papers/1 and beyond: APEX windows, fair-share",
    ),
    "frontier-saturation": (
        "beyond.frontier_saturation",
        "papers/1 and beyond: what saturated storage allows",
    ),
    "frontier-table2": (
        "beyond.frontier_table2",
        "papers/1 and beyond: on Table 2 of papers/1",
    ),
}


def get_figure(name: str) -> Reproduction:
    """Return the declaration of a figure."""
    if name not in FIGURES:
        raise UnknownNameError("figure", name, [*FIGURES, "all"])
    module = importlib.import_module(f"{__name__}.{FIGURES[name][0]}")
    figure: Reproduction = module.FIGURES[name]
    return figure
