# SPDX-License-Identifier: MIT
"""List the policies: name, what it does, where it comes from."""

from __future__ import annotations

import argparse
import sys

from penstock.cli.options import add_json_option, write_json
from penstock.policies import PAPERS, POLICIES, installed_policies

__all__ = ["SUMMARY", "main", "print_policies", "setup_parser"]

SUMMARY = "list the policies"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock policies``."""
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Print the table of policies."""
    if arguments.json:
        document = {"penstock": 1, "policies": _rows(), "papers": PAPERS}
        write_json(document, arguments.json)
    if arguments.json != "-":
        print_policies()
    return 0


def print_policies() -> None:
    """Print one line per policy, then the papers."""
    rows = _rows()
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        line = f"{row['name']:{width}}  {row['summary']} [{row['paper']}]"
        sys.stdout.write(f"{line}\n")
    sys.stdout.write("\n")
    for key, paper in PAPERS.items():
        sys.stdout.write(f"{key}: {paper}\n")


def _rows() -> list[dict[str, str]]:
    own = [
        {"name": name, "summary": row.summary, "paper": row.paper}
        for name, row in POLICIES.items()
    ]
    others = [
        {"name": name, "summary": point.value, "paper": "installed"}
        for name, point in installed_policies().items()
    ]
    return own + others
