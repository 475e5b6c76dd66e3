# SPDX-License-Identifier: MIT
"""Write tables and documents: a file is written completely or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from penstock.files import replacing

__all__ = ["write_csv", "write_document", "write_parquet"]


def write_parquet(frame: pl.DataFrame, path: Path, facts: dict[str, Any]) -> None:
    """Write a Parquet file with `facts` in its metadata, under "penstock"."""
    buffer = io.BytesIO()
    metadata = {"penstock": msgspec.json.encode(facts).decode()}
    frame.write_parquet(buffer, metadata=metadata)
    with replacing(path) as stream:
        stream.write(buffer.getvalue())


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    """Write a CSV file; columns that hold lists are left out."""
    flat = frame.select(
        name
        for name, kind in frame.schema.items()
        if not isinstance(kind, (pl.List, pl.Array))
    )
    with replacing(path) as stream:
        stream.write(flat.write_csv().encode())


def write_document(document: dict[str, Any], path: Path) -> None:
    """Write an indented JSON file."""
    data = msgspec.json.format(msgspec.json.encode(document), indent=1)
    with replacing(path) as stream:
        stream.write(data + b"\n")
