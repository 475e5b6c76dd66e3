# SPDX-License-Identifier: MIT
"""The inputs of ``penstock compare``: a workload, instance files, and its own results.

A result that ``penstock compare --json`` wrote is not simulated again. If there are
instance files too, the policies of the results are simulated on these.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.files import expanded
from penstock.cli.options import distinct, exclude, exclude_workload, source_from
from penstock.errors import InputError, PenstockError, UnknownNameError
from penstock.placement import ALLOCATION_REGISTRY, PLACEMENT_REGISTRY
from penstock.policies import POLICIES, get_policy
from penstock.qos import SCHEDULER_REGISTRY
from penstock.staging import STRATEGY_REGISTRY

if TYPE_CHECKING:
    from penstock.experiments.source import Source
    from penstock.experiments.study import Row
    from penstock.policies.policy import Policy

__all__ = ["CompareInputs", "inputs_from"]

#: Other kinds of decisions, and what compares them.
_OTHERS: Final = (
    (SCHEDULER_REGISTRY, "see penstock bench slo and penstock reproduce p5-fig5"),
    (STRATEGY_REGISTRY, "see penstock bench delta and penstock reproduce p4-fig5"),
    (ALLOCATION_REGISTRY, "compare them with --problem FILE --allocation NAME"),
    (PLACEMENT_REGISTRY, "compare them with --problem FILE --placement NAME"),
)


@dataclass(frozen=True, slots=True)
class CompareInputs:
    """What a comparison compares."""

    source: Source | None
    """Instances to simulate; None: all results are known."""
    rows: list[Row]
    """Results that are known."""
    labels: list[str]
    """Policies to compare."""
    is_first_simulated: bool = True
    """True if the first input is an instance, not a result."""

    def policies(self) -> list[Policy]:
        """Return the policies to simulate."""
        return [get_policy(label) for label in self.labels]

    def all_rows(self, simulated: Sequence[Row]) -> list[Row]:
        """Return the results of all policies on all instances."""
        from penstock.experiments.results import merged

        if not self.rows and (self.source is None or not self.source.more):
            return list(simulated)
        _report_copies(simulated)
        first, second = simulated, self.rows
        if not self.is_first_simulated:
            first, second = second, first
        return merged([*first, *second], self.labels)


def _report_copies(rows: Sequence[Row]) -> None:
    """Say which files hold an instance that another file holds."""
    first: dict[str, str] = {}
    copies: dict[str, str] = {}
    for row in rows:
        original = first.setdefault(row["digest"], row["file"])
        if original != row["file"]:
            copies[row["file"]] = original
    for copy, original in copies.items():
        sys.stderr.write(f"counted once: {copy} is the same instance as {original}\n")


def inputs_from(arguments: argparse.Namespace) -> CompareInputs:
    """Return what the command line names; read and check all files."""
    policies = distinct("policy", _find_policy, arguments.policies or POLICIES)
    labels = [policy.label for policy in policies]
    if not arguments.inputs:
        return CompareInputs(source_from(arguments), [], labels)
    exclude_workload(arguments)
    from penstock.experiments.source import Source

    named = expanded(arguments.inputs)
    files = list(dict.fromkeys(named))
    for path in files:
        if named.count(path) > 1:
            sys.stderr.write(f"counted once: {path} is given several times\n")
    results = _read_all(files)
    instances = [path for path in files if path not in results]
    source = Source.of_files(*instances) if instances else None
    if not results:
        return CompareInputs(source, [], labels)
    rows = _known_rows(results, arguments, simulates=source is not None)
    if not arguments.policies:
        labels = _common_labels(rows)
    return CompareInputs(source, rows, labels, files[0] not in results)


def _find_policy(text: str) -> Policy:
    """Return a policy; for the name of another kind, say where it is compared."""
    try:
        return get_policy(text)
    except UnknownNameError:
        name = text.partition(":")[0]
        for registry, remedy in _OTHERS:
            if name in registry.table:
                raise InputError(
                    f"{name!r} is no policy but one of the {registry.plural}",
                    where="--policy",
                    remedy=remedy,
                ) from None
        raise


def _read_all(files: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the documents of those files that are results; check all files.

    Every file that cannot be used is reported in one line.
    """
    from penstock.experiments.source import read_input

    results: dict[str, dict[str, Any]] = {}
    errors: list[PenstockError] = []
    for path in files:
        try:
            document = read_input(path)
        except PenstockError as error:
            errors.append(error)
            continue
        if isinstance(document, dict):
            results[path] = document
    for each in errors[:-1]:
        sys.stderr.write(f"penstock: {each}\n")
    if errors:
        raise errors[-1]
    return results


def _known_rows(
    results: dict[str, dict[str, Any]],
    arguments: argparse.Namespace,
    *,
    simulates: bool,
) -> list[Row]:
    from penstock.experiments.results import rows_of_result

    if not simulates:
        why = "results, which are not simulated again"
        exclude(arguments, ("timeline", "open", "no_bound"), why, "leave it out")
    rows: list[Row] = []
    modes = {"this command": arguments.open} if simulates else {}
    for path, document in results.items():
        rows += rows_of_result(document, path)
        facts = document["provenance"]
        modes[path] = isinstance(facts, dict) and bool(facts.get("open"))
    if len(set(modes.values())) > 1:
        is_open = next(name for name, mode in modes.items() if mode)
        raise InputError(
            f"{is_open} uses --open, other inputs do not",
            remedy="compare results that were computed in the same way",
        )
    return rows


def _common_labels(rows: Sequence[Row]) -> list[str]:
    from penstock.experiments.results import policies_in_all

    labels = policies_in_all(rows)
    if not labels:
        raise InputError(
            "the results have no policy in common",
            remedy="compute the same policies on all instances",
        )
    others = {row["policy"]: None for row in rows if row["policy"] not in labels}
    if others:
        sys.stderr.write(f"not in all results, left out: {', '.join(others)}\n")
    return labels
