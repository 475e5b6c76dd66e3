# SPDX-License-Identifier: MIT
"""Show and drain journals of staged writes: ``penstock drain [FOLDER]``.

What programs have staged goes to its files, also what those have left behind that were
killed. It may be run at any time and as often as one likes. The exit status is 1 if
something could not be drained; it is kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.files import Word
from penstock.cli.options import add_json_option, write_json

if TYPE_CHECKING:
    from penstock.live.staging.drain import JournalReport

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "show and drain journals of staged writes, also after a crash"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock drain``."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Word,
        metavar="FOLDER",
        help="folder of the journals (default: $PENSTOCK_STAGING, else in memory)",
    )
    parser.add_argument("--show", action="store_true", help="show, drain nothing")
    parser.add_argument(
        "--failed",
        action="store_true",
        help="also those put aside after an error that the program was told of",
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Drain, and say what was done."""
    from penstock.live.staging.drain import (
        JournalState,
        count_failed,
        default_folder,
        drain_folder,
        list_journals,
    )

    folder = Path(arguments.folder) if arguments.folder else default_folder()
    if arguments.folder is None and not folder.exists():
        found = []  # Nobody has staged anything.
    elif arguments.show:
        found = list_journals(folder)
    else:
        found = drain_folder(folder, failed=arguments.failed)
    if arguments.json:
        write_json(
            {"penstock": 1, "journals": [_row(f) for f in found]}, arguments.json
        )
    if arguments.json != "-":
        said_of_all = arguments.show or arguments.failed
        aside = 0 if said_of_all else count_failed(folder)
        sys.stdout.write(_text(found, aside, arguments.folder))
    return int(not arguments.show and any(f.state is JournalState.KEPT for f in found))


def _text(found: list[JournalReport], aside: int, folder: str | None) -> str:
    lines = [_line(journal) for journal in found]
    if aside:
        where = f" {folder}" if folder else ""
        lines.append(f"{aside} put aside: penstock drain --failed{where}")
    return "".join(f"{line}\n" for line in lines or ["no journals"])


def _line(found: JournalReport) -> str:
    file = found.file or str(found.journal)
    words = [f"{found.state}: {file}"]
    if found.drained_bytes:
        words.append(f"{found.drained_bytes} bytes written")
    if found.pending_bytes:
        words.append(f"{found.pending_bytes} bytes not in the file yet")
    return ", ".join(words) + (f": {found.reason}" if found.reason else "")


def _row(found: JournalReport) -> dict[str, Any]:
    return {
        "journal": str(found.journal),
        "file": found.file,
        "state": str(found.state),
        "pending_bytes": found.pending_bytes,
        "drained_bytes": found.drained_bytes,
        "process": found.process,
        "reason": found.reason,
    }
