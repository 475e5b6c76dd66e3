# SPDX-License-Identifier: MIT
"""The policies that bandwidth sharing compares, and the groups its sentences name."""

from typing import Final

__all__ = [
    "ALL_BUT_FAIR_SHARE",
    "ALL_POLICIES",
    "BEST_NEXT_EVENT",
    "FAIR_SHARE",
    "GREEDY_COM",
    "GREEDY_YIELD",
    "LOOK_AHEAD",
    "PERIODIC",
    "SECOND_SET",
    "THIRD_SET",
    "YIELD_BASED",
]

FAIR_SHARE: Final = "fair-share"
GREEDY_COM: Final = "greedy-com"
GREEDY_YIELD: Final = "greedy-yield"
LOOK_AHEAD: Final = "look-ahead-greedy-yield"
PERIODIC: Final = "periodic-greedy-yield"
BEST_NEXT_EVENT: Final = "best-next-event"

#: All policies of the paper, in the order of its Table 2.
ALL_POLICIES: Final = (
    FAIR_SHARE,
    "fcfs",
    "set-10",
    GREEDY_YIELD,
    GREEDY_COM,
    LOOK_AHEAD,
    PERIODIC,
    BEST_NEXT_EVENT,
)
#: All but fair-share, to which section 6.3 compares the others.
ALL_BUT_FAIR_SHARE: Final = tuple(
    policy for policy in ALL_POLICIES if policy != FAIR_SHARE
)
#: The policies that decide by the yields of applications.
YIELD_BASED: Final = (GREEDY_YIELD, LOOK_AHEAD, PERIODIC, BEST_NEXT_EVENT)
#: Section 6.3.3 has three sets of policies; greedy-com alone is the first one.
SECOND_SET: Final = ("fcfs", "set-10", GREEDY_YIELD)
THIRD_SET: Final = (LOOK_AHEAD, PERIODIC, BEST_NEXT_EVENT)
