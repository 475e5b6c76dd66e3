# SPDX-License-Identifier: MIT
"""Figures that are in no paper: every policy against the bound, and combinations.

`FIGURES` names the module, the place in the paper and the title of every figure; the
README of this folder lists the claims and the run times.
"""

from __future__ import annotations

from typing import Final

from penstock.papers.catalog import figure_entries

__all__ = ["FIGURES"]

#: Figure -> its module, source and title.
FIGURES: Final = figure_entries(
    __name__,
    "",
    {
        "p2-sharing": (
            "sharing",
            "beyond bandwidth sharing (section 7) and target allocation",
            "Policies that share bandwidth, over many targets",
        ),
        "p4-drains": (
            "drains",
            "beyond burst-buffer coordination, with policies of bandwidth sharing",
            "Order of drains: strategies and policies (four applications, up to 45 s)",
        ),
        "frontier": (
            "frontier",
            "beyond the papers",
            "MinYield against Efficiency of every policy, with the bound",
        ),
        "frontier-utilization": (
            "frontier",
            "beyond the papers",
            "MinYield against Utilization of every policy, with the bound",
        ),
        "frontier-gains": (
            "frontier",
            "beyond the papers",
            "The recommended default against the best of the eight, and the bound",
        ),
        "frontier-domination": (
            "frontier",
            "beyond the papers",
            "Who dominates whom: better in MinYield and in Efficiency",
        ),
        "frontier-windows": (
            "frontier",
            "beyond the papers",
            "APEX windows more than 1 % under the MinYield of fair-share",
        ),
        "frontier-saturation": (
            "frontier_saturation",
            "beyond the papers",
            "Where storage is saturated: what any scheduler can have of both",
        ),
        "frontier-table2": (
            "frontier_table2",
            "beyond the papers, on bandwidth sharing, section 5, Table 2",
            "Every policy on the instances of Table 2, over the best schedule known",
        ),
    },
)
