# SPDX-License-Identifier: MIT
"""Bandwidth profiles: b(n) of an application alone on n = 1, 2, ... targets.

A file of measurements is a CSV with the columns ``name``, ``targets`` (n) and
``bandwidth`` (bytes/s, or with a unit: ``1.2 GiB/s``). Other columns and lines that
begin with ``#`` are ignored. Several lines with the same name and n are repetitions,
and their mean is used. Between measured n, b(n) is interpolated linearly. A measurement
with n = 1 is required, and a profile ends with the largest n.

penstock contains two sets of profiles (target allocation, section 5.1), for n = 1..8:

- "io-nodes": 189 scenarios measured on MareNostrum 4 at n = 1, 2, 4, 8;
- "osts": 301 profiles FITTED AND GENERATED (`ost_profiles.py`); they are not the 301
  configurations that the paper measured on PlaFRIM.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np

from penstock.errors import InputError, UnknownNameError
from penstock.model import Column
from penstock.units import parse_bandwidth

__all__ = ["CASES", "Measurements", "Profile", "measured", "profiles", "read_profiles"]

#: Name of a set of profiles -> its file in ``data``.
_FILES: Final = {"io-nodes": "io_node_profiles.csv", "osts": "ost_profiles.csv"}
#: The sets of profiles that come with penstock.
CASES: Final = tuple(_FILES)

_COLUMNS: Final = ("name", "targets", "bandwidth")
#: Largest plausible number of targets; a larger one is a typing error.
_MOST_TARGETS: Final = 100_000


@dataclass(frozen=True, eq=False, slots=True)
class Profile:
    """The bandwidth of one application alone on n targets."""

    name: str
    bandwidth: Column
    """b(n) for n = 1, 2, ... (bytes/s), read-only."""

    def __post_init__(self) -> None:
        self.bandwidth.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Measurements:
    """The measurements of one application."""

    name: str
    line: int
    """Line of the file with the first measurement."""
    runs: dict[int, list[float]]
    """n -> the bandwidth of every repetition (bytes/s)."""

    @property
    def targets(self) -> list[int]:
        """The measured n, ascending."""
        return sorted(self.runs)

    @property
    def means(self) -> list[float]:
        """Mean bandwidth over the repetitions, for every n of `targets` (bytes/s)."""
        return [_mean(self.runs[n]) for n in self.targets]

    def profile(self) -> Profile:
        """Return b(1), b(2), ... up to the largest n, interpolated linearly."""
        if 1 not in self.runs:
            raise InputError(
                f"{self.name!r} was not measured on 1 target",
                where=f"line {self.line}",
                remedy="add a line with targets = 1",
            )
        wanted = np.arange(1, self.targets[-1] + 1)
        return Profile(self.name, np.interp(wanted, self.targets, self.means))


def read_profiles(path: str | Path) -> tuple[Profile, ...]:
    """Return the profiles of a CSV file of measurements, in the order of the file."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the file: {reason}", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError(
            "not text in UTF-8", where=str(path), remedy="save it as CSV"
        ) from None
    try:
        return tuple(item.profile() for item in _parsed(text))
    except InputError as error:
        raise error.at(f"{path}: ") from None


@cache
def profiles(case: str) -> tuple[Profile, ...]:
    """Return the profiles of "io-nodes" or "osts"."""
    if case not in _FILES:
        raise UnknownNameError("set of profiles", case, _FILES)
    return tuple(item.profile() for item in measured(_FILES[case]))


def measured(name: str) -> list[Measurements]:
    """Return the measurements of a file in ``data``, without interpolation."""
    return _parsed((files("penstock.workloads") / "data" / name).read_text("utf-8"))


def _parsed(text: str) -> list[Measurements]:
    """Return the measurements of a CSV, by name, in the order of the file."""
    rows = _rows(text)
    header = next(rows, (1, []))[1]
    places = [_place(header, column) for column in _COLUMNS]
    by_name: dict[str, Measurements] = {}
    for line, row in rows:
        try:
            name, targets, bandwidth = _record(row, len(header), places)
        except InputError as error:
            raise error.at(f"line {line}: ") from None
        item = by_name.setdefault(name, Measurements(name, line, {}))
        item.runs.setdefault(targets, []).append(bandwidth)
    if not by_name:
        raise InputError(
            "the file has no measurements", remedy="add a line per measurement"
        )
    return list(by_name.values())


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of every line that is not a comment."""
    lines = ("" if line.startswith("#") else line for line in text.splitlines())
    reader = csv.reader(lines, strict=True)
    try:
        for row in reader:
            if any(row):
                yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise InputError(
            f"not CSV: {error}",
            where=f"line {reader.line_num}",
            remedy="correct the quotes and commas",
        ) from None


def _place(header: list[str], column: str) -> int:
    """Return the position of a column."""
    if header.count(column) != 1:
        what = "missing" if column not in header else "given more than once"
        raise InputError(
            f"column {column!r} is {what}",
            remedy=f"the first line must name {', '.join(_COLUMNS)}",
        )
    return header.index(column)


def _record(row: list[str], width: int, places: list[int]) -> tuple[str, int, float]:
    """Return name, n and bandwidth (bytes/s) of one line."""
    if len(row) != width:
        raise InputError(
            f"{len(row)} values under {width} columns", remedy="one value per column"
        )
    name, targets, bandwidth = (row[place] for place in places)
    if not name:
        raise InputError("the name is empty", remedy="name the application")
    return name, _whole(targets), _positive(bandwidth)


def _whole(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= number <= _MOST_TARGETS:
        raise InputError(
            f"{text!r} is not a number of targets",
            remedy=f"write a whole number, 1 to {_MOST_TARGETS}",
        )
    return number


def _positive(text: str) -> float:
    bandwidth = parse_bandwidth(text, bare=True)
    if not bandwidth > 0:
        raise InputError(
            f"{text!r} is not a positive bandwidth",
            remedy="leave out measurements that failed",
        )
    return bandwidth


def _mean(values: list[float]) -> float:
    # Divide first: the sum of two numbers near the largest double would overflow.
    return sum(value / len(values) for value in values)
