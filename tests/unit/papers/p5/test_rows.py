# SPDX-License-Identifier: MIT
"""The rows that claims about two-level scheduling compare."""

from __future__ import annotations

import polars as pl
import pytest

from penstock.experiments.claims import NoRowsError, Tables, Verdict
from penstock.papers.p5.rows import (
    column_mean,
    over_memory,
    select,
    share,
    without_memory,
)

ROWS = pl.DataFrame(
    {
        "memory_gb": [0, 0, 2, 2],
        "scheduler": ["fifo", "edf", "fifo", "edf"],
        "application": ["App1", "App1", "App2", "App1"],
        "moved": [1.0, 2.0, 3.0, None],
    }
)
TABLES = Tables(ROWS, pl.DataFrame())


def _moves_little(rows: pl.DataFrame) -> Verdict:
    return Verdict(column_mean(rows, "moved") < 2.0, {"moved": 0.0})


def test_a_claim_that_holds_with_one_memory_depends_on_it() -> None:
    verdict = over_memory(TABLES, _moves_little)
    assert (verdict.holds, verdict.depends_on) == (False, "memory in GB")
    assert verdict.holds_at == ("0",)
    assert set(verdict.numbers) == {"memory in GB = 0", "memory in GB = 2"}


def test_rows_are_selected_by_memory_scheduler_and_application() -> None:
    assert without_memory(TABLES)["moved"].to_list() == [1.0, 2.0]
    assert select(ROWS, "fifo", "App2")["moved"].to_list() == [3.0]


def test_a_missing_value_is_not_counted() -> None:
    assert column_mean(ROWS, "moved") == 2.0
    assert share(ROWS["moved"] >= 2.0) == pytest.approx(2 / 3)


def test_no_rows_are_no_mean() -> None:
    with pytest.raises(NoRowsError):
        column_mean(select(ROWS, "sfq", "App1"), "moved")
    with pytest.raises(NoRowsError):
        over_memory(Tables(ROWS.clear(), pl.DataFrame()), _moves_little)
