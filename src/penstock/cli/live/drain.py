# SPDX-License-Identifier: MIT
"""Show and drain journals of staged writes: ``penstock drain [FOLDER]``.

Draining writes staged data to their files, those of killed programs too. The command
can be run at any time and repeated. The exit status is 1 if a journal could not be
drained; such a journal is kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.files import Word
from penstock.cli.live.options import add_live_options, live_settings
from penstock.cli.options import add_json_option, write_json
from penstock.errors import InputError

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
        help="folder of the journals (default: $PENSTOCK_STAGING, else in memory; and "
        "your folders that the setting `journals` names)",
    )
    parser.add_argument(
        "--show", action="store_true", help="show the journals, and drain none"
    )
    parser.add_argument(
        "--failed",
        action="store_true",
        help="also drain journals that were put aside after an error",
    )
    add_live_options(parser, ("journals",))
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Drain the journals, and report each of them."""
    from penstock.live.staging.drain import (
        JournalState,
        count_failed,
        drain_folder,
        list_journals,
    )

    folders = _folders(arguments)
    reports: list[JournalReport] = []
    for folder in filter(Path.exists, folders):  # Others were never used.
        if arguments.show:
            reports += list_journals(folder)
        else:
            reports += drain_folder(folder, failed=arguments.failed)
    if arguments.json:
        document = {
            "penstock": 1,
            "folders": [str(folder) for folder in folders],
            "journals": [_row(report) for report in reports],
        }
        write_json(document, arguments.json)
    if arguments.json != "-":
        all_reported = arguments.show or arguments.failed
        failed = 0 if all_reported else sum(map(count_failed, folders))
        if not (reports or failed):
            sys.stdout.write(f"no journals in {', '.join(map(str, folders))}\n")
        sys.stdout.write(_text(reports, failed, arguments.folder))
    return int(
        not arguments.show
        and any(report.state is JournalState.KEPT for report in reports)
    )


def _folders(arguments: argparse.Namespace) -> list[Path]:
    """Return the folders of journals that are shown or drained."""
    from penstock.live.staging.drain import default_folders

    if arguments.folder is None:
        return default_folders(live_settings(arguments).journals)
    folder = Path(arguments.folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            "is a file, not a folder of journals",
            where=str(folder),
            remedy="penstock drain --show lists journals with the names of their files",
        )
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", remedy="check its name")
    return [folder]


def _text(reports: list[JournalReport], failed: int, folder: str | None) -> str:
    lines = [_line(report) for report in reports]
    if failed:
        where = f" {folder}" if folder else ""
        lines.append(f"{failed} put aside: penstock drain --failed{where}")
    return "".join(f"{line}\n" for line in lines)


def _line(report: JournalReport) -> str:
    file = report.file or str(report.journal)
    words = [f"{report.state}: {file}"]
    if report.drained_bytes:
        words.append(f"{report.drained_bytes} bytes written")
    if report.pending_bytes:
        where = f" but in its part {report.part}" if report.part else ""
        words.append(f"{report.pending_bytes} bytes not in the file yet{where}")
    return ", ".join(words) + (f": {report.reason}" if report.reason else "")


def _row(report: JournalReport) -> dict[str, Any]:
    return {
        "journal": str(report.journal),
        "file": report.file,
        "state": str(report.state),
        "pending_bytes": report.pending_bytes,
        "drained_bytes": report.drained_bytes,
        "process": report.process,
        "reason": report.reason,
        "part": report.part,
    }
