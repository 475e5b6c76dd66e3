# SPDX-License-Identifier: MIT
"""Bandwidth-sharing policies: who gets how much bandwidth now.

A policy is one file: copy `_template.py`, then add one row to `POLICIES`. A
policy outside of penstock needs no row: name it by its dotted name, or install
it under the entry-point group ``penstock.policies``.

The table holds what is needed to list the policies, so that listing them
imports none (and neither Numba).
"""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Final

from penstock.registry import PAPERS, Registry, TableRow

if TYPE_CHECKING:
    from penstock.policies.policy import Policy

__all__ = [
    "ENTRY_POINTS",
    "PAPERS",
    "POLICIES",
    "POLICY_REGISTRY",
    "RECOMMENDED",
    "TableRow",
    "get_policy",
    "installed_policies",
]

POLICIES: Final[dict[str, TableRow]] = {
    "fair-share": TableRow(
        "fair_share",
        "Give every active application the same fraction of its cap.",
        "papers/1 §4.1",
    ),
    "fcfs": TableRow(
        "fcfs",
        "Serve operations in the order in which they were posted.",
        "papers/1 §4.1",
    ),
    "greedy-yield": TableRow(
        "greedy_yield",
        "Serve the application that has progressed least, relative to its age.",
        "papers/1 §4.1",
    ),
    "greedy-com": TableRow(
        "greedy_com",
        "Serve the operation that can be completed soonest.",
        "papers/1 §4.1",
    ),
    "look-ahead-greedy-yield": TableRow(
        "look_ahead_greedy_yield",
        "Serve first whoever leaves the best minimum yield at the next completion.",
        "papers/1 §4.1",
    ),
    "periodic-greedy-yield": TableRow(
        "periodic_greedy_yield",
        "Serve the lowest yield, and look again at regular intervals.",
        "papers/1 §4.1",
    ),
    "set-10": TableRow(
        "set_10",
        "Share between orders of magnitude of the period, serve in order within.",
        "papers/3 §3.1, papers/1 §4.2",
    ),
    "best-next-event": TableRow(
        "best_next_event",
        "Share so that the minimum yield at the next completion is the best possible.",
        "papers/1 §4.3",
    ),
    "exclusive-fcfs": TableRow(
        "exclusive_fcfs",
        "One set for all: serve in the order of posting.",
        "papers/3 §3",
    ),
    "set-fair-share": TableRow(
        "set_fair_share",
        "Share equally between the sets of set-10, serve in order within.",
        "papers/3 §3 (ablation)",
    ),
    "share-priority": TableRow(
        "share_priority",
        "A set for every application, with the priorities of set-10.",
        "papers/3 §3 (ablation)",
    ),
    "earliest-deadline": TableRow(
        "earliest_deadline",
        "Serve the operation that must be complete first to keep a common yield.",
        "beyond the papers",
    ),
    "short-over-loss": TableRow(
        "short_over_loss",
        "Serve the shortest operation, weighted by what its application has lost.",
        "beyond the papers",
    ),
    "soft-deadline": TableRow(
        "soft_deadline",
        "Serve the earliest deadline, but let short and rare I/O pass while it costs "
        "little.",
        "beyond the papers",
    ),
}

#: The policy to take if there is no reason for another: ``docs/background/beyond.md``.
RECOMMENDED: Final = "soft-deadline"

POLICY_REGISTRY: Final = Registry(
    kind="policy",
    plural="policies",
    decides="who gets how much bandwidth now",
    package=__name__,
    table=POLICIES,
    function="allocate",
    arguments=("view", "rates"),
    by_name=False,  # They arrive in `view.parameters`.
)

#: Entry-point group in which other packages may announce policies.
ENTRY_POINTS: Final = POLICY_REGISTRY.group


def installed_policies() -> dict[str, EntryPoint]:
    """Return the policies that other packages announce, by name."""
    return POLICY_REGISTRY.installed()


def get_policy(text: str) -> Policy:
    """Return the policy for ``name`` or ``name:key=value,key=value``.

    `name` is one of the table, one of an installed package, or the dotted name of
    a module with a function ``allocate`` (or of such a function).
    """
    from penstock.policies.policy import Policy  # noqa: PLC0415 - imports Numba

    return Policy.bind(POLICY_REGISTRY.find(text))
