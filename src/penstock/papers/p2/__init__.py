# SPDX-License-Identifier: MIT
"""Figures of target allocation, with their claims.

`FIGURES` names the module, the place in the paper and the title of every figure; the
README of this folder lists the claims and the run times.
"""

from __future__ import annotations

from typing import Final

from penstock.papers.catalog import figure_entries

__all__ = ["FIGURES", "GENERATED"]

#: Printed in titles and figures that use OST profiles.
GENERATED: Final = "OST profiles generated from a fit, not measured"

#: Figure -> its module, source and title.
FIGURES: Final = figure_entries(
    __name__,
    "target allocation",
    {
        "p2-fig1": (
            "profiles",
            "section 2, Figure 1",
            "Bandwidth by number of I/O nodes, 189 measured profiles",
        ),
        "p2-fig2": (
            "profiles",
            "section 2, Figure 2",
            f"Bandwidth by number of OSTs, 301 profiles ({GENERATED})",
        ),
        "p2-fig5": (
            "placement",
            "section 6.1.1, Figure 5",
            "Mean-I/O-SlowDown of GNC and random placement, over GC",
        ),
        "p2-fig6": (
            "placement",
            "section 6.1.1, Figure 6",
            "I/O-spread of the placements at I/O-load 0.5",
        ),
        "p2-fig7": (
            "placement",
            "section 6.1.1, Figure 7",
            "I/O-spread of the placements with best-bandwidth",
        ),
        "p2-fig8": (
            "allocation",
            "section 6.1.1, Figure 8",
            "Mean-I/O-SlowDown of the allocations, and its two parts",
        ),
        "p2-fig9": (
            "allocation",
            "section 6.1.2, Figure 9",
            "Machine-Idletime of the allocations",
        ),
        "p2-fig10": (
            "profiles",
            "section 6.2, Figure 10",
            "Profiles, and the curves that stand for their classes",
        ),
        "p2-fig11": (
            "robustness",
            "section 6.2, Figure 11",
            "Three combinations that know only the class of every profile",
        ),
        "p2-fig12": (
            "osts",
            "section 6.3, Figure 12",
            f"Mean-I/O-SlowDown and Machine-Idletime with OSTs ({GENERATED})",
        ),
        "p2-fig13": (
            "osts",
            "section 6.3, Figure 13",
            f"OSTs compared with I/O nodes ({GENERATED})",
        ),
        "p2-fig14": (
            "placement",
            "section 6.3 and appendix B, Figure 14",
            f"Mean-I/O-SlowDown of GNC and random placement, over GC ({GENERATED})",
        ),
        "p2-fig15": (
            "placement",
            "section 6.3 and appendix B, Figure 15",
            f"I/O-spread of the placements at I/O-load 0.5 ({GENERATED})",
        ),
        "p2-fig16": (
            "placement",
            "section 6.3 and appendix B, Figure 16",
            f"I/O-spread of the placements with best-bandwidth ({GENERATED})",
        ),
        "p2-fig17": (
            "allocation",
            "section 6.3 and appendix B, Figure 17",
            f"Mean-I/O-SlowDown of the allocations, and its two parts ({GENERATED})",
        ),
        "p2-fig18": (
            "allocation",
            "section 6.3 and appendix B, Figure 18",
            f"Machine-Idletime of the allocations ({GENERATED})",
        ),
    },
)
