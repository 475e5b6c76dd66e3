# SPDX-License-Identifier: MIT
"""A figure or table of a paper, declared: what to compute, how to draw it, its claims.

Adding one = one file in `penstock.papers` and one row in its table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl
from matplotlib.figure import Figure

from penstock.errors import InputError
from penstock.experiments.claims import Claim, Tables, judge
from penstock.experiments.output.page import write_index, write_page
from penstock.experiments.output.plots import save_figure
from penstock.experiments.output.provenance import provenance
from penstock.experiments.output.tables import write_csv, write_document, write_parquet
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Executor, Progress
from penstock.experiments.study import Declaration

__all__ = ["Reproduction", "Scale", "reproduce", "reproduce_all"]

#: What a figure needs.
Work: TypeAlias = Declaration | tuple[Declaration, ...] | pl.DataFrame


class Scale(StrEnum):
    """How much to compute."""

    SMOKE = "smoke"
    """Seconds to a minute: shows that all works, the trends at best."""
    PAPER = "paper"
    """The paper's own number of instances."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One figure or table of a paper."""

    name: str
    title: str
    source: str
    """Paper, figure, section."""
    study: Callable[[Scale], Work]
    """What to compute: one or more studies or, where there is none, the rows."""
    draw: Callable[[Tables], Figure]
    claims: tuple[Claim, ...] = ()
    summary: Callable[[Tables], pl.DataFrame] = lambda tables: tables.rows
    """The table behind the figure, from what was computed."""


class _Judged(msgspec.Struct):
    """What a page needs of a claim."""

    says: str
    source: str
    holds: bool
    numbers: dict[str, float | None]
    note: str = ""


class _Maker(msgspec.Struct):
    version: str
    command: str


class _ClaimsRecord(msgspec.Struct):
    """What a page needs of a figure's ``claims.json``."""

    name: str
    title: str
    source: str
    provenance: _Maker
    claims: list[_Judged]


def reproduce(
    figure: Reproduction,
    scale: Scale | None,
    folder: Path,
    executor: Executor,
    progress: Progress,
) -> dict[str, Any]:
    """Compute, draw and judge `figure`; leave its files in ``folder/name``.

    Studies are kept in ``folder/studies``, where figures that need the same one
    share it. A study of one's own has no `scale`. Returns the record that the index
    page shows.
    """
    home = _folder(folder / figure.name)
    work = figure.study(scale or Scale.PAPER)
    studies = (work,) if isinstance(work, Declaration) else work
    tables = _tables(studies, folder / "studies", executor, progress)
    seed, instances = (
        (None, None)
        if isinstance(studies, pl.DataFrame)
        else (studies[0].seed, studies[0].instances)
    )
    facts = provenance(figure=figure.name, scale=scale, seed=seed)
    claims = judge(figure.claims, tables)
    summary = figure.summary(tables)
    drawn = figure.draw(tables)
    for kind in ("svg", "png"):
        save_figure(drawn, str(home / f"{figure.name}.{kind}"), facts)
    write_parquet(summary, home / f"{figure.name}.parquet", facts)
    write_csv(summary, home / f"{figure.name}.csv")
    record = {
        "penstock": 1,
        "provenance": facts,
        "name": figure.name,
        "title": figure.title,
        "source": figure.source,
        "instances": instances,
        "claims": claims,
    }
    write_document(record, home / "claims.json")
    write_page(record, home)
    return record


def _folder(path: Path) -> Path:
    """Make a folder, before the work rather than after it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write there: {error.strerror}", where=str(path)
        ) from None
    return path


def _tables(
    studies: tuple[Declaration, ...] | pl.DataFrame,
    folder: Path,
    executor: Executor,
    progress: Progress,
) -> Tables:
    """Compute what is missing of the studies in `folder`; take rows as they are."""
    if isinstance(studies, pl.DataFrame):
        return Tables(studies, pl.DataFrame())
    rows, times = [], []
    for study in studies:
        rows.append(run_study(study, folder / study.name, executor, progress))
        times.append(pl.read_parquet(folder / study.name / "times.parquet"))
    return Tables(*(pl.concat(part, how="diagonal_relaxed") for part in (rows, times)))


def reproduce_all(
    figures: list[Reproduction],
    scale: Scale,
    folder: Path,
    executor: Executor,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Reproduce several figures; write an index page of all that the folder holds."""
    records = [reproduce(f, scale, folder, executor, progress) for f in figures]
    ours = {record["name"] for record in records}
    others = [
        path
        for path in sorted(folder.glob("*/claims.json"))
        if path.parent.name not in ours
    ]
    earlier = [record for path in others if (record := _earlier(path, progress))]
    write_index([*records, *earlier], folder)
    return records


def _earlier(path: Path, progress: Progress) -> dict[str, Any] | None:
    """Return the record of a figure that was there; None, and said, if it is none.

    RATIONALE: whatever lies in the folder must not cost the verdicts of hours.
    """
    try:
        record = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        msgspec.convert(record, _ClaimsRecord)
    except (OSError, msgspec.MsgspecError):
        record = {}
    if record.get("name") != path.parent.name:
        progress(1.0, 1.0, f"{path} cannot be read: not in the index")
        return None
    return record
