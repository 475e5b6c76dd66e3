# SPDX-License-Identifier: MIT
"""Compare policies on the same instances, side by side and with the bound.

Without arguments: ten instances of the synthetic workload of papers/1 at I/O
pressure 0.8, all policies. With --problem: allocations and placements instead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.files import OutputFile
from penstock.cli.options import (
    add_jobs_option,
    add_json_option,
    add_source_options,
    check_drawable,
    distinct,
    exclude,
    source_facts,
    source_from,
    write_json,
)
from penstock.cli.progress import progress_bar
from penstock.cli.simulation.compare_problem import add_problem_options, compare_problem
from penstock.cli.tables import counted, pressure_text
from penstock.policies import POLICIES, RECOMMENDED, get_policy

if TYPE_CHECKING:
    from penstock.experiments.compare import InstanceComparison
    from penstock.experiments.source import Source

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "compare policies on a workload or an instance, with the bound"

_COLUMNS = ("min_yield", "efficiency", "utilization", "stretch")


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
        help="allow applications to end inside the window",
    )
    parser.add_argument(
        "--no-bound", action="store_true", help="do not compute the bound"
    )
    add_jobs_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "--plot",
        type=OutputFile,
        metavar="FILE",
        help="box plots (.svg, .png, .pdf)",
    )
    parser.add_argument(
        "--timeline",
        type=OutputFile,
        metavar="FILE",
        help="who had which share of the bandwidth when, on the first instance",
    )
    add_problem_options(parser)


def main(arguments: argparse.Namespace) -> int:
    """Simulate, then print the table and write the files asked for."""
    if arguments.policies and "help" in arguments.policies:
        from penstock.cli.simulation.policies import print_policies

        print_policies()
        return 0
    check_drawable(arguments.plot, arguments.timeline)
    if arguments.problem is not None:
        return compare_problem(arguments)
    exclude(arguments, ("allocations", "placements"), "instances", "give --problem")
    found = distinct("policy", get_policy, arguments.policies or POLICIES)
    policies = [policy.label for policy in found]

    from penstock.experiments.output.documents import comparison_document
    from penstock.experiments.output.provenance import provenance

    source = source_from(arguments)
    reports = _run(source, policies, arguments)
    facts = provenance(**source_facts(arguments))
    if arguments.plot:
        from penstock.experiments.output.plots import box_plots, save_figure

        save_figure(box_plots(reports), arguments.plot, facts)
    if arguments.timeline:
        _draw_timeline(source, policies, arguments, facts)
    if arguments.json:
        write_json(comparison_document(reports, facts), arguments.json)
    if arguments.json != "-":
        _print_table(reports, source.aimed_pressure)
    _print_cost(reports)
    return 0


def _run(
    source: Source, policies: Sequence[str], arguments: argparse.Namespace
) -> list[InstanceComparison]:
    from penstock.experiments.compare import compare

    with progress_bar(*policies) as show:
        return compare(
            source,
            policies,
            steady=not arguments.open,
            bounded=not arguments.no_bound,
            jobs=arguments.jobs if source.count > 1 else 1,
            progress=show,
        )


def _draw_timeline(
    source: Source,
    policies: Sequence[str],
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


def _print_table(reports: Sequence[InstanceComparison], aimed: float | None) -> None:
    """Print the means over the instances, best MinYield first.

    Of a single instance it also says whose yield is the lowest.
    """
    from statistics import fmean

    names = list(reports[0].outcomes)
    means = {
        name: {
            column: fmean(getattr(r.outcomes[name].metrics, column) for r in reports)
            for column in _COLUMNS
        }
        for name in names
    }
    best = {
        column: (min if column == "stretch" else max)(m[column] for m in means.values())
        for column in _COLUMNS
    }
    bounds = [r.bound.min_yield for r in reports if r.bound]
    width = max(len(name) for name in [*names, "bound (any scheduler)"])
    pressure = fmean(r.pressure for r in reports)
    worst = _worst(reports[0]) if len(reports) == 1 else {}
    lines = [
        f"mean of {counted(len(reports), 'instance')}, "
        f"{pressure_text(pressure, aimed)}; * best policy"
        + (", > recommended" if RECOMMENDED in names else ""),
        "",
        f"{'policy':{width}}  MinYield   Efficiency  Utilization  Stretch"
        + ("    worst" if worst else ""),
    ]
    if bounds:
        lines.append(f"{'bound (any scheduler)':{width}}  {fmean(bounds):.4f}")
    for name in sorted(names, key=lambda n: -means[n]["min_yield"]):
        cells = [
            f"{means[name][c]:.4f}{'*' if means[name][c] == best[c] else ' '}"
            for c in _COLUMNS
        ]
        head = f"{name:{width}} {'>' if name == RECOMMENDED else ' '}"
        row = f"{head}{cells[0]}    {cells[1]}     {cells[2]}      {cells[3]:9}"
        lines.append(f"{row}  {worst.get(name, '')}".rstrip())
    sys.stdout.write("\n".join(lines) + "\n")


def _worst(report: InstanceComparison) -> dict[str, str]:
    """Return by policy whose yield is the lowest; "-" where nobody was delayed."""
    from penstock.model.application import shortened

    found = {}
    for name, outcome in report.outcomes.items():
        lowest = min(outcome.yields)
        number = outcome.yields.index(lowest)
        found[name] = shortened(report.applications[number]) if lowest < 1 else "-"
    return found


def _print_cost(reports: Sequence[InstanceComparison]) -> None:
    """Say on standard error what the simulation took (it differs every time)."""
    outcomes = [o for report in reports for o in report.outcomes.values()]
    events = sum(o.events for o in outcomes)
    seconds = sum(o.seconds for o in outcomes)
    sys.stderr.write(
        f"{counted(len(outcomes), 'run')}, {events:,} events, {seconds:.2f} s in the "
        "engine\n"
    )
