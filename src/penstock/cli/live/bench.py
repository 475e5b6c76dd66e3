# SPDX-License-Identifier: MIT
"""Measure the cost and the accuracy of live control on this machine.

The exit status is 1 if a measurement misses its goal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, NotRequired, TypedDict

from penstock.bench import (
    BENCHES,
    ROUNDS,
    ROUNDS_OF,
    USERS_OF_OPTION,
    BenchSettings,
    Measurement,
    measure,
)
from penstock.cli.files import OutputFolder, make_folder
from penstock.cli.options import add_json_option, exclude, positive, write_json
from penstock.cli.tables import format_table
from penstock.errors import InputError, UnknownNameError
from penstock.units import parse_bandwidth

__all__ = [
    "FOLDER",
    "SUMMARY",
    "BenchFormat",
    "MeasurementFormat",
    "main",
    "print_measurement",
    "setup_parser",
]

SUMMARY = "measure the cost and the accuracy of live control"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - benchmark files are not secret
#: Default folder of the temporary files.
FOLDER: Final = _MEMORY if _MEMORY.is_dir() else Path("/tmp")  # noqa: S108


class MeasurementFormat(TypedDict):
    """One measurement of a benchmark."""

    name: str
    value: float
    unit: str
    parts: NotRequired[dict[str, float]]
    goal: NotRequired[str]
    reached: bool


class BenchFormat(TypedDict):
    """The result that ``penstock bench --json`` writes."""

    penstock: Literal[1]
    provenance: dict[str, Any]
    processors: int
    load_before: float
    benchmarks: dict[str, list[MeasurementFormat]]


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock bench``."""
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=f"{', '.join(BENCHES)}; `help` describes them",
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        metavar="N",
        help="number of rounds; more rounds give less noise (default: "
        + f"{ROUNDS}; {', '.join(f'{name}: {n}' for name, n in ROUNDS_OF.items())})",
    )
    _add_storage_options(parser)
    _add_selection_options(parser)
    add_json_option(parser)


def _add_storage_options(parser: argparse.ArgumentParser) -> None:
    """Add where to measure, and where results go."""
    parser.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        metavar="DIR",
        help="folder of temporary files (default: in memory)",
    )
    parser.add_argument(
        "--output",
        type=OutputFolder,
        metavar="DIR",
        help="folder for tables and plots of delta, harmless, partition and slo",
    )
    parser.add_argument(
        "--storage",
        type=Path,
        metavar="DIR",
        help="folder that delta writes to (default: a mount with a limit), or in which "
        "harmless also measures, e.g. on a network file system",
    )
    parser.add_argument(
        "--bandwidth",
        metavar="RATE",
        help='bandwidth of --storage, e.g. "2 GB/s" (default: measured)',
    )


def _add_selection_options(parser: argparse.ArgumentParser) -> None:
    """Add what to measure of a benchmark."""
    parser.add_argument(
        "--policies",
        nargs="+",
        default=[],
        metavar="NAME",
        help="policies for fidelity, or strategies for delta and partition (default: "
        "all)",
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="slo, delta: on a real MooseFS of this machine (needs root)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="advice, partition, slo --cluster: a short run of a few scenes, without "
        "goals",
    )
    parser.add_argument(
        "--scenes",
        nargs="+",
        default=[],
        metavar="TEXT",
        help="partition, slo --cluster: only the scenes whose names contain one of "
        'these texts, e.g. four, reader "3 : 1"',
    )


def main(arguments: argparse.Namespace) -> int:
    """Run the benchmarks; print each measurement; return 1 if a goal is missed."""
    if arguments.names == ["help"]:
        sys.stdout.write(
            format_table([(name, row.summary) for name, row in BENCHES.items()])
        )
        return 0
    _check_names(arguments.names)
    _check_effects(arguments)
    from penstock.experiments.output.provenance import provenance

    output = make_folder(arguments.output) if arguments.output else None
    load = os.getloadavg()[0]
    settings = BenchSettings(
        arguments.rounds or ROUNDS,
        arguments.folder,
        policies=tuple(arguments.policies),
        output=output,
        storage=arguments.storage,
        bandwidth_bytes_per_s=_bandwidth(arguments),
        cluster=arguments.cluster,
        quick=arguments.quick,
        scenes=tuple(arguments.scenes),
        provenance=provenance(rounds=arguments.rounds or ROUNDS),
    )
    results: dict[str, list[Measurement]] = {}
    for name in arguments.names:
        results[name] = []
        rounds = arguments.rounds or ROUNDS_OF.get(name, ROUNDS)
        for measurement in measure(name, replace(settings, rounds=rounds)):
            results[name].append(measurement)
            if arguments.json != "-":
                print_measurement(measurement)
    if arguments.json:
        write_json(_document(results, load, settings.provenance), arguments.json)
    every = [measurement for group in results.values() for measurement in group]
    return int(not all(measurement.is_reached for measurement in every))


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in BENCHES:
            raise UnknownNameError("benchmark", name, BENCHES)
        if names.count(name) > 1:
            raise InputError(
                f"benchmark {name!r} is given twice", remedy="leave one out"
            )


def _check_effects(arguments: argparse.Namespace) -> None:
    """Refuse options that would have no effect, and missing folders."""
    names = ", ".join(arguments.names)
    for option, users in USERS_OF_OPTION.items():
        if not set(users) & set(arguments.names):
            remedy = f"use it with {' or '.join(users)}"
            exclude(arguments, (option,), names, remedy)
    short = {"advice", "partition"} & set(arguments.names)
    is_slo = arguments.cluster and "slo" in arguments.names
    if arguments.quick and not (is_slo or short):
        remedy = "use it with advice, partition or slo --cluster"
        raise InputError("--quick has no effect", remedy=remedy)
    if arguments.scenes and not _has_scenes(arguments):
        remedy = "use it with partition or slo --cluster"
        raise InputError("--scenes has no effect", remedy=remedy)
    if arguments.cluster:
        exclude(arguments, ("storage",), "--cluster", "leave one out")
    if arguments.cluster and set(arguments.names) <= {"slo", "delta"}:
        exclude(arguments, ("rounds",), "--cluster", "leave it out")
    for option in ("folder", "storage"):
        folder = getattr(arguments, option)
        if folder is not None and not folder.is_dir():
            raise InputError(
                "there is no such folder",
                where=f"--{option} {folder}",
                remedy="create it first",
            )


def _has_scenes(arguments: argparse.Namespace) -> bool:
    """Return True if a benchmark that is run consists of scenes."""
    is_cluster = arguments.cluster and "slo" in arguments.names
    return is_cluster or "partition" in arguments.names


def _bandwidth(arguments: argparse.Namespace) -> float:
    """Return the bandwidth of the storage (bytes/s); 0: measure it."""
    if arguments.bandwidth is None:
        return 0.0
    if arguments.storage is None:
        raise InputError("--bandwidth has no effect", remedy="use it with --storage")
    try:
        rate = parse_bandwidth(arguments.bandwidth)
    except InputError as error:
        raise error.at("--bandwidth: ") from None
    if not 0.0 < rate < inf:
        raise InputError(
            f"{arguments.bandwidth!r} is not a positive bandwidth",
            where="--bandwidth",
            remedy='give a rate such as "200 MB/s"',
        )
    return rate


def print_measurement(measurement: Measurement) -> None:
    """Print a measurement in one line, with its goal if it is missed."""
    parts = ", ".join(
        f"{part} {value:.4f}" for part, value in measurement.parts.items()
    )
    note = f"  ({parts})" if parts else ""
    note += "" if measurement.is_reached else f"  (goal: {measurement.goal})"
    value, unit = measurement.value, measurement.unit
    sys.stdout.write(f"{value:12.4g} {unit:6} {measurement.name}{note}\n")
    sys.stdout.flush()


def _document(
    results: dict[str, list[Measurement]],
    load: float,
    provenance_facts: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "penstock": 1,
        "provenance": provenance_facts,
        "processors": len(os.sched_getaffinity(0)),
        "load_before": load,
        "benchmarks": {
            name: [
                {
                    "name": measurement.name,
                    "value": measurement.value,
                    "unit": measurement.unit,
                    **({"parts": dict(measurement.parts)} if measurement.parts else {}),
                    **({"goal": measurement.goal} if measurement.has_goal else {}),
                    "reached": measurement.is_reached,
                }
                for measurement in measurements
            ]
            for name, measurements in results.items()
        },
    }
