# SPDX-License-Identifier: MIT
"""Compare policies on the same instances, side by side and with the bound.

Without arguments: ten instances of the synthetic workload (bandwidth sharing, section
6.2) at I/O pressure 0.8, all policies. With files: their instances; a result that
--json wrote is not simulated again. With --problem: allocations and placements.
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
    source_facts,
    write_json,
)
from penstock.cli.progress import progress_bar
from penstock.cli.simulation.comparison.inputs import inputs_from
from penstock.cli.simulation.comparison.page import (
    check_page_name,
    open_page,
    write_view,
)
from penstock.cli.simulation.comparison.problem import (
    add_problem_options,
    compare_problem,
)
from penstock.cli.simulation.comparison.table import comparison_text, print_cost
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.experiments.source import Source
    from penstock.experiments.study import Row
    from penstock.policies.policy import Policy

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "compare policies on a workload or an instance, with the bound"


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
    parser.add_argument(
        "--view",
        type=OutputFile,
        metavar="FILE",
        help="write a page with frontier, timelines and yields (.html), and open it in "
        "the browser",
    )
    add_problem_options(parser)


def main(arguments: argparse.Namespace) -> int:
    """Simulate, then print the table and write the requested files."""
    if arguments.policies and "help" in arguments.policies:
        from penstock.cli.simulation.policies import print_policies

        print_policies()
        return 0
    check_drawable(arguments.plot, arguments.timeline)
    check_page_name(arguments.view)
    if arguments.problem is not None:
        return compare_problem(arguments)
    for option in ("allocations", "placements"):
        if getattr(arguments, option):
            raise InputError(
                f"{option_name(option)} cannot be used without --problem",
                remedy="name a placement problem",
            )
    inputs = inputs_from(arguments)

    from penstock.experiments.output.documents import comparison_document
    from penstock.experiments.output.provenance import provenance

    source = inputs.source
    simulated = _run(source, inputs.policies(), arguments) if source else []
    rows = inputs.all_rows(simulated)
    facts = provenance(**source_facts(arguments), open=arguments.open)
    if arguments.plot:
        from penstock.experiments.output.plots import comparison_chart, save_figure

        save_figure(comparison_chart(rows), arguments.plot, facts)
    if arguments.timeline and source:
        _draw_timeline(source, inputs.policies(), arguments, facts)
    document = comparison_document(rows, facts)
    if arguments.view:
        write_view(document, arguments.view, policies=inputs.policies())
        open_page(arguments.view)
    if arguments.json:
        write_json(document, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(comparison_text(rows, source))
    print_cost(simulated)
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
