# SPDX-License-Identifier: MIT
"""Report whether a program can be controlled; if not, why, and what to do.

The exit status is 0 if the program can be controlled, 1 if a part of its I/O cannot,
and 2 if the program cannot be controlled or does not exist.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from penstock.cli.files import Word
from penstock.cli.options import add_json_option, write_json

if TYPE_CHECKING:
    from penstock.live.node.launch.check import CheckReport

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "say whether a program can be controlled"
_WORDS = ("can be controlled", "can be controlled in part", "cannot be controlled")


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock check``."""
    parser.add_argument(
        "program", type=Word, metavar="PROGRAM", help="a program, by path or name"
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Examine the program; print the verdict and its reasons."""
    from penstock.live.node.launch.check import check

    report = check(arguments.program)
    if arguments.json:
        write_json(_document(report), arguments.json)
    if arguments.json != "-":
        sys.stdout.write(_text(report))
    return int(report.verdict)


def _text(report: CheckReport) -> str:
    lines = [f"{report.program} {_WORDS[report.verdict]}"]
    for finding in report.findings:
        lines += [f"- {finding.what}", f"  what to do: {finding.remedy}"]
    return "\n".join(lines) + "\n"


def _document(report: CheckReport) -> dict[str, Any]:
    return {
        "penstock": 1,
        "program": report.program,
        "verdict": report.verdict.name.lower(),
        "examined": report.examined,
        "findings": [
            {"verdict": f.verdict.name.lower(), "what": f.what, "remedy": f.remedy}
            for f in report.findings
        ],
    }
