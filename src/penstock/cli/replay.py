# SPDX-License-Identifier: MIT
"""Replay a trace of reads and writes as real I/O.

TRACE is a CSV file or a Darshan log with DXT records; DIRECTORY holds the files. To
replay it under control: ``penstock run -- penstock replay TRACE DIRECTORY``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import add_json_option, check_writable, write_json
from penstock.cli.tables import format_table

if TYPE_CHECKING:
    from penstock.live.replay import Replayed

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "replay a trace of reads and writes as real I/O"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock replay``."""
    parser.add_argument("trace", metavar="TRACE", help="CSV or .darshan (DXT)")
    parser.add_argument("directory", metavar="DIRECTORY", help="where the files go")
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="shorten the time between accesses by this factor (default: 1)",
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Replay, print and write what every process did."""
    from dataclasses import asdict

    from penstock.experiments.provenance import provenance
    from penstock.live.replay import replay
    from penstock.workloads.traces import read_trace

    check_writable(arguments.json)
    trace = read_trace(arguments.trace)
    done = replay(trace, Path(arguments.directory), speed=arguments.speed)
    if arguments.json:
        facts = provenance(trace=arguments.trace, speed=arguments.speed)
        rows = [asdict(row) for row in done]
        write_json(
            {"penstock": 1, "provenance": facts, "processes": rows}, arguments.json
        )
    if arguments.json != "-":
        sys.stdout.write(_text(done))
    return 0


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
    return format_table(header, rows, left=1)
