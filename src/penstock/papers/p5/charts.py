# SPDX-License-Identifier: MIT
"""Drawings of two-level scheduling: a panel per scheduler and memory, over time."""

from __future__ import annotations

from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.output.charts import tidy
from penstock.papers.p5.experiment import (
    DURATION_S,
    HOLDING,
    MEMORIES_GB,
    PERIOD_S,
    SENDING,
)

__all__ = ["SHOWN", "first_instance", "new_panels", "panel_title"]

_TITLES: Final = {
    "fifo": "fifo",
    "sfq": "sfq (D = 8)",
    "edf": "edf (depth 8)",
    SENDING: "two-level, as in the paper (overload=send)",
    HOLDING: "two-level (overload=hold)",
}


def new_panels(number: int, height: float) -> tuple[Figure, Any]:
    """Return a figure with panels below each other; grey where App1 is on."""
    drawn = Figure(figsize=(11, height * number + 0.4), layout="constrained")
    panels = drawn.subplots(number, 1, sharex=True, squeeze=False)[:, 0]
    for panel in panels:
        tidy(panel, "y")
        for start in range(0, int(DURATION_S), int(2 * PERIOD_S)):
            panel.axvspan(
                start, start + PERIOD_S, color="#f1f1f1", linewidth=0, zorder=0
            )
    panels[-1].set_xlabel("time (s); grey: App1 is on; one run is drawn")
    panels[-1].set_xlim(0, DURATION_S)
    return drawn, panels


#: Panels of Figures 3 and 4: scheduler and memory (GB).
SHOWN: Final = (*((SENDING, memory) for memory in MEMORIES_GB), (HOLDING, 0))


def panel_title(scheduler: str, memory_gb: int) -> str:
    """Return the scheduler and the memory of a panel in words."""
    memory = f"{memory_gb} GB of memory" if memory_gb else "no memory"
    return f"{_TITLES[scheduler]}, {memory}"


def first_instance(rows: pl.DataFrame, scheduler: str, memory_gb: int) -> pl.DataFrame:
    """Return the rows of the run that is drawn."""
    return rows.filter(scheduler=scheduler, memory_gb=memory_gb, instance=1)
