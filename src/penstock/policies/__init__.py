# SPDX-License-Identifier: MIT
"""Bandwidth-sharing policies: how much bandwidth each application gets now.

A policy is one file, in the folder of its source: ``policies/bandwidth_sharing/`` and
``policies/io_sets/`` (papers), or ``policies/beyond/``. To add one, copy `_template.py`
into one of these folders and add a row to `POLICIES`. A policy outside of penstock
needs no row: users name it by its dotted name, or install it under the entry-point
group ``penstock.policies``.

The files beside this one are what policies share: `policy` and `view` (the interface),
`serving` and `rounding` (common kernels), `compilation` and `ask` (the caller's side).

The table holds all that is needed to list the policies. Listing them imports neither
the policies nor Numba.
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
        "bandwidth_sharing.fair_share",
        "Give every active application the same fraction of its cap.",
        "bandwidth sharing, section 4.1",
    ),
    "fcfs": TableRow(
        "bandwidth_sharing.fcfs",
        "Serve operations in the order in which they were posted.",
        "bandwidth sharing, section 4.1",
    ),
    "greedy-yield": TableRow(
        "bandwidth_sharing.greedy_yield",
        "Serve the application that has progressed least, relative to its age.",
        "bandwidth sharing, section 4.1",
    ),
    "greedy-com": TableRow(
        "bandwidth_sharing.greedy_com",
        "Serve the operation that can be completed soonest.",
        "bandwidth sharing, section 4.1",
    ),
    "look-ahead-greedy-yield": TableRow(
        "bandwidth_sharing.look_ahead_greedy_yield",
        "Serve first the application that leaves the best minimum yield afterwards.",
        "bandwidth sharing, section 4.1",
    ),
    "periodic-greedy-yield": TableRow(
        "bandwidth_sharing.periodic_greedy_yield",
        "Serve the lowest yield first, and decide again at regular intervals.",
        "bandwidth sharing, section 4.1",
    ),
    "set-10": TableRow(
        "io_sets.set_10",
        "Share between sets of similar periods, serve in order within a set.",
        "IO-SETS, section 3.1; bandwidth sharing, section 4.2",
    ),
    "best-next-event": TableRow(
        "bandwidth_sharing.best_next_event",
        "Share so that the minimum yield at the next completion is the best possible.",
        "bandwidth sharing, section 4.3",
    ),
    "exclusive-fcfs": TableRow(
        "io_sets.exclusive_fcfs",
        "Put all applications in one set and serve in the order of posting.",
        "IO-SETS, section 3",
    ),
    "set-fair-share": TableRow(
        "io_sets.set_fair_share",
        "Share equally between the sets of set-10, serve in order within a set.",
        "IO-SETS, section 3 (ablation)",
    ),
    "share-priority": TableRow(
        "io_sets.share_priority",
        "Share between all applications with the priorities of set-10.",
        "IO-SETS, section 3 (ablation)",
    ),
    "earliest-deadline": TableRow(
        "beyond.earliest_deadline",
        "Serve the operation that must complete first for a common yield.",
        "beyond the papers",
    ),
    "short-over-loss": TableRow(
        "beyond.short_over_loss",
        "Serve short operations first, weighted by the time their application lost.",
        "beyond the papers",
    ),
    "soft-deadline": TableRow(
        "beyond.soft_deadline",
        "Serve the earliest deadline, but let short and rare I/O pass while it costs "
        "little.",
        "beyond the papers",
    ),
}

#: The policy to use without reason for another: ``docs/background/beyond.md``.
RECOMMENDED: Final = "soft-deadline"

POLICY_REGISTRY: Final = Registry(
    kind="policy",
    plural="policies",
    decides="how much bandwidth each application gets now",
    package=__name__,
    table=POLICIES,
    function="allocate",
    arguments=("view", "rates"),
    by_name=False,  # A policy finds its parameters in `view.parameters`.
)

#: Entry-point group in which other packages may announce policies.
ENTRY_POINTS: Final = POLICY_REGISTRY.group


def installed_policies() -> dict[str, EntryPoint]:
    """Return the policies that other packages announce, by name."""
    return POLICY_REGISTRY.installed()


def get_policy(text: str) -> Policy:
    """Return the policy for ``name`` or ``name:key=value,key=value``.

    `name` is a name in the table, a name that an installed package announces, or the
    dotted name of a module with a function ``allocate`` or of such a function.
    """
    from penstock.policies.policy import Policy  # noqa: PLC0415 - imports Numba

    return Policy.bind(POLICY_REGISTRY.find(text))
