# SPDX-License-Identifier: MIT
"""Claims: sentences that a paper draws from a figure, checked on our table.

A claim is declared once, above the function that checks it::

    fig2 = figure("p1-fig2", study=_study, draw=_draw)

    @fig2.claim("FCFS has the lowest Efficiency at every pressure.")
    def _fcfs_worst(tables: Tables) -> Verdict:
        ...

The name of the claim is the name of the function without the leading "_" and with "-"
for "_": here ``fcfs-worst``. One function may check several sentences: `case` gives the
name, the sentence and the arguments of the function for each of them::

    @fig5.claim_cases(
        case("nersc-falls", "NERSC: MinYield falls as W grows.", trace="NERSC"),
        case("trilab-falls", "TRILAB: MinYield falls as W grows.", trace="TRILAB"),
    )
    def _falls(tables: Tables, trace: str) -> Verdict:
        ...

Both decorators are methods of `penstock.experiments.reproduction.Reproduction` and
return the function unchanged. `judge` checks all claims of a figure. A claim that does
not hold is reported as such, with the numbers; `note` gives the most likely reason. A
claim for which the table has no rows does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import polars as pl

from penstock.errors import PenstockError

__all__ = [
    "Check",
    "Claim",
    "ClaimCase",
    "NoRowsError",
    "Tables",
    "Verdict",
    "case",
    "claim_name",
    "judge",
    "policy_mean",
    "present_values",
    "require_rows",
]


class NoRowsError(PenstockError):
    """A claim has no rows to look at; `judge` turns this into a verdict."""

    def __init__(self) -> None:
        super().__init__("there are no rows")


@dataclass(frozen=True, slots=True)
class Tables:
    """The data behind a figure."""

    rows: pl.DataFrame
    """One row per instance and policy."""
    times: pl.DataFrame
    """Seconds per instance and policy; these differ from run to run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check: the claim holds or not, and the numbers that show it."""

    holds: bool
    numbers: dict[str, float]


Check: TypeAlias = Callable[[Tables], Verdict]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper, in our words, with its check."""

    name: str
    source: str
    """Paper, section and figure."""
    sentence: str
    check: Check
    note: str = ""
    """The most likely reason if the claim does not hold here."""


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """One of several sentences that the same function checks; see `case`."""

    name: str
    sentence: str
    source: str = ""
    """Paper, section and figure; empty: the source of the figure."""
    note: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the function, after the tables."""


def case(
    name: str, sentence: str, *, source: str = "", note: str = "", **arguments: Any
) -> ClaimCase:
    """Return one sentence for a function that checks several, with its arguments."""
    return ClaimCase(name, sentence, source, note, arguments)


def claim_name(check: Callable[..., Verdict]) -> str:
    """Return the name of the claim that a function checks, such as ``fcfs-worst``."""
    return check.__name__.strip("_").replace("_", "-")


def judge(claims: Iterable[Claim], tables: Tables) -> list[dict[str, Any]]:
    """Check every claim; return one record per claim, as in ``claims.json``."""
    records = []
    for claim in claims:
        verdict = _verdict(claim, tables)
        record: dict[str, Any] = {
            "name": claim.name,
            "source": claim.source,
            "says": claim.sentence,
            "holds": bool(verdict.holds),
            "numbers": {k: float(f"{v:.6g}") for k, v in verdict.numbers.items()},
        }
        if claim.note and not verdict.holds:
            record["note"] = claim.note
        records.append(record)
    return records


def _verdict(claim: Claim, tables: Tables) -> Verdict:
    try:
        return claim.check(tables)
    except NoRowsError:
        return Verdict(holds=False, numbers={"rows to check it on": 0.0})


def require_rows(rows: pl.DataFrame) -> None:
    """Raise `NoRowsError` if there are no rows: the claim then does not hold."""
    if rows.is_empty():
        raise NoRowsError


def present_values(values: pl.Series) -> pl.Series:
    """Return the values that are not missing.

    Raises
    ------
    NoRowsError
        If all values are missing: the claim then does not hold.
    """
    present = values.drop_nulls()
    if present.is_empty():
        raise NoRowsError
    return present


def policy_mean(rows: pl.DataFrame, metric: str, policy: str, **where: Any) -> float:
    """Return the mean of `metric` for one policy on the rows that match `where`.

    Raises
    ------
    NoRowsError
        If no row matches: the claim then does not hold.
    """
    chosen = rows.filter(pl.col("policy") == policy)
    for column, value in where.items():
        chosen = chosen.filter(pl.col(column) == value)
    mean: Any = present_values(chosen[metric]).mean()
    return float(mean)
