# SPDX-License-Identifier: MIT
"""What papers/1 (6.3.1 to 6.3.8) says of the APEX workloads, as checks.

Where the paper says "few", "similar" or "high", the check has a number; it is in the
text of the claim. W is the I/O pressure of a window; a *ratio* is the MinYield of a
strategy over that of FairShare in the same window. A ratio within 0.001 of 1 is
neither lower nor higher. A check that finds no window to look at does not hold.
"""

from __future__ import annotations

from typing import Final

from penstock.papers.p1.apex_claims import (
    efficiency,
    fair_share,
    nersc,
    times,
    trilab,
    utilization,
)
from penstock.papers.p1.apex_claims.windows import timed

__all__ = ["BY_FIGURE", "timed"]

#: The claims of each figure.
BY_FIGURE: Final = {
    5: fair_share.CLAIMS,
    6: nersc.CLAIMS,
    7: trilab.CLAIMS,
    8: efficiency.CLAIMS,
    9: utilization.CLAIMS,
    10: times.CLAIMS,
}
