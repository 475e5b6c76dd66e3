# SPDX-License-Identifier: MIT
"""Bands of the I/O pressure W, and the other names that the figures of APEX share.

W is the volume that the jobs of a window would transfer in dedicated mode, over what
the storage can transfer in the window (equation 11).

- The published Figure 5 shows 0.4 <= W <= 1.4, and Figures 6 to 10 show
  0.5 <= W <= 1.4. Our figures show the same ranges, and their claims are checked inside
  them. "Low W" is the lowest quarter, W < 0.75; "high W" is W >= 1.
- Where the paper says "few", "similar" or "high", the sentence of the claim gives the
  number that its check uses.
- The bandwidths of the machines M_t are fitted to Figure 5 of the paper
  (`penstock.workloads.apex.table`). Claims that repeat this fit say "fitted".
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

__all__ = [
    "BANDS",
    "BEYOND",
    "CONCLUSION",
    "EFFICIENCIES",
    "EVERY_WINDOW",
    "FIGURES_6_TO_10",
    "FIGURE_5",
    "FIRST",
    "HIGH",
    "LAST",
    "LOW",
    "NEAR_ONE",
    "NERSC",
    "SAME",
    "SYNTHESIS",
    "TENTHS",
    "TRACES",
    "TRILAB",
    "UNSATURATED",
    "UTILIZATIONS",
    "Band",
]

Band: TypeAlias = tuple[float, float]
"""An interval of W: from the first number on, below the second."""

NERSC: Final = "NERSC"
TRILAB: Final = "TRILAB"
TRACES: Final = (NERSC, TRILAB)

#: The ranges of W that the published figures show, both ends included.
FIGURE_5: Final = (0.4, 1.4)
FIGURES_6_TO_10: Final = (0.5, 1.4)
#: All values of W.
EVERY_WINDOW: Final = (0.0, math.inf)

LOW: Final = (0.0, 0.75)
NEAR_ONE: Final = (0.75, 1.0)
HIGH: Final = (1.0, math.inf)
BANDS: Final = {"W<0.75": LOW, "0.75<=W<1": NEAR_ONE, "W>=1": HIGH}
UNSATURATED: Final = (0.0, 1.0)
#: The first and the last tenth before saturation that Figures 6 to 10 show.
FIRST: Final = (0.5, 0.6)
LAST: Final = (0.9, 1.0)
BEYOND: Final = (1.25, math.inf)
#: A ratio this close to 1 is neither lower nor higher than 1.
SAME: Final = 1e-3

#: The sources of claims that the synthesis and the conclusion make.
SYNTHESIS: Final = "bandwidth sharing, section 6.3.8"
CONCLUSION: Final = "bandwidth sharing, section 7"

#: Efficiency and Utilization: the weights of the applications -> the column. The text
#: weighs by nodes; the figures weigh Efficiency by caps and count every job once in
#: Utilization.
EFFICIENCIES: Final = {"p_i (text)": "efficiency", "b_i (figure)": "cap_efficiency"}
UTILIZATIONS: Final = {"p_i (text)": "utilization", "1 (figure)": "set_utilization"}

#: Intervals of W of width 0.1, the last one with its upper end.
TENTHS: Final = tuple(
    (tenth / 10, (tenth + 1) / 10 if tenth < 13 else 1.41) for tenth in range(4, 14)
)
