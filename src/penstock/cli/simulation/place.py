# SPDX-License-Identifier: MIT
"""Choose how many and which storage targets every application gets.

PROBLEM is a file with the number of targets and the known facts about the applications.
``penstock policies`` lists the algorithms and the facts that they need.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.cli.files import InputFile
from penstock.cli.options import add_json_option, write_json
from penstock.cli.progress import progress_bar
from penstock.cli.tables import format_table
from penstock.errors import InputError
from penstock.placement import placement_for
from penstock.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.experiments.placing import PlacementPlan, PlanResult

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "choose how many and which storage targets every application gets"

_POLICY = "fair-share"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock place``."""
    name = "NAME[:KEY=VALUE,...]"
    parser.add_argument(
        "problem", type=InputFile, metavar="PROBLEM", help="a placement problem (JSON)"
    )
    parser.add_argument(
        "--allocation",
        metavar=name,
        default="t-cpu",
        help="algorithm that decides how many targets each application gets "
        "(default: t-cpu)",
    )
    parser.add_argument(
        "--placement",
        metavar=name,
        help="algorithm that decides which targets (default: greedy-non-clairvoyant; "
        "with mckp: exclusive)",
    )
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="simulate until the first application ends, and print all slowdowns",
    )
    parser.add_argument(
        "--policy",
        metavar=name,
        help=f"policy that shares every target in the simulation (default: {_POLICY})",
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Decide, simulate with --simulate, print and write."""
    if arguments.policy and not arguments.simulate:
        raise InputError(
            "--policy has no effect without --simulate", remedy="add --simulate"
        )
    from penstock.experiments.output.documents import plan_document
    from penstock.experiments.output.provenance import provenance

    plan, result = _decide(arguments)
    if arguments.json:
        facts = provenance(
            problem=arguments.problem,
            allocation=plan.allocator,
            placement=plan.placer,
            **({"policy": result.policy} if result else {}),
        )
        write_json(plan_document(plan, result, facts), arguments.json)
    if arguments.json != "-":
        sys.stdout.write(_plan_text(plan, result))
        if result:
            sys.stdout.write(_totals_text(result))
    return 0


def _decide(arguments: argparse.Namespace) -> tuple[PlacementPlan, PlanResult | None]:
    from penstock.experiments.placing import make_plan, simulate_plan
    from penstock.model import read_problem
    from penstock.model.documents import inside
    from penstock.placement import get_allocation, get_placement
    from penstock.policies import get_policy

    allocator = get_allocation(arguments.allocation)
    placer = get_placement(arguments.placement or placement_for(allocator.name))
    policy = get_policy(arguments.policy or _POLICY)
    problem = read_problem(arguments.problem)
    with inside(f"{arguments.problem}: "):
        plan = make_plan(problem, allocator, placer)
        if not arguments.simulate:
            return plan, None
        with progress_bar(policy):
            return plan, simulate_plan(plan, policy)


def _plan_text(plan: PlacementPlan, result: PlanResult | None) -> str:
    """Return a table with one line per application."""
    load = "not known" if plan.io_load is None else f"{plan.io_load:.3f}"
    header = ["application", "on targets", "n"]
    rows = [
        [application.name, _ranges(targets), str(len(targets))]
        for application, targets in zip(
            plan.problem.applications, plan.placement, strict=True
        )
    ]
    if result:
        header += ["slowdown", "= rho_io", "+ rho_con", "time in I/O"]
        for j, row in enumerate(rows):
            row += _result_cells(result, j)
    return (
        f"{plan.allocator} + {plan.placer}: "
        f"{counted(plan.problem.resources, 'target')}, "
        f"I/O-load {load}\n\n{format_table([header, *rows], left=2)}"
    )


def _result_cells(result: PlanResult, j: int) -> list[str]:
    parts = (result.metrics.slowdowns, result.rho_io, result.rho_con)
    return [
        *(f"{part[j]:z.3f}" for part in parts),
        f"{result.in_io_s[j]:.0f} s",
    ]


def _totals_text(result: PlanResult) -> str:
    metrics = result.metrics
    text = (
        f"\nMean-I/O-SlowDown {metrics.mean_io_slowdown:.4f} = rho_io "
        f"{metrics.rho_io:.4f} + rho_con {metrics.rho_con:z.4f}\n"
        f"I/O-spread {metrics.io_spread:.4f}, Machine-Idletime "
        f"{metrics.machine_idletime:.4f}\n"
        f"{result.policy} on every target, for {result.window_s:.0f} s: "
        "until the first application ends\n"
    )
    if result.incomplete:
        text += (
            f"{counted(result.incomplete, 'application')} had not completed an "
            "operation by then: the part that was done counts\n"
        )
    return text


def _ranges(targets: Sequence[int]) -> str:
    """Return ascending numbers as ranges: ``0-3,7``."""
    breaks = [i for i, (a, b) in enumerate(pairwise(targets), 1) if b != a + 1]
    edges = pairwise([0, *breaks, len(targets)])
    runs = [(targets[first], targets[last - 1]) for first, last in edges]
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs)
