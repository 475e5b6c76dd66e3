# SPDX-License-Identifier: MIT
"""Figures 2 to 10 and Table 2 of bandwidth sharing, with their claims.

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
    "bandwidth sharing",
    {
        "p1-fig2": (
            "pressure",
            "section 6.2.2, Figure 2",
            "Impact of the aimed I/O pressure",
        ),
        "p1-fig3": (
            "ranks",
            "section 6.2.2, Figure 3",
            "Yields by iteration length",
        ),
        "p1-fig4": ("ranks", "section 6.2.2, Figure 4", "Yields by I/O fraction"),
        "p1-params": (
            "parameters",
            "section 6.2.2 and appendix B.1, impact of the other parameters",
            "Impact of n_small, sigma and noise at I/O pressures 0.8 and 1.1",
        ),
        "p1-table2": (
            "table2",
            "section 5, Table 2",
            "Lower bounds on competitive ratios, stated and measured",
        ),
        "p1-windows": (
            "apex.distributions",
            "sections 6.3.1 and B.2",
            "The windows of the APEX workloads, by machine",
        ),
        "p1-fig5": (
            "apex.fair_share",
            "section 6.3.2, Figure 5",
            "MinYield of fair-share on the APEX workloads",
        ),
        "p1-fig6": (
            "apex.nersc",
            "section 6.3.3, Figure 6",
            "MinYield of all policies over that of fair-share, NERSC",
        ),
        "p1-fig7": (
            "apex.trilab",
            "section 6.3.4, Figure 7",
            "MinYield of all policies over that of fair-share, TRILAB",
        ),
        "p1-fig8": (
            "apex.efficiency",
            "section 6.3.5, Figure 8",
            "Efficiency of all policies on the APEX workloads",
        ),
        "p1-fig9": (
            "apex.utilization",
            "section 6.3.6, Figure 9",
            "Utilization of all policies on the APEX workloads",
        ),
        "p1-fig10": (
            "apex.times",
            "section 6.3.7, Figure 10",
            "Simulation time of all policies on the APEX workloads",
        ),
    },
)
