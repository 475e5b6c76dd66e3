# SPDX-License-Identifier: MIT
"""Figures 4 to 16 of burst-buffer coordination, with their claims.

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
    "burst-buffer coordination",
    {
        "p4-fig4": (
            "delta",
            "section V-B.1, Figure 4",
            "Interference without a strategy",
        ),
        "p4-fig5": (
            "delta",
            "section V-B.2, Figure 5",
            "Strategy 1a: A stages until B is done",
        ),
        "p4-fig6": (
            "delta",
            "section V-B.2, Figure 6",
            "Strategy 1b: A stages, and flushes early",
        ),
        "p4-fig7": (
            "delta",
            "section V-B.2, Figure 7",
            "Strategy 2a: B stages until A is done",
        ),
        "p4-fig8": (
            "delta",
            "section V-B.2, Figure 8",
            "Strategy 2b: B stages, and flushes early",
        ),
        "p4-fig9": (
            "partition",
            "section V-B.3, Figure 9",
            "Static partitions of 8 servers (3a)",
        ),
        "p4-fig10": (
            "partition",
            "section V-B.3, Figure 10",
            "Dynamic partitions of 8 servers (3b)",
        ),
        "p4-fig11": (
            "applications",
            "section V-B.4, Figure 11",
            "LANL App1 beside LANL App2 and CM1",
        ),
        "p4-fig12": (
            "applications",
            "section V-B.4, Figure 12",
            "CM1 beside LANL App1 and LANL App2",
        ),
        "p4-fig13": (
            "scaling",
            "section V-C, Figure 13",
            "Interference of 1 to 4 equal applications",
        ),
        "p4-fig14": (
            "scaling",
            "section V-C, Figure 14",
            "Three equal applications under all strategies",
        ),
        "p4-fig15": (
            "limits",
            "section V-D, Figure 15",
            "Bandwidth of an application that pauses, with and without buffering",
        ),
        "p4-fig16": (
            "limits",
            "section V-D, Figure 16",
            "Durations of the requests of single processes",
        ),
    },
)
