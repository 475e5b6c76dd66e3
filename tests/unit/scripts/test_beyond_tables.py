# SPDX-License-Identifier: MIT
"""The tables of the page on the frontier are made from reproduced figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import beyond_tables
import polars as pl
import pytest
from beyond_tables import TABLES, updated

from penstock.errors import InputError
from penstock.papers.beyond.frontier_tables import (
    count_dominations,
    differences,
    means,
    windows_under_base,
)
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.policies import RECOMMENDED
from support.frontier_rows import AHEAD, point_rows

BLOCKS = (*TABLES, "asked", "worst cases")
PAGE = "\n".join(f"<!-- {name} -->\nstale\n<!-- end of {name} -->" for name in BLOCKS)


def _rows() -> pl.DataFrame:
    """Return two APEX points; the policies beyond the papers are like the default."""
    parts = []
    for number, group in enumerate(("NERSC", "TRILAB")):
        rows = point_rows(AHEAD, group=group, label=f"{group} M_0", point=number)
        like = rows.filter(pl.col("policy") == RECOMMENDED)
        names = ("earliest-deadline", "short-over-loss")
        parts += [rows, *(like.with_columns(policy=pl.lit(name)) for name in names)]
    return pl.concat(parts)


def _write(folder: Path, figure: str, table: pl.DataFrame, scale: str) -> None:
    home = folder / figure
    home.mkdir()
    table.write_parquet(home / f"{figure}.parquet")
    claim: dict[str, Any] = {
        "says": f"{figure} says so.",
        "outcome": "depends on",
        "depends_on": "W",
        "holds_at": ["0.8", "1"],
        "numbers": {"points": 2.0, "W = 0.8": {"gain": 0.01234}},
    }
    record = {"provenance": {"scale": scale}, "claims": [claim]}
    (home / "claims.json").write_text(json.dumps(record))


def _folder(folder: Path, scale: str = "paper") -> Path:
    rows = _rows()
    beyond = (RECOMMENDED, "earliest-deadline")
    _write(folder, "frontier", means(rows), scale)
    _write(folder, "frontier-utilization", means(rows), scale)
    _write(folder, "frontier-gains", differences(rows, beyond), scale)
    _write(folder, "frontier-domination", count_dominations(rows), scale)
    _write(folder, "frontier-windows", windows_under_base(rows), scale)
    columns = {"min_yield": 0.9, "efficiency": 0.91, "bound": 0.95}
    runs = [{"aimed_pressure": 0.8, "policy": RECOMMENDED, "instances": 2, **columns}]
    _write(folder, "frontier-horizon", pl.DataFrame(runs), scale)
    of = [{"machine": 8, "of": p, **columns} for p in (*ALL_POLICIES, RECOMMENDED)]
    _write(folder, "frontier-saturation", pl.DataFrame(of), scale)
    return folder


def _block(text: str, name: str) -> str:
    return text.partition(f"<!-- {name} -->")[2].partition("<!-- end of ")[0]


def test_every_table_is_written(tmp_path: Path) -> None:
    text = updated(PAGE, _folder(tmp_path))
    assert "stale" not in text
    # Best is greedy-yield (+ .01), the default is .03 above it; the bound .09.
    assert "| +.0300 ± .0000 | +.0200 ± .0000 | 33 % |" in _block(text, "results")
    line = "| fcfs | 2 | 2 | 2 | 0 | 0.0100 (NERSC M_0) | 0 | 0 |"
    assert line in _block(text, "domination")
    assert "| 0.8 | .9000 / .9100 | .9500 |" in _block(text, "horizon")
    assert "| M_8 |" in _block(text, "saturation")
    asked = _block(text, "asked")
    assert "depends on W: holds at 0.8 and 1 | points 2; W = 0.8: gain 0.0123" in asked
    assert "| soft-deadline |" in _block(text, "worst cases")


def test_tables_of_missing_figures_stay(tmp_path: Path) -> None:
    text = updated(PAGE, tmp_path)
    assert all("stale" in _block(text, name) for name in (*TABLES, "asked"))


def test_other_scales_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="not of paper scale"):
        updated(PAGE, _folder(tmp_path, scale="smoke"))


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no <!-- worst cases -->"):
        updated("no marks", tmp_path)


def test_the_page_has_a_place_for_every_table() -> None:
    text = beyond_tables.PAGE.read_text()
    for name in BLOCKS:
        assert text.count(f"<!-- {name} -->") == 1
        assert text.count(f"<!-- end of {name} -->") == 1
