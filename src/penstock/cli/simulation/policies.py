# SPDX-License-Identifier: MIT
"""List policies, allocations, placements, strategies and schedulers.

Every line has the name, the rule and the paper. For allocations and placements it also
has the facts about every application that the algorithm needs. With a NAME, its full
description and its parameters are shown.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from typing import Any, Final

from penstock.cli.options import add_json_option, write_json
from penstock.cli.tables import format_table
from penstock.errors import InputError, UnknownNameError
from penstock.placement import ALLOCATION_REGISTRY, PLACEMENT_REGISTRY, Input
from penstock.policies import POLICY_REGISTRY
from penstock.qos import SCHEDULER_REGISTRY
from penstock.registry import PAPERS, Parameter, Registry, TableRow
from penstock.staging import STRATEGY_REGISTRY

__all__ = ["SUMMARY", "main", "print_description", "print_policies", "setup_parser"]

SUMMARY = "list policies, allocations, placements, strategies and schedulers"

_REGISTRIES: Final = (
    *(POLICY_REGISTRY, ALLOCATION_REGISTRY, PLACEMENT_REGISTRY, STRATEGY_REGISTRY),
    SCHEDULER_REGISTRY,
)


#: What the inputs are that allocations and placements need.
_INPUTS = (
    "inputs of an application: Q_j compute nodes, V_io volume of I/O, T_cpu time of "
    "computation,\n"
    "  n_perf number of targets on which it is fastest, b_j bandwidth on 1, 2, ... "
    "targets"
)


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock policies``."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="show the description and the parameters of this one",
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Print the tables, or the description of one plug-in."""
    if arguments.name:
        if arguments.json:
            raise InputError("--json takes no NAME", remedy="leave one of both out")
        print_description(arguments.name)
        return 0
    if arguments.json:
        tables = {registry.plural: _rows(registry) for registry in _REGISTRIES}
        write_json({"penstock": 1, **tables, "papers": PAPERS}, arguments.json)
    if arguments.json != "-":
        print_policies()
    return 0


def print_policies() -> None:
    """Print one line per policy and algorithm, then the papers."""
    for registry in _REGISTRIES:
        sys.stdout.write(f"{registry.plural}: {registry.decides}\n")
        rows = [(row["name"], _description(row)) for row in _rows(registry)]
        sys.stdout.write(f"{format_table(rows, gaps=(2, 2))}\n")
    sys.stdout.write(f"{_INPUTS}\n\n")
    for key, paper in PAPERS.items():
        sys.stdout.write(f"{key}: {paper}\n")


def print_description(name: str) -> None:
    """Print the description and the parameters of all plug-ins with this name.

    Raises `UnknownNameError` if there is none.
    """
    registries = [r for r in _REGISTRIES if name in {*r.table, *r.installed()}]
    if not registries:
        known = [n for r in _REGISTRIES for n in (*r.table, *r.installed())]
        raise UnknownNameError("name", name, sorted({*known}))
    for registry in registries:
        found = registry.find(name)
        description = inspect.getdoc(found.module) or "no description"
        sys.stdout.write(f"{registry.kind} {name}\n\n{description}\n\n")
        rows = [_parameter_row(parameter) for parameter in found.declared]
        if not rows:
            sys.stdout.write("no parameters\n")
            continue
        example = ",".join(f"{p.name}={p.default}" for p in found.declared)
        sys.stdout.write(f"parameters, with their defaults ({name}:{example})\n")
        sys.stdout.write(format_table(rows, gaps=(2, 2)))


def _parameter_row(parameter: Parameter) -> tuple[str, str]:
    """Return the name of a parameter, and its meaning with the words or the unit."""
    values = ", ".join(parameter.choices) or parameter.unit or "a number"
    return parameter.name, f"{parameter.meaning} ({values})"


def _description(row: dict[str, Any]) -> str:
    text = f"{row['summary']} [{row['paper']}]"
    if "needs" not in row:
        return text
    return f"{text} needs {', '.join(row['needs']) or 'nothing'}"


def _rows(registry: Registry) -> list[dict[str, Any]]:
    own: list[dict[str, Any]] = [
        {"name": name, "summary": row.summary, "paper": row.paper, **_needs(row)}
        for name, row in registry.table.items()
    ]
    others = [
        {"name": name, "summary": point.value, "paper": "installed"}
        for name, point in registry.installed().items()
    ]
    return own + others


def _needs(row: TableRow) -> dict[str, list[str]]:
    """Return the inputs that an algorithm needs; nothing for a policy."""
    needs = getattr(row, "needs", None)
    return {} if needs is None else {"needs": [item for item in Input if item in needs]}
