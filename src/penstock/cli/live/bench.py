# SPDX-License-Identifier: MIT
"""Measure live control on this machine: what it costs, and how exact it is.

The exit status is 1 if a figure does not reach its goal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

from penstock.bench import (
    ANYWHERE,
    BENCHES,
    COMPARING,
    DRAWING,
    Figure,
    Setting,
    measure,
)
from penstock.cli.files import OutputFolder, make_folder
from penstock.cli.options import add_json_option, exclude, positive, write_json
from penstock.cli.tables import format_table
from penstock.errors import InputError, UnknownNameError
from penstock.units import parse_bandwidth

__all__ = ["FOLDER", "SUMMARY", "main", "print_figure", "setup_parser"]

SUMMARY = "measure what live control costs, and how exact it is"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - files of a benchmark are no secret
#: Where files are written unless it is said otherwise.
FOLDER: Final = _MEMORY if _MEMORY.is_dir() else Path("/tmp")  # noqa: S108


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock bench``."""
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=f"{', '.join(BENCHES)}; `help` says what they are",
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        default=15,
        metavar="N",
        help="more rounds, less noise (default: 15)",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        metavar="DIR",
        help="where files are written (default: in memory)",
    )
    parser.add_argument(
        "--output",
        type=OutputFolder,
        metavar="DIR",
        help=f"write tables and drawings of {' and '.join(DRAWING)} there",
    )
    parser.add_argument(
        "--storage",
        type=Path,
        metavar="DIR",
        help="let delta write to this folder as it is, not to a mount with a limit",
    )
    parser.add_argument(
        "--bandwidth",
        metavar="RATE",
        help='of --storage, e.g. "2 GB/s" (default: measured)',
    )
    parser.add_argument(
        "--policies",
        nargs="+",
        default=[],
        metavar="NAME",
        help="policies that fidelity, strategies that delta compares (default: all)",
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure, print each figure as it is found, and compare with the goals."""
    if arguments.names == ["help"]:
        sys.stdout.write(format_table(list(BENCHES.items())))
        return 0
    _check_names(arguments.names)
    _check_effects(arguments)
    from penstock.experiments.output.provenance import provenance

    output = make_folder(arguments.output) if arguments.output else None
    load = os.getloadavg()[0]
    setting = Setting(
        arguments.rounds,
        arguments.folder,
        policies=tuple(arguments.policies),
        output=output,
        storage=arguments.storage,
        bandwidth=_bandwidth(arguments),
        provenance=provenance(rounds=arguments.rounds),
    )
    found: dict[str, list[Figure]] = {}
    for name in arguments.names:
        found[name] = []
        for figure in measure(name, setting):
            found[name].append(figure)
            if arguments.json != "-":
                print_figure(figure)
    if arguments.json:
        write_json(_document(found, load, setting.provenance), arguments.json)
    figures = [figure for group in found.values() for figure in group]
    return int(not all(figure.is_reached for figure in figures))


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in BENCHES:
            raise UnknownNameError("benchmark", name, BENCHES)
        if names.count(name) > 1:
            raise InputError(
                f"benchmark {name!r} is given twice", remedy="leave one out"
            )


def _check_effects(arguments: argparse.Namespace) -> None:
    """Refuse options that would have no effect, and a folder that is not there."""
    names = ", ".join(arguments.names)
    for option, users in (
        ("policies", COMPARING),
        ("output", DRAWING),
        ("storage", ANYWHERE),
    ):
        if not set(users) & set(arguments.names):
            remedy = f"it goes with {' and '.join(users)}"
            exclude(arguments, (option,), names, remedy)
    for option in ("folder", "storage"):
        folder = getattr(arguments, option)
        if folder is not None and not folder.is_dir():
            raise InputError(
                "there is no such folder",
                where=f"--{option} {folder}",
                remedy="make it first",
            )


def _bandwidth(arguments: argparse.Namespace) -> float:
    """Return the bandwidth of the storage (bytes/s), 0 if it is to be measured."""
    if arguments.bandwidth is None:
        return 0.0
    if arguments.storage is None:
        raise InputError("--bandwidth has no effect", remedy="it goes with --storage")
    try:
        rate = parse_bandwidth(arguments.bandwidth)
    except InputError as error:
        raise error.at("--bandwidth: ") from None
    if not 0.0 < rate < inf:
        raise InputError(
            f"{arguments.bandwidth!r} is not a positive bandwidth", where="--bandwidth"
        )
    return rate


def print_figure(figure: Figure) -> None:
    """Print a figure in one line, with its goal if it is missed."""
    parts = ", ".join(f"{part} {value:.4f}" for part, value in figure.parts.items())
    note = f"  ({parts})" if parts else ""
    note += "" if figure.is_reached else f"  (goal: {_goal(figure)})"
    sys.stdout.write(f"{figure.value:12.4g} {figure.unit:6} {figure.name}{note}\n")
    sys.stdout.flush()


def _goal(figure: Figure) -> str:
    low, high = figure.least, figure.most
    if high == float("inf"):
        return f"at least {low:g}"
    return f"at most {high:g}" if low == -float("inf") else f"{low:g} to {high:g}"


def _document(
    found: dict[str, list[Figure]], load: float, made_by: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "penstock": 1,
        "provenance": made_by,
        "processors": len(os.sched_getaffinity(0)),
        "load_before": load,
        "benchmarks": {
            name: [
                {
                    "name": figure.name,
                    "value": figure.value,
                    "unit": figure.unit,
                    **({"parts": dict(figure.parts)} if figure.parts else {}),
                    **({"goal": _goal(figure)} if figure.has_goal else {}),
                    "reached": figure.is_reached,
                }
                for figure in figures
            ]
            for name, figures in found.items()
        },
    }
