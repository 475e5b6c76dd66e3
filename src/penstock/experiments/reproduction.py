# SPDX-License-Identifier: MIT
"""A figure or table of a paper: what to compute, how to draw it, what it claims.

A `Reproduction` is declared once, in the module of its figure (`penstock.papers` says
how), and its claims are added by decorators (`penstock.experiments.claims`).
`reproduce` goes through these steps:

1. `study` gives the studies to run (or the rows, if nothing is simulated);
2. the studies run, as far as their results are not on disk yet;
3. `prepare` turns the rows of the studies into the rows that the figure shows;
4. claims are checked, the figure is drawn, and `summary` gives the table to keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import polars as pl
from matplotlib.figure import Figure

from penstock.errors import InputError, InternalError
from penstock.experiments.claims import (
    Check,
    Claim,
    ClaimCase,
    Tables,
    Verdict,
    claim_name,
    judge,
)
from penstock.experiments.output.page import write_index, write_page
from penstock.experiments.output.plots import save_figure
from penstock.experiments.output.provenance import provenance
from penstock.experiments.output.tables import write_csv, write_document, write_parquet
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Executor, Progress
from penstock.experiments.study import Declaration

__all__ = [
    "Reproduction",
    "Scale",
    "Work",
    "all_rows",
    "reproduce",
    "reproduce_all",
    "unchanged",
]

#: What a figure needs computed: studies, or rows that need no study.
Work: TypeAlias = Declaration | tuple[Declaration, ...] | pl.DataFrame

_Checking = TypeVar("_Checking", bound=Callable[..., Verdict])


class Scale(StrEnum):
    """How much to compute."""

    SMOKE = "smoke"
    """Seconds to a minute: shows that everything works, and rough trends."""
    PAPER = "paper"
    """The number of instances that the paper uses."""


def unchanged(tables: Tables) -> Tables:
    """Return the tables as they are."""
    return tables


def all_rows(tables: Tables) -> pl.DataFrame:
    """Return the rows of the tables."""
    return tables.rows


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One figure or table of a paper."""

    name: str
    title: str
    source: str
    """Paper, section and figure."""
    study: Callable[[Scale], Work]
    """Return the studies to run or, if nothing is simulated, the rows."""
    draw: Callable[[Tables], Figure]
    """Draw the prepared tables."""
    prepare: Callable[[Tables], Tables] = unchanged
    """Turn the rows of the studies into the rows that the figure shows."""
    summary: Callable[[Tables], pl.DataFrame] = all_rows
    """Return the table to keep beside the figure, from the prepared tables."""
    claims: list[Claim] = field(default_factory=list, init=False)
    """The claims declared so far, in this order; see `claim` and `claim_cases`."""

    def claim(
        self,
        sentence: str,
        *,
        name: str = "",
        source: str = "",
        reason: str = "",
        contradicted: str = "",
    ) -> Callable[[_Checking], _Checking]:
        """Declare that the decorated function checks `sentence`.

        The function takes the prepared tables and returns a `Verdict`. `name` is the
        name of the function with "-" for "_", and `source` that of the figure, unless
        given. `reason` and `contradicted` explain a claim that does not hold; see
        `penstock.experiments.claims.Claim`.
        """

        def declare(check: _Checking) -> _Checking:
            named = name or claim_name(check)
            case = ClaimCase(named, sentence, source, reason, contradicted)
            self._add(case, check)
            return check

        return declare

    def claim_cases(self, *cases: ClaimCase) -> Callable[[_Checking], _Checking]:
        """Declare that the decorated function checks several sentences.

        The function is called with the prepared tables and the arguments of the case.
        """

        def declare(check: _Checking) -> _Checking:
            for case in cases:
                self._add(case, partial(check, **case.arguments))
            return check

        return declare

    def _add(self, case: ClaimCase, check: Check) -> None:
        if case.name in (claim.name for claim in self.claims):
            raise InternalError(f"{self.name}: claim {case.name} is declared twice")
        source = case.source or self.source
        reasons = case.reason, case.contradicted
        self.claims.append(Claim(case.name, source, case.sentence, check, *reasons))


class _CheckedClaim(msgspec.Struct):
    """The fields of a checked claim that a page shows."""

    says: str
    source: str
    holds: bool
    numbers: dict[str, float | dict[str, float | None] | None]
    reason: str = ""


class _Origin(msgspec.Struct):
    """The fields of the provenance that a page shows."""

    version: str
    command: str


class _ClaimsRecord(msgspec.Struct):
    """The fields of a figure's ``claims.json`` that a page shows."""

    name: str
    title: str
    source: str
    provenance: _Origin
    claims: list[_CheckedClaim]


def reproduce(
    figure: Reproduction,
    scale: Scale | None,
    folder: Path,
    executor: Executor,
    progress: Progress,
) -> dict[str, Any]:
    """Compute and draw `figure`, check its claims, and write ``folder/name``.

    Results of studies are kept in ``folder/studies``; figures with the same study
    share them. `scale` is None for a study that a user declared in a file.

    Returns
    -------
    The content of ``claims.json``, which the index page shows.
    """
    home = _make_folder(folder / figure.name)
    work = figure.study(scale or Scale.PAPER)
    studies = (work,) if isinstance(work, Declaration) else work
    tables = figure.prepare(_tables(studies, folder / "studies", executor, progress))
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


def _make_folder(path: Path) -> Path:
    """Make the folder of a figure before the work starts, so that errors come early."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write there: {error.strerror}",
            where=str(path),
            remedy="choose another folder",
        ) from None
    return path


def _tables(
    studies: tuple[Declaration, ...] | pl.DataFrame,
    folder: Path,
    executor: Executor,
    progress: Progress,
) -> Tables:
    """Run the studies as far as `folder` lacks results; return rows unchanged."""
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
    """Reproduce several figures; write an index page of all figures in the folder."""
    records = [reproduce(f, scale, folder, executor, progress) for f in figures]
    new_names = {record["name"] for record in records}
    older_paths = [
        path
        for path in sorted(folder.glob("*/claims.json"))
        if path.parent.name not in new_names
    ]
    older = [record for path in older_paths if (record := _read(path, progress))]
    write_index([*records, *older], folder)
    return records


def _read(path: Path, progress: Progress) -> dict[str, Any] | None:
    """Return the record of a figure made earlier; report it and return None if invalid.

    RATIONALE: an invalid file must not stop a run whose results took hours.
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
