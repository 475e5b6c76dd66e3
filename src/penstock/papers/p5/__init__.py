# SPDX-License-Identifier: MIT
"""Figures of two-level scheduling, with their claims.

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
    "two-level scheduling",
    {
        "p5-fig1": (
            "interference",
            "section 2, Figure 1",
            "Slowdown of BTIO beside IOR by the size of its requests (fitted)",
        ),
        "p5-fig3": (
            "issue_rates",
            "section 4.2, Figure 3",
            "Issue rates of two IORs under the two-level scheduler",
        ),
        "p5-fig4": (
            "depth",
            "section 4.2.1, Figure 4",
            "Adaptive depth of the EDF queue",
        ),
        "p5-fig5": (
            "response_times",
            "section 4.2.2, Figure 5",
            "95th percentile of response times, second by second",
        ),
    },
)
