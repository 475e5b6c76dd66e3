# SPDX-License-Identifier: MIT
"""``penstock compare --problem``: allocations and placements side by side."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.cli.files import InputFile
from penstock.cli.options import distinct, exclude, write_json
from penstock.cli.progress import progress_bar
from penstock.cli.tables import format_table
from penstock.errors import InputError
from penstock.placement import ALLOCATIONS, PLACEMENTS, get_allocation, get_placement
from penstock.units import counted

if TYPE_CHECKING:
    from penstock.experiments.placing import PlacementPlan, PlanComparison, PlanResult

__all__ = ["add_problem_options", "compare_problem"]

#: The options of ``penstock compare`` that are for instances.
_OF_INSTANCES: Final = (
    *("inputs", "workload", "workload_settings", "instances", "seed"),
    *("open", "no_bound", "plot", "timeline", "view"),
)
_NAMES: Final = ("allocation", "placement", "policy")
_NUMBERS: Final = {
    "Mean-I/O-SlowDown": "mean_io_slowdown",
    "= rho_io": "rho_io",
    "+ rho_con": "rho_con",
    "I/O-spread": "io_spread",
    "Machine-Idletime": "machine_idletime",
}


def add_problem_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--problem``, ``--allocation`` and ``--placement``."""
    group = parser.add_argument_group("allocations and placements instead of policies")
    group.add_argument(
        "--problem",
        type=InputFile,
        metavar="FILE",
        help="a placement problem (JSON): compare ways to assign storage targets; "
        "--policy shares every target (default: fair-share)",
    )
    for kind in ("allocation", "placement"):
        group.add_argument(
            f"--{kind}",
            dest=f"{kind}s",
            action="append",
            metavar="NAME[:KEY=VALUE,...]",
            help=f"{kind} to compare; may be repeated (default: all)",
        )


def compare_problem(arguments: argparse.Namespace) -> int:
    """Simulate every combination, then print the table and write the file."""
    exclude(arguments, _OF_INSTANCES, "--problem")
    from penstock.experiments.output.documents import plan_comparison_document
    from penstock.experiments.output.provenance import provenance
    from penstock.experiments.placing import compare_plans
    from penstock.model import read_problem
    from penstock.policies import get_policy

    policies = distinct("policy", get_policy, arguments.policies or ["fair-share"])
    allocations, placements = arguments.allocations, arguments.placements
    allocators = distinct("allocation", get_allocation, allocations or ALLOCATIONS)
    placers = distinct("placement", get_placement, placements or PLACEMENTS)
    problem = read_problem(arguments.problem)
    with progress_bar(*policies) as show:
        comparison = compare_plans(
            problem,
            allocators,
            placers,
            policies,
            progress=lambda done, total: show(done, total, ""),
        )
    if not comparison.outcomes:
        raise _nothing_to_compare(comparison)
    if arguments.json:
        facts = provenance(problem=arguments.problem)
        write_json(plan_comparison_document(comparison, facts), arguments.json)
    if arguments.json != "-":
        sys.stdout.writelines(_text(comparison))
    return 0


def _nothing_to_compare(comparison: PlanComparison) -> InputError:
    first = comparison.refusals[0]
    return InputError(
        f"none of {len(comparison.refusals)} combinations can be simulated; "
        f"{first.allocator} + {first.placer}: {first.reason}"
    )


def _text(comparison: PlanComparison) -> Iterator[str]:
    """Yield the table, best first, then the refused combinations with reasons."""
    problem, outcomes = comparison.problem, comparison.outcomes
    policies = {result.policy for _, result in outcomes}
    # The policy needs a column only if there are several.
    names = len(_NAMES) if len(policies) > 1 else len(_NAMES) - 1
    applications = counted(len(problem.applications), "application")
    yield f"{counted(problem.resources, 'target')}, {applications}\n"
    yield (
        f"{', '.join(sorted(policies))} on every target, until the first "
        "application ends\n\n"
    )
    header = [*_NAMES[:names], *_NUMBERS, "I/O-load"]
    rows = [_cells(*outcome, names) for outcome in outcomes]
    yield format_table([header, *rows], left=names)
    reasons: dict[str, list[str]] = {}
    for refusal in comparison.refusals:
        combination = (refusal.allocator, refusal.placer, refusal.policy)[:names]
        reasons.setdefault(refusal.reason, []).append(" + ".join(combination))
    for reason, combinations in reasons.items():
        yield f"\nnot {', '.join(combinations)}:\n  {reason}\n"


def _cells(plan: PlacementPlan, result: PlanResult, names: int) -> list[str]:
    numbers = [getattr(result.metrics, name) for name in _NUMBERS.values()]
    words = (plan.allocator, plan.placer, result.policy)[:names]
    return [*words, *(f"{number:z.4f}" for number in (*numbers, plan.io_load))]
