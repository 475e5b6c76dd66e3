# SPDX-License-Identifier: MIT
"""Show a result of penstock compare in a browser: frontier, timelines, yields.

The page is one file that needs no server and no network. It is opened in the browser of
the desktop, if there is one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from penstock.cli.files import InputFile, MadeFile, check_file
from penstock.cli.options import natural
from penstock.cli.simulation.comparison.page import (
    check_page_name,
    open_page,
    write_view,
)
from penstock.errors import InputError

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "show a result of penstock compare in a browser"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock view``."""
    parser.add_argument(
        "result",
        type=InputFile,
        metavar="RESULT",
        help="a file that penstock compare --json wrote",
    )
    parser.add_argument(
        *("-o", "--output"),
        type=MadeFile,
        metavar="FILE",
        help="write the page to this file (default: RESULT with the ending .html)",
    )
    parser.add_argument(
        "--instance",
        type=natural,
        metavar="N",
        default=0,
        help="the instance whose timelines are drawn (default: 0, the first one)",
    )
    parser.add_argument("--no-browser", action="store_true", help="write the page only")


def main(arguments: argparse.Namespace) -> int:
    """Write the page, say where it is, and open it."""
    path = arguments.output or str(Path(arguments.result).with_suffix(".html"))
    check_page_name(path)
    if not arguments.output:
        check_file(path)
    document = _read_result(arguments.result)
    write_view(document, path, number=arguments.instance)
    sys.stdout.write(f"{path}\n")
    if not arguments.no_browser:
        open_page(path)
    return 0


def _read_result(path: str) -> dict[str, Any]:
    """Return a result with the policies that all of its instances have.

    Raises `InputError` if the file is not a result, or is damaged.
    """
    from penstock.experiments.results import policies_in_all, rows_of_result
    from penstock.experiments.source import read_input

    result = read_input(path)
    if not isinstance(result, dict):
        raise InputError(
            "this file is an instance, not a result",
            where=path,
            remedy=f"penstock compare {path} --view FILE.html shows it",
        )
    rows = rows_of_result(result, path)
    labels = policies_in_all(rows)
    is_whole = all(each["policies"] for each in result["instances"])
    if not (labels and is_whole) or any(
        len(row["yields"]) != len(row["applications"]) for row in rows
    ):
        raise InputError(
            "this result of penstock compare is damaged: yields are missing",
            where=path,
            remedy="write it again with penstock compare --json",
        )
    facts = result["provenance"]
    instances = [
        {**each, "policies": {label: each["policies"][label] for label in labels}}
        for each in result["instances"]
    ]
    return {
        "provenance": facts if isinstance(facts, dict) else {},
        "instances": instances,
    }
