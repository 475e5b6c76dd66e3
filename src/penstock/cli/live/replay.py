# SPDX-License-Identifier: MIT
"""Replay a trace of reads and writes as real I/O.

TRACE is a CSV file or a Darshan log with DXT records. The files are created in
DIRECTORY. To replay a trace under control, use ``penstock run -- penstock replay TRACE
DIRECTORY``.
"""

from __future__ import annotations

import argparse
import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.files import InputFile, Word
from penstock.cli.options import add_json_option, write_json
from penstock.cli.tables import format_table
from penstock.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.bench.replay import Replayed
    from penstock.workloads.traces import Access, Trace

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "replay a trace of reads and writes as real I/O"

_LONGEST_S = 86400.0


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock replay``."""
    parser.add_argument(
        "trace",
        type=InputFile,
        metavar="TRACE",
        help="CSV file, or .darshan log with DXT records",
    )
    parser.add_argument(
        "directory",
        type=Word,
        metavar="DIRECTORY",
        help="folder in which the files are created",
    )
    parser.add_argument(
        "--speed",
        type=_factor,
        default=1.0,
        metavar="FACTOR",
        help="shorten the time between accesses by this factor (default: 1)",
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Replay the trace; print and write one row per process."""
    from dataclasses import asdict

    from penstock.experiments.output.provenance import provenance
    from penstock.workloads.traces import read_trace

    trace = read_trace(arguments.trace)
    _check_duration(trace, arguments.speed)
    done = _replay(trace, arguments)
    if arguments.json:
        facts = provenance(trace=arguments.trace, speed=arguments.speed)
        rows = [asdict(row) for row in done]
        write_json(
            {"penstock": 1, "provenance": facts, "processes": rows}, arguments.json
        )
    if arguments.json != "-":
        sys.stdout.write(_text(done))
    return 0


def _replay(trace: Trace, arguments: argparse.Namespace) -> list[Replayed]:
    """Replay the trace; an error of a process also names the trace."""
    from penstock.bench.replay import replay

    try:
        return replay(trace, Path(arguments.directory), speed=arguments.speed)
    except InputError as error:
        if error.where.startswith("process "):
            raise error.at(f"{arguments.trace}: ") from None
        raise


def _factor(text: str) -> float:
    """Parse a positive number."""
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0.0 < factor < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return factor


def _check_duration(trace: Trace, speed: float) -> None:
    """Refuse a replay that would wait for more than a day between accesses."""
    waits = max(_waits(accesses) for accesses in trace.by_process().values()) / speed
    if waits > _LONGEST_S:
        raise InputError(
            f"a process waits for {waits:.3g} s between its accesses",
            where="--speed",
            remedy=f"give a higher speed; the limit is {_LONGEST_S:g} s",
        )


def _waits(accesses: Sequence[Access]) -> float:
    """Return the total time of a process between its accesses (s)."""
    waited = end = 0.0
    for access in accesses:
        waited += max(0.0, access.start - end)
        end = max(end, access.end)
    return waited


def _text(done: list[Replayed]) -> str:
    header = ["process", "read (MB)", "written (MB)", "in I/O", "traced", "duration"]
    rows = [
        [
            str(row.process),
            f"{row.read / 1e6:.3f}",
            f"{row.written / 1e6:.3f}",
            f"{row.io_s:.3f} s",
            f"{row.traced_io_s:.3f} s",
            f"{row.duration_s:.2f} s",
        ]
        for row in done
    ]
    return format_table([header, *rows], left=1)
