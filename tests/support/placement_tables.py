# SPDX-License-Identifier: MIT
"""Tables of placement problems: made by hand, or computed by a small study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import polars as pl

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.experiments.study import sweep
from penstock.papers.p2.study import IO_NODES, case_study

__all__ = [
    "Change",
    "Problem",
    "congestion",
    "idle",
    "problem",
    "rho_io",
    "slow",
    "small_tables",
    "spread",
    "tables_of",
]

#: (allocation, placement) or (allocation, placement, information) -> columns to change.
#: None stands for any name; the profile information is "exact" unless given.
Change: TypeAlias = Mapping[tuple[str | None, ...], Mapping[str, float]]
#: The rows of one problem: one per contender.
Problem: TypeAlias = list[dict[str, Any]]

_DEFAULTS = {
    "mean_io_slowdown": 2.0,
    "rho_io": 1.0,
    "rho_con": 1.0,
    "io_spread": 0.5,
    "machine_idletime": 0.2,
    "users_correlation": 0.5,
    "io_load": 2.0,
}


def slow(value: float) -> dict[str, float]:
    """Return a Mean-I/O-SlowDown (default: 2)."""
    return {"mean_io_slowdown": value}


def idle(value: float) -> dict[str, float]:
    """Return a Machine-Idletime (default: 0.2)."""
    return {"machine_idletime": value}


def spread(value: float) -> dict[str, float]:
    """Return an I/O-spread (default: 0.5)."""
    return {"io_spread": value}


def congestion(value: float) -> dict[str, float]:
    """Return a ρ_con (default: 1)."""
    return {"rho_con": value}


def rho_io(value: float) -> dict[str, float]:
    """Return a ρ_io (default: 1)."""
    return {"rho_io": value}


@cache
def _labels() -> list[dict[str, Any]]:
    """Return the columns that name each contender, in the order of the study."""
    study = case_study(IO_NODES)(Scale.SMOKE)
    return [contender.labels() for contender in study.contenders]


def problem(
    load: float,
    change: Change | None = None,
    case: str = IO_NODES,
    applications: int = 60,
) -> Problem:
    """Return the rows of one problem, all alike but for `change`."""
    rows = []
    for labels in _labels():
        names = (
            labels["allocation"],
            labels["placement"],
            labels["profile_information"],
        )
        row = {**labels, **_DEFAULTS, "case": case, "minimum_load": load}
        row["applications"] = applications
        for key, values in (change or {}).items():
            full = (*key, "exact") if len(key) == 2 else key
            if all(k in (None, n) for k, n in zip(full, names, strict=True)):
                row |= values
        rows.append({**row, "complete": True, "instance": 0})
    return rows


def tables_of(figure: Reproduction, *problems: Problem) -> Tables:
    """Return the tables of some problems, prepared for a figure."""
    rows = [
        {**row, "point": number} for number, one in enumerate(problems) for row in one
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return figure.prepare(Tables(table, pl.DataFrame()))


@cache
def _small_rows(case: str) -> pl.DataFrame:
    settings: dict[str, float | str] = {
        "targets": 5,
        "compute_nodes": 60,
        "case": case,
    }
    swept = {"applications": (8, 12), "load": (0.2, 0.4, 0.5, 1.1)}
    points = sweep("striped", settings, swept)
    study = replace(case_study(case)(Scale.SMOKE), points=points, instances=2)
    with TemporaryDirectory() as folder:
        return run_study(study, Path(folder), Inline())


def small_tables(figure: Reproduction, *cases: str) -> Tables:
    """Return the tables of small studies: 8 or 12 applications on 5 targets."""
    rows = pl.concat([_small_rows(case) for case in cases], how="diagonal_relaxed")
    return figure.prepare(Tables(rows, pl.DataFrame()))
