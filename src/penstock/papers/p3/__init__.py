# SPDX-License-Identifier: MIT
"""Figure 1 of IO-SETS and an ablation of it, with their claims.

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
    "IO-SETS",
    {
        "p3-fig1a": (
            "sets",
            "section 4, Figure 1a",
            "Utilization of IO-SETS, exclusive and fair sharing",
        ),
        "p3-fig1b": (
            "sets",
            "section 4, Figure 1b",
            "Stretch of IO-SETS, exclusive and fair sharing",
        ),
        "p3-ablation": (
            "sets",
            "section 3 (the parts of the method)",
            "What sets, priorities and knowledge of periods contribute",
        ),
    },
)
