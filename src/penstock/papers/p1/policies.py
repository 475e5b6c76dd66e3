# SPDX-License-Identifier: MIT
"""The policies that bandwidth sharing compares, and the groups its sentences name."""

from typing import Final

__all__ = [
    "BEST",
    "COM",
    "EIGHT",
    "FAIR",
    "LOOK",
    "PERIODIC",
    "SECOND_SET",
    "SEVEN",
    "THIRD_SET",
    "YIELD",
    "YIELD_BASED",
]

FAIR: Final = "fair-share"
COM: Final = "greedy-com"
YIELD: Final = "greedy-yield"
LOOK: Final = "look-ahead-greedy-yield"
PERIODIC: Final = "periodic-greedy-yield"
BEST: Final = "best-next-event"

#: All policies of the paper, in the order of its Table 2.
EIGHT: Final = (FAIR, "fcfs", "set-10", YIELD, COM, LOOK, PERIODIC, BEST)
#: All but fair-share, to which section 6.3 compares the others.
SEVEN: Final = tuple(policy for policy in EIGHT if policy != FAIR)
#: The policies that decide by the yields of applications.
YIELD_BASED: Final = (YIELD, LOOK, PERIODIC, BEST)
#: Section 6.3.3 has three sets of policies; greedy-com alone is the first one.
SECOND_SET: Final = ("fcfs", "set-10", YIELD)
THIRD_SET: Final = (LOOK, PERIODIC, BEST)
