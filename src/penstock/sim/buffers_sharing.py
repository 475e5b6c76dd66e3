# SPDX-License-Identifier: MIT
"""Let a bandwidth-sharing policy share one storage target.

The policies are those of the engine, interpreted instead of compiled. For K
applications, entry i of the columns is the writing of application i, and entry K + i
its draining: to a policy both are operations of an application, with the same age and
the same lost time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from penstock.policies.ask import (
    TOLERANCE,
    ask_policy,
    contract_error,
    find_breach,
    read_only,
)
from penstock.policies.policy import Policy
from penstock.policies.view import View

__all__ = ["Columns", "FlowDemand", "Shares", "TargetRules", "ask", "share_target"]


@dataclass(frozen=True, slots=True)
class FlowDemand:
    """One flow that demands a share of a target; in the units of `Flow`."""

    entry: int
    cap: float
    remaining: float
    volume: float
    posted: float
    """When its operation was posted (s)."""


@dataclass(slots=True)
class Columns:
    """The columns of `View` that describe applications; lists by entry."""

    window_begin: float
    window_end: float
    dedicated_events: float
    release: list[float]
    nodes: list[int]
    lost: list[float]
    operations: list[int]
    iterations: list[int]
    iteration_time: list[float]
    work_before: list[float]
    blank: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.blank = [0.0] * len(self.release)


@dataclass(frozen=True, slots=True)
class Shares:
    """Rates by entry, and when to ask the policy again (s)."""

    rates: Mapping[int, float]
    wake: float


@dataclass(frozen=True, slots=True)
class TargetRules:
    """How one storage target is shared among writers and drains."""

    sharing: Policy
    """The policy of the writers; without `background`, also that of the drains."""
    draining: Policy
    """With `background`: the policy that shares among the drains what writers leave."""
    capacity: float
    efficiency: float
    """Fraction of the capacity that is left when several applications are served at
    the same time."""
    background: bool
    """True if drains get only what the writers leave."""


def ask(
    policy: Policy,
    now: float,
    capacity: float,
    demands: Sequence[FlowDemand],
    columns: Columns,
) -> Shares:
    """Let `policy` share `capacity` among `demands`, ascending by entry.

    Raises `PolicyError` if the policy fails or breaks its contract.
    """
    if not demands:
        return Shares({}, inf)
    rates = [0.0] * len(columns.release)
    view = _view(policy, now, capacity, demands, columns)
    wake = ask_policy(policy, view, rates)
    breach = find_breach(view, rates, wake)
    if breach is not None:
        raise contract_error(policy, breach, now)
    return Shares({d.entry: min(rates[d.entry], d.cap) for d in demands}, wake)


def share_target(
    rules: TargetRules, now: float, demands: Sequence[FlowDemand], columns: Columns
) -> Shares:
    """Share one target among writers and drains, ascending by entry.

    Raises `PolicyError` if a policy fails or breaks its contract.
    """
    capacity, efficiency = rules.capacity, rules.efficiency
    half = len(columns.release) // 2
    if not rules.background:
        shares = ask(rules.sharing, now, capacity, demands, columns)
        return _interleaved(shares, capacity, efficiency, half)
    writers = [d for d in demands if d.entry < half]
    first = ask(rules.sharing, now, capacity, writers, columns)
    first = _interleaved(first, capacity, efficiency, half)
    served = sum(rate > 0 for rate in first.rates.values())
    left = capacity * (efficiency if served else 1.0) - sum(first.rates.values())
    drains = [
        FlowDemand(d.entry, min(d.cap, left), d.remaining, d.volume, d.posted)
        for d in demands
        if d.entry >= half and left > capacity * TOLERANCE
    ]
    rest = ask(rules.draining, now, left, drains, columns)
    if not served:
        rest = _interleaved(rest, capacity, efficiency, half)
    return Shares({**first.rates, **rest.rates}, min(first.wake, rest.wake))


def _interleaved(
    shares: Shares, capacity: float, efficiency: float, half: int
) -> Shares:
    """Scale the rates down to what is left when several applications interfere."""
    served = {entry % half for entry, rate in shares.rates.items() if rate > 0}
    total = sum(shares.rates.values())
    if len(served) < 2 or total <= efficiency * capacity:
        return shares
    factor = efficiency * capacity / total
    return Shares({e: factor * r for e, r in shares.rates.items()}, shares.wake)


def _view(
    policy: Policy,
    now: float,
    capacity: float,
    demands: Sequence[FlowDemand],
    columns: Columns,
) -> View:
    size = len(columns.release)
    cap, remaining = columns.blank.copy(), columns.blank.copy()
    volume, posted = columns.blank.copy(), columns.blank.copy()
    for d in demands:
        cap[d.entry], remaining[d.entry] = d.cap, d.remaining
        volume[d.entry], posted[d.entry] = d.volume, d.posted
    whole = [0] * size
    shown: dict[str, Any] = {
        "now": now,
        "capacity": capacity,
        "window_begin": columns.window_begin,
        "window_end": columns.window_end,
        "dedicated_events": columns.dedicated_events,
        "entries": size,
        "n_active": len(demands),
        "parameters": policy.parameters.tolist(),
        "active": [d.entry for d in demands],
        "cap": cap,
        "remaining": remaining,
        "volume": volume,
        "posted": posted,
        "release": columns.release,
        "lost": columns.lost,
        "nodes": columns.nodes,
        "operations": columns.operations,
        "iterations": columns.iterations,
        "iteration_time": columns.iteration_time,
        "work_before": columns.work_before,
        "period": columns.blank,
        "user": whole,
        "group": whole,
        "key": columns.blank.copy(),
        "order": whole.copy(),
        "scratch": [0.0] * (8 * size),
    }
    return View(**read_only(shown))
