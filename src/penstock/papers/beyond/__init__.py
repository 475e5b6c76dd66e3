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
            "Sharing policies on many storage targets",
        ),
        "p4-drains": (
            "drains",
            "beyond burst-buffer coordination, with policies of bandwidth sharing",
            "Order of drains: strategies against policies (four applications)",
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
            "The recommended default against the best of the eight and the bound",
        ),
        "frontier-domination": (
            "frontier",
            "beyond the papers",
            "Domination: policies better in both MinYield and Efficiency",
        ),
        "frontier-windows": (
            "frontier",
            "beyond the papers",
            "APEX windows with a MinYield more than 1 % below fair-share",
        ),
        "frontier-horizon": (
            "frontier_horizon",
            "beyond the papers",
            "Four policies on the synthetic workload at the horizon of the paper",
        ),
        "frontier-saturation": (
            "frontier_saturation",
            "beyond the papers",
            "Saturated storage: the bound on MinYield and Efficiency together",
        ),
        "frontier-table2": (
            "frontier_table2",
            "beyond the papers, on bandwidth sharing, section 5, Table 2",
            "Every policy on the instances of Table 2, against the best known schedule",
        ),
    },
)
