# SPDX-License-Identifier: MIT
"""Compare policies on the same instances, side by side and with the bound.

Without arguments: ten instances of the synthetic workload (bandwidth sharing, section
6.2) at I/O pressure 0.8, all policies. With --problem: allocations and placements.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.files import OutputFile, option_name
from penstock.cli.options import (
    add_jobs_option,
    add_json_option,
    add_source_options,
    check_drawable,
    distinct,
    source_facts,
    source_from,
    write_json,
)
from penstock.cli.progress import progress_bar
from penstock.cli.simulation.compare_problem import add_problem_options, compare_problem
from penstock.cli.tables import counted, format_table, pressure_text
from penstock.errors import InputError
from penstock.policies import POLICIES, RECOMMENDED, get_policy

if TYPE_CHECKING:
    from penstock.experiments.source import Source
    from penstock.experiments.study import Row
    from penstock.policies.policy import Policy

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "compare policies on a workload or an instance, with the bound"

#: Metric -> header of its column.
_COLUMNS = {
    "min_yield": "MinYield",
    "efficiency": "Efficiency",
    "utilization": "Utilization",
    "stretch": "Stretch",
}
#: Blanks before each column: the mark of the recommended policy stands close to the
#: first number.
_COLUMN_SPACING = (0, 1, 0, 3, 2, 2, 4)


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock compare``."""
    add_source_options(parser, instances=10)
    parser.add_argument(
        "--policy",
        dest="policies",
        action="append",
        metavar="NAME[:KEY=VALUE,...]",
        help="a policy to compare; may be repeated; `help` lists them (default: all)",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="allow applications to end inside the observed window",
    )
    parser.add_argument(
        "--no-bound", action="store_true", help="do not compute the bound on MinYield"
    )
    add_jobs_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "--plot",
        type=OutputFile,
        metavar="FILE",
        help="draw MinYield and Efficiency of every policy (.svg, .png, .pdf)",
    )
    parser.add_argument(
        "--timeline",
        type=OutputFile,
        metavar="FILE",
        help="draw the shares of the bandwidth over time, on the first instance",
    )
    add_problem_options(parser)


def main(arguments: argparse.Namespace) -> int:
    """Simulate, then print the table and write the requested files."""
    if arguments.policies and "help" in arguments.policies:
        from penstock.cli.simulation.policies import print_policies

        print_policies()
        return 0
    check_drawable(arguments.plot, arguments.timeline)
    if arguments.problem is not None:
        return compare_problem(arguments)
    for option in ("allocations", "placements"):
        if getattr(arguments, option):
            raise InputError(
                f"{option_name(option)} cannot be used without --problem",
                remedy="name a placement problem",
            )
    policies = distinct("policy", get_policy, arguments.policies or POLICIES)

    from penstock.experiments.output.documents import comparison_document
    from penstock.experiments.output.provenance import provenance

    source = source_from(arguments)
    rows = _run(source, policies, arguments)
    facts = provenance(**source_facts(arguments))
    if arguments.plot:
        from penstock.experiments.output.plots import comparison_chart, save_figure

        save_figure(comparison_chart(rows), arguments.plot, facts)
    if arguments.timeline:
        _draw_timeline(source, policies, arguments, facts)
    if arguments.json:
        write_json(comparison_document(rows, facts), arguments.json)
    if arguments.json != "-":
        _print_table(rows, source.aimed_pressure)
    _print_cost(rows)
    return 0


def _run(
    source: Source, policies: Sequence[Policy], arguments: argparse.Namespace
) -> list[Row]:
    from penstock.experiments.comparison import compare
    from penstock.experiments.runners.executors import local_executor

    with progress_bar(*policies) as show:
        return compare(
            source,
            policies,
            local_executor(min(arguments.jobs, source.count)),
            steady=not arguments.open,
            bounded=not arguments.no_bound,
            progress=show,
        )


def _draw_timeline(
    source: Source,
    policies: Sequence[Policy],
    arguments: argparse.Namespace,
    facts: dict[str, Any],
) -> None:
    from penstock.experiments.output.plots import save_figure, timeline
    from penstock.sim import simulate

    instance = source.instance(0)
    runs = [
        simulate(instance, policy, steady=not arguments.open, record=True)
        for policy in policies
    ]
    save_figure(timeline(runs), arguments.timeline, facts)


def _print_table(rows: Sequence[Row], aimed: float | None) -> None:
    """Print the means over the instances, best MinYield first.

    For a single instance, also print which application has the lowest yield.
    """
    from statistics import fmean

    by_policy: dict[str, list[Row]] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row)
    names = list(by_policy)
    instances = by_policy[names[0]]
    means = {
        name: {column: fmean(row[column] for row in group) for column in _COLUMNS}
        for name, group in by_policy.items()
    }
    best = {
        column: (min if column == "stretch" else max)(m[column] for m in means.values())
        for column in _COLUMNS
    }
    bounds = [row["bound"].min_yield for row in instances if row["bound"]]
    pressure = fmean(row["pressure"] for row in instances)
    worst = {row["policy"]: _worst(row) for row in rows} if len(instances) == 1 else {}
    sys.stdout.write(
        f"mean of {counted(len(instances), 'instance')}, "
        f"{pressure_text(pressure, aimed)}; * best policy"
        f"{', > recommended' if RECOMMENDED in names else ''}\n\n"
    )
    header = ("policy", "", *_COLUMNS.values(), "worst" if worst else "")
    lines = [header]
    if bounds:
        lines.append(("bound (any scheduler)", "", f"{fmean(bounds):.4f}", *[""] * 4))
    for name in sorted(names, key=lambda n: -means[n]["min_yield"]):
        cells = (
            f"{means[name][c]:.4f}{'*' if means[name][c] == best[c] else ''}"
            for c in _COLUMNS
        )
        mark = ">" if name == RECOMMENDED else " "
        lines.append((name, mark, *cells, worst.get(name, "")))
    sys.stdout.write(format_table(lines, gaps=_COLUMN_SPACING))


def _worst(row: Row) -> str:
    """Return the application with the lowest yield; "-" if none was delayed."""
    from penstock.model.application import shortened

    lowest = min(row["yields"])
    name: str = row["applications"][row["yields"].index(lowest)]
    return shortened(name) if lowest < 1 else "-"


def _print_cost(rows: Sequence[Row]) -> None:
    """Print the cost of the simulation on standard error (it differs every time)."""
    events = sum(row["events"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    sys.stderr.write(
        f"{counted(len(rows), 'run')}, {events:,} events, {seconds:.2f} s in the "
        "engine\n"
    )
