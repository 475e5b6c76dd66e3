# SPDX-License-Identifier: MIT
"""The policies that the figures of a paper show."""

from typing import Final

__all__ = ["EIGHT"]

#: Those of papers/1, in the order of its Table 2.
EIGHT: Final = (
    "fair-share",
    "fcfs",
    "set-10",
    "greedy-yield",
    "greedy-com",
    "look-ahead-greedy-yield",
    "periodic-greedy-yield",
    "best-next-event",
)
