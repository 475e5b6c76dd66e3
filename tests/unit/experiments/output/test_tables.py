# SPDX-License-Identifier: MIT
"""Tables and documents are written completely, with the same bytes and provenance."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from penstock.errors import InputError
from penstock.experiments.output.tables import write_csv, write_document, write_parquet

FRAME = pl.DataFrame(
    {"policy": ["a", "b,c"], "x": [0.1, math.inf], "yields": [[0.5, 1.0], [0.25]]}
)
FACTS = {"version": "1", "command": "penstock x", "seed": 3}


def test_parquet_holds_the_table_and_the_facts(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(FRAME, path, FACTS)
    assert pl.read_parquet(path).equals(FRAME)
    assert json.loads(pl.read_parquet_metadata(path)["penstock"]) == FACTS


def test_csv_leaves_lists_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(FRAME, path)
    assert path.read_text() == 'policy,x\na,0.1\n"b,c",inf\n'


def test_csv_without_lists_is_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(FRAME.drop("yields"), path)
    assert pl.read_csv(path).equals(FRAME.drop("yields"))


def test_a_document_is_json_for_people(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    write_document({"b": [1, {"ε": 0.5}], "a": math.inf}, path)
    text = path.read_text(encoding="utf-8")
    # JSON has no infinity: null stands for it.
    assert json.loads(text) == {"b": [1, {"ε": 0.5}], "a": None}
    assert "ε" in text
    assert text.endswith("}\n")
    assert text.count("\n") > 3


def test_same_content_same_bytes_and_nothing_else_in_the_folder(tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        write_parquet(FRAME, tmp_path / "t.parquet", FACTS)
        write_csv(FRAME, tmp_path / "t.csv")
        write_document(FACTS, tmp_path / "t.json")
        contents.append({p.name: p.read_bytes() for p in tmp_path.iterdir()})
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == ["t.csv", "t.json", "t.parquet"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "no").touch()
    nowhere = tmp_path / "no" / "below" / "t"
    with pytest.raises(InputError, match="cannot write the file"):
        write_parquet(FRAME, nowhere, FACTS)
    with pytest.raises(InputError, match="cannot write the file"):
        write_csv(FRAME, nowhere)
    with pytest.raises(InputError, match="cannot write the file"):
        write_document(FACTS, nowhere)
