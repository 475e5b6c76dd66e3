# SPDX-License-Identifier: MIT
"""A figure or table of a paper: what to compute, how to draw it, what it claims.

A `Reproduction` is declared once, in the module of its figure (`penstock.papers` says
how), and its claims are added by decorators (`penstock.experiments.claims`).
`reproduce_all` goes through these steps:

1. `study` gives the studies of every figure; figures may share a study;
2. all studies run together, as far as their results are not on disk yet;
3. `prepare` turns the rows of the studies into the rows that the figure shows;
4. claims are checked, the figure is drawn, and `summary` gives the table to keep.

Steps 3 and 4 of different figures run in different processes if the executor is a pool
of processes: drawing, and checking claims on resamples, takes seconds per figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import polars as pl
from matplotlib.figure import Figure

from penstock.errors import InputError, InternalError
from penstock.experiments.claims import (
    Check,
    Claim,
    ClaimCase,
    Outcome,
    Tables,
    Verdict,
    claim_name,
    judge,
)
from penstock.experiments.output.page import write_index, write_page
from penstock.experiments.output.plots import save_figure
from penstock.experiments.output.provenance import provenance
from penstock.experiments.output.tables import write_csv, write_document, write_parquet
from penstock.experiments.output.what_holds import write_what_holds
from penstock.experiments.resampling import affordable_resamples
from penstock.experiments.runners.campaign import run_studies
from penstock.experiments.runners.executors import (
    Executor,
    Inline,
    LocalPool,
    Progress,
)
from penstock.experiments.study import Declaration

__all__ = [
    "Reproduction",
    "Scale",
    "Work",
    "all_rows",
    "no_rows",
    "reproduce",
    "reproduce_all",
    "unchanged",
]

#: What a figure needs computed: one or several studies.
Work: TypeAlias = Declaration | tuple[Declaration, ...]

#: A number in ``claims.json``; a text or null if it is not finite.
_Number: TypeAlias = float | str | None

_Checking = TypeVar("_Checking", bound=Callable[..., Verdict])


class Scale(StrEnum):
    """How much to compute."""

    SMOKE = "smoke"
    """Seconds to a minute: shows that everything works, and rough trends."""
    PAPER = "paper"
    """The number of instances that the paper uses."""


#: Resamples of the instances on which claims are checked again, at most.
_MOST_RESAMPLES: Final = {Scale.SMOKE: 5, Scale.PAPER: 30}


def unchanged(tables: Tables) -> Tables:
    """Return the tables as they are."""
    return tables


def no_rows(_scale: Scale) -> pl.DataFrame:
    """Raise: the rows of this figure come from studies."""
    raise InternalError("the rows of this figure come from studies")


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
    """Return the studies to run."""
    draw: Callable[[Tables], Figure]
    """Draw the prepared tables."""
    prepare: Callable[[Tables], Tables] = unchanged
    """Turn the rows of the studies into the rows that the figure shows."""
    summary: Callable[[Tables], pl.DataFrame] = all_rows
    """Return the table to keep beside the figure, from the prepared tables."""
    rows: Callable[[Scale], pl.DataFrame] = no_rows
    """Compute the rows of a figure whose study is the call of this function."""
    paper: str = ""
    """Short name of the paper; empty if the figure is in no paper."""
    reference: str = ""
    """Authors, title, place and year of the paper."""
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
        beyond: bool = False,
    ) -> Callable[[_Checking], _Checking]:
        """Declare that the decorated function checks `sentence`.

        The function takes the prepared tables and returns a `Verdict`. `name` is the
        name of the function with "-" for "_", and `source` that of the figure, unless
        given. `reason` and `contradicted` explain a claim that does not hold; `beyond`
        marks a sentence that is not in the paper
        (`penstock.experiments.claims.Claim`).
        """

        def declare(check: _Checking) -> _Checking:
            named = name or claim_name(check)
            reasons = reason, contradicted
            case = ClaimCase(named, sentence, source, *reasons, beyond=beyond)
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
        facts = case.reason, case.contradicted, case.beyond
        self.claims.append(Claim(case.name, source, case.sentence, check, *facts))


class _CheckedClaim(msgspec.Struct):
    """The fields of a checked claim that a page shows."""

    says: str
    source: str
    holds: bool
    numbers: dict[str, _Number | dict[str, _Number]]
    outcome: Outcome | None = None
    depends_on: str = ""
    holds_at: list[str] = msgspec.field(default_factory=list)
    spread: dict[str, _Number | dict[str, _Number]] = msgspec.field(
        default_factory=dict
    )
    support: float | None = None
    reason: str = ""
    beyond: bool = False


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
    plan = _Plan.of(figure, scale, folder)
    run_studies(plan.folders(), executor, progress)
    return plan.finish(figure)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to compute and to write for one figure."""

    name: str
    scale: Scale | None
    folder: Path
    """Folder of all figures."""
    studies: tuple[Declaration, ...]
    facts: dict[str, Any]
    """Provenance of the figure."""

    @classmethod
    def of(cls, figure: Reproduction, scale: Scale | None, folder: Path) -> _Plan:
        """Plan a figure, and make its folder, so that errors come early."""
        _make_folder(folder / figure.name)
        work = figure.study(scale or Scale.PAPER)
        studies = (work,) if isinstance(work, Declaration) else work
        # The table of a figure without points is not drawn at random.
        seed = studies[0].seed if studies[0].points else None
        facts = provenance(figure=figure.name, scale=scale, seed=seed)
        return cls(figure.name, scale, folder, studies, facts)

    def folders(self) -> dict[Path, Declaration]:
        """Return the studies by the folders that keep them."""
        return {self.folder / "studies" / study.name: study for study in self.studies}

    def finish(self, figure: Reproduction) -> dict[str, Any]:
        """Draw the figure and check its claims, after its studies have run."""
        home, facts, name = self.folder / self.name, self.facts, self.name
        tables = figure.prepare(_tables(self.folders()))
        most = _MOST_RESAMPLES[self.scale or Scale.PAPER]
        resamples = affordable_resamples(tables.rows.height, most)
        reasons = self.scale is not Scale.SMOKE
        claims = judge(figure.claims, tables, resamples=resamples, reasons=reasons)
        summary = figure.summary(tables)
        drawn = figure.draw(tables)
        for kind in ("svg", "png"):
            save_figure(drawn, str(home / f"{name}.{kind}"), facts)
        write_parquet(summary, home / f"{name}.parquet", facts)
        write_csv(summary, home / f"{name}.csv")
        first = self.studies[0]
        record = {
            "penstock": 1,
            "provenance": facts,
            "name": name,
            "paper": figure.paper,
            "reference": figure.reference,
            "title": figure.title,
            "source": figure.source,
            "instances": first.instances if first.points else None,
            "resamples": resamples,
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


def _tables(folders: Mapping[Path, Declaration]) -> Tables:
    """Read the tables of studies that have run."""
    parts = (
        pl.concat(
            (pl.read_parquet(folder / name) for folder in folders),
            how="diagonal_relaxed",
        )
        for name in ("table.parquet", "times.parquet")
    )
    return Tables(*parts)


@dataclass(frozen=True, slots=True)
class _Finishing:
    """The task to finish a figure, which a worker finds by its name.

    RATIONALE: a figure itself cannot be sent to a worker, as it holds functions
    without a name.
    """

    plan: _Plan
    find: Callable[[str], Reproduction]

    @property
    def name(self) -> str:
        """A name for messages."""
        return self.plan.name

    def run(self) -> dict[str, Any]:
        """Finish the figure; return the content of ``claims.json``."""
        return self.plan.finish(self.find(self.plan.name))


def reproduce_all(
    names: Sequence[str],
    find: Callable[[str], Reproduction],
    scale: Scale,
    folder: Path,
    executor: Executor,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Reproduce several figures; write an index page of all figures in the folder.

    `find` returns the figure with a name; it is a function that workers can import.

    Raises
    ------
    InputError
        If the folder has figures of another scale: their verdicts must not be mixed.
    """
    _refuse_other_scale(scale, folder)
    plans = [_Plan.of(find(name), scale, folder) for name in names]
    studies = {path: s for plan in plans for path, s in plan.folders().items()}
    run_studies(studies, executor, progress)
    by_name = _finish([_Finishing(plan, find) for plan in plans], executor, progress)
    records = [by_name[name] for name in names]
    older_paths = [
        path
        for path in sorted(folder.glob("*/claims.json"))
        if path.parent.name not in by_name
    ]
    older = [record for path in older_paths if (record := _read(path, progress))]
    every = sorted([*records, *older], key=_natural_key)
    write_index(every, folder)
    write_what_holds(every, folder)
    return records


def _refuse_other_scale(scale: Scale, folder: Path) -> None:
    for path in sorted(folder.glob("*/claims.json")):
        record = _read(path, lambda *_: None) or {}
        other = record.get("provenance", {}).get("scale", scale)
        if other not in (scale, None):
            raise InputError(
                f"holds figures of {other} scale",
                where=str(folder),
                remedy=f"give another folder for {scale} scale (-o)",
            )


def _natural_key(record: dict[str, Any]) -> list[tuple[int, str]]:
    """Return a key that sorts p1-fig2 before p1-fig10."""
    parts = re.findall(r"\d+|\D+", record["name"])
    return [(int(p), "") if p.isdigit() else (-1, p) for p in parts]


def _finish(
    tasks: Sequence[_Finishing], executor: Executor, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Draw the figures and check their claims; return the records by name."""
    # Dask computes pieces only: its workers may have no access to the folder.
    here: LocalPool | Inline = Inline()
    if isinstance(executor, LocalPool) and len(tasks) > 1:
        here = executor

    def show(message: str = "") -> None:
        progress(len(records), len(tasks), message)

    records: dict[str, dict[str, Any]] = {}
    show()
    with closing(here.run(tasks, show)) as results:
        for task, record in results:
            records[task.name] = record
            show()
    return records


def _read(path: Path, progress: Progress) -> dict[str, Any] | None:
    """Return the record of a figure made earlier; report it and return None if invalid.

    RATIONALE: an invalid file must not stop a run whose results took hours.
    """
    try:
        record = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        msgspec.convert(record, _ClaimsRecord)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        record = {}
    if record.get("name") != path.parent.name:
        progress(1.0, 1.0, f"{path} cannot be read: not in the index")
        return None
    return record
