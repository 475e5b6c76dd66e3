# SPDX-License-Identifier: MIT
"""Rows of Figures 3, 4 and 5 of two-level scheduling that their claims compare.

`penstock.papers.p5.experiment` describes the experiment and our assumptions. Two
variants of the scheduler are compared: that of the paper, which sends all requests to
the storage under overload (infinite depth), and ours, which holds requests back. The
storage has no memory, or one of 2 or 32 GB.

Claims of the paper are judged on its scheduler, with each memory (`over_memory`);
claims on our variant without a memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from penstock.experiments.claims import Tables, Verdict, over, present_values
from penstock.papers.p5.experiment import HOLDING, SENDING

__all__ = [
    "TRANSIENT_S",
    "VARIANTS",
    "column_mean",
    "over_memory",
    "select",
    "share",
    "without_memory",
]

#: Both variants of the scheduler.
VARIANTS: Final = (SENDING, HOLDING)
#: Time after App1 comes on or goes off that is not counted (s).
TRANSIENT_S: Final = 5.0


def over_memory(tables: Tables, check: Callable[[pl.DataFrame], Verdict]) -> Verdict:
    """Check the rows of each memory."""
    memories = tables.rows["memory_gb"].unique().sort().to_list()
    return over(
        "memory in GB", {m: check(tables.rows.filter(memory_gb=m)) for m in memories}
    )


def without_memory(tables: Tables) -> pl.DataFrame:
    """Return the rows of the storage without a memory."""
    return tables.rows.filter(memory_gb=0)


def select(rows: pl.DataFrame, scheduler: str, name: str) -> pl.DataFrame:
    """Return the rows of one application under one scheduler."""
    return rows.filter(
        (pl.col("scheduler") == scheduler) & (pl.col("application") == name)
    )


def column_mean(rows: pl.DataFrame, column: str) -> float:
    """Return the mean of a column; raise NoRowsError if there are no values."""
    return float(present_values(rows[column]).to_numpy().mean())


def share(condition: pl.Series) -> float:
    """Return the share of the rows for which a condition holds."""
    return float(present_values(condition).to_numpy().mean())
