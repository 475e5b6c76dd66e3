# SPDX-License-Identifier: MIT
"""Claims: sentences that a paper draws from a figure, checked on our table.

A claim that does not hold is shown as such, with the numbers; `note` gives the
most likely reason. One that there are no rows for does not hold either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from penstock.errors import PenstockError

__all__ = [
    "Check",
    "Claim",
    "NoRowsError",
    "Tables",
    "Verdict",
    "judge",
    "mean_of",
    "some",
]


class NoRowsError(PenstockError):
    """A claim has no rows to look at; `judge` turns this into a verdict."""

    def __init__(self) -> None:
        super().__init__("there are no rows")


@dataclass(frozen=True, slots=True)
class Tables:
    """What a figure is drawn from."""

    rows: pl.DataFrame
    """One row per instance and policy."""
    times: pl.DataFrame
    """Seconds per instance and policy; not reproducible to the byte."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds on a table, and the numbers that say so."""

    holds: bool
    numbers: dict[str, float]


Check: TypeAlias = Callable[[Tables], Verdict]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper, in our words, with the check of it."""

    name: str
    source: str
    """Paper and section."""
    says: str
    check: Check
    note: str = ""
    """Why it may fail here, if it does."""


def judge(claims: tuple[Claim, ...], tables: Tables) -> list[dict[str, Any]]:
    """Check every claim; return one record each."""
    records = []
    for claim in claims:
        verdict = _verdict(claim, tables)
        record: dict[str, Any] = {
            "name": claim.name,
            "source": claim.source,
            "says": claim.says,
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


def some(values: pl.Series) -> pl.Series:
    """Return `values` but for missing ones; if there are none, the claim fails."""
    found = values.drop_nulls()
    if found.is_empty():
        raise NoRowsError
    return found


def mean_of(rows: pl.DataFrame, metric: str, policy: str, **where: Any) -> float:
    """Return the mean of `metric` for one policy on the rows that match `where`."""
    chosen = rows.filter(pl.col("policy") == policy)
    for column, value in where.items():
        chosen = chosen.filter(pl.col(column) == value)
    mean: Any = some(chosen[metric]).mean()
    return float(mean)
