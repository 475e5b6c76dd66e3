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
return the function unchanged. `judge` checks all claims of a figure. A claim for which
the table has no rows does not hold. Every claim has one of four outcomes:

- it holds;
- it does not hold; `reason` says why, in one sentence;
- it holds at some values of a parameter and not at others (`over`)::

      @fig3.claim("t-cpu is better than static.")
      def _better(tables: Tables) -> Verdict:
          return over("K", {k: _better_at(tables, k) for k in (20, 40, 60)})

- it does not hold, at no value of a parameter, and the paper itself contradicts it: the
  sentence `contradicted` names the figure or the number of the paper that does.

A sentence that is not in the paper, on a figure of the paper, is declared with
``beyond=True``: it counts under "beyond the papers" and not for the paper.

The numbers of a verdict are those that decide the claim, few, by name; or a small
table: row -> column -> number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

import polars as pl

from penstock.errors import PenstockError
from penstock.experiments.check_digest import check_digest
from penstock.experiments.resampling import (
    Spread,
    Tables,
    group_count,
    resampled,
    spread_of,
)

__all__ = [
    "Check",
    "Claim",
    "ClaimCase",
    "NoRowsError",
    "Numbers",
    "Outcome",
    "Tables",
    "Verdict",
    "case",
    "claim_name",
    "judge",
    "outcome_and_reason",
    "over",
    "policy_mean",
    "present_values",
    "require_rows",
]


class NoRowsError(PenstockError):
    """A claim has no rows to look at; `judge` turns this into a verdict."""

    def __init__(self) -> None:
        super().__init__("there are no rows")


#: Name -> number, or a small table: row -> column -> number.
Numbers: TypeAlias = Mapping[str, Any]


class Outcome(StrEnum):
    """The four outcomes of a claim, the best one first."""

    HOLDS = "holds"
    DEPENDS = "depends on"
    """It holds at some values of a parameter only; the record names the parameter."""
    CONTRADICTED = "contradicted by the paper's own figure"
    FAILS = "does not hold"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check: the claim holds or not, and the numbers that show it."""

    holds: bool
    numbers: Numbers
    depends_on: str = ""
    """The parameter that decides whether the claim holds; see `over`."""
    holds_at: tuple[str, ...] = ()
    """The values of that parameter at which the claim holds."""


def over(parameter: str, verdicts: Mapping[Any, Verdict]) -> Verdict:
    """Combine the verdicts at several values of a parameter into one.

    The claim holds if it holds at every value. If it holds at some values only, its
    outcome is "depends on" the parameter. The numbers become a table with a row per
    value, such as "K = 20".

    Raises
    ------
    NoRowsError
        If there are no verdicts: the claim then does not hold.
    """
    if not verdicts:
        raise NoRowsError
    numbers: dict[str, Mapping[str, float]] = {}
    for value, verdict in verdicts.items():
        for row, columns in _rows_of(verdict.numbers).items():
            label = f"{parameter} = {_text(value)}"
            numbers[f"{label}, {row}" if row else label] = columns
    held = tuple(_text(value) for value, verdict in verdicts.items() if verdict.holds)
    holds = len(held) == len(verdicts)
    if held and not holds:
        return Verdict(holds, numbers, parameter, held)
    return Verdict(holds, numbers)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rows_of(numbers: Numbers) -> dict[str, Mapping[str, float]]:
    """Return numbers as a table; numbers without rows become one row without name."""
    flat: dict[str, float] = {}
    table: dict[str, Mapping[str, float]] = {}
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            table[name] = value
        else:
            flat[name] = value
    return {"": flat, **table} if flat else table


#: The numbers of a claim for which there are no rows.
_NO_ROWS: Final = {"rows to check it on": 0.0}

Check: TypeAlias = Callable[[Tables], Verdict]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper, in our words, with its check."""

    name: str
    source: str
    """Paper, section and figure."""
    sentence: str
    check: Check
    reason: str = ""
    """Why the claim does not hold here, if it does not: one sentence."""
    contradicted: str = ""
    """The figure or number of the paper that contradicts the sentence, if one does."""
    beyond: bool = False
    """The paper does not say this; it counts under "beyond the papers"."""


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """One of several sentences that the same function checks; see `case`."""

    name: str
    sentence: str
    source: str = ""
    """Paper, section and figure; empty: the source of the figure."""
    reason: str = ""
    contradicted: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the function, after the tables."""
    beyond: bool = False


def case(
    name: str,
    sentence: str,
    *,
    source: str = "",
    reason: str = "",
    contradicted: str = "",
    beyond: bool = False,
    **arguments: Any,
) -> ClaimCase:
    """Return one sentence for a function that checks several, with its arguments."""
    reasons = reason, contradicted
    return ClaimCase(name, sentence, source, *reasons, arguments, beyond)


def claim_name(check: Callable[..., Verdict]) -> str:
    """Return the name of the claim that a function checks, such as ``fcfs-worst``."""
    return check.__name__.strip("_").replace("_", "-")


def judge(
    claims: Iterable[Claim],
    tables: Tables,
    *,
    resamples: int = 0,
    reasons: bool = True,
) -> list[dict[str, Any]]:
    """Check every claim; return one record per claim, as in ``claims.json``.

    With `resamples`, every claim is checked again on that many bootstrap resamples of
    the instances (`penstock.experiments.resampling`). The record then has the spread of
    every number, and the share of the resamples in which the claim holds.

    `reasons` is False for tables of a smaller scale: reasons quote numbers of the scale
    of the paper.
    """
    claims = list(claims)
    if not reasons:
        claims = [replace(claim, reason="") for claim in claims]
    verdicts = [_verdict(claim, tables) for claim in claims]
    again: list[list[Verdict]] = [[] for _ in claims]
    for table in resampled(tables, resamples):
        for claim, found in zip(claims, again, strict=True):
            found.append(_verdict(claim, table))
    groups = group_count(tables)
    return [
        _record(claim, verdict, _spread(found, groups))
        for claim, verdict, found in zip(claims, verdicts, again, strict=True)
    ]


def _spread(verdicts: Iterable[Verdict], groups: int) -> Spread:
    return spread_of([(v.holds, v.numbers) for v in verdicts], groups)


def _record(claim: Claim, verdict: Verdict, spread: Spread) -> dict[str, Any]:
    outcome, reason = outcome_and_reason(
        claim, holds=verdict.holds, depends_on=verdict.depends_on
    )
    return {
        "name": claim.name,
        "source": claim.source,
        "says": claim.sentence,
        "beyond": claim.beyond,
        "check": check_digest(claim.check),
        "holds": bool(verdict.holds),
        "outcome": outcome.value,
        "depends_on": verdict.depends_on if outcome is Outcome.DEPENDS else "",
        "holds_at": list(verdict.holds_at) if outcome is Outcome.DEPENDS else [],
        "numbers": _rounded(verdict.numbers) or (_NO_ROWS if verdict.numbers else {}),
        "spread": _rounded(spread.half_widths),
        "support": spread.support,
        "reason": reason,
    }


def outcome_and_reason(
    claim: Claim, *, holds: bool, depends_on: str
) -> tuple[Outcome, str]:
    """Return the outcome of a claim, and the text that explains it if it fails.

    A claim that holds at some values of a parameter "depends on" it, whatever the paper
    shows at the other values.
    """
    if holds:
        return Outcome.HOLDS, ""
    reason = " ".join(filter(None, (claim.contradicted, claim.reason)))
    if depends_on:
        return Outcome.DEPENDS, reason
    return Outcome.CONTRADICTED if claim.contradicted else Outcome.FAILS, reason


def _rounded(numbers: Numbers) -> dict[str, Any]:
    """Return the numbers with six significant digits, as plain Python numbers.

    A number that is not defined (NaN: there are no rows for it) is left out. JSON has
    no infinite numbers: they become the texts "∞" and "-∞".
    """
    rounded: dict[str, Any] = {}
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            rounded[name] = _rounded(value)
        elif math.isinf(value):
            rounded[name] = "∞" if value > 0 else "-∞"
        elif not math.isnan(value):
            rounded[name] = float(f"{value:.6g}")
    return {name: value for name, value in rounded.items() if value != {}}


def _verdict(claim: Claim, tables: Tables) -> Verdict:
    try:
        return claim.check(tables)
    except NoRowsError:
        return Verdict(holds=False, numbers=_NO_ROWS)


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
