# SPDX-License-Identifier: MIT
"""Share one storage target among the requests that wait for it.

Without a policy every waiting request gets the same share, as on a parallel file
system: with n_i waiting processes of application i, that can draw c_i each,

    r_i = n_i c_i min(1, B e / sum of n_j c_j),

where e is the part of the capacity that is left with sum n_j waiting requests
(`Congestion`). With one process each this is the policy fair-share.

The policies are those of the engine, interpreted instead of compiled; they share among
applications, and the requests of an application share alike. For K applications, entry
i of the columns is the writing of application i, and entry K + i its draining: to a
policy both are operations of an application, with the same age and the same lost time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from penstock.sim.buffers.model import Congestion
from penstock.sim.buffers.queue import TargetQueue

__all__ = ["Columns", "Shares", "TargetRules", "share_target"]


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

    capacity: float
    congestion: Congestion
    sharing: Policy | None = None
    """The policy of the writers; without `background`, also that of the drains. None:
    all requests get the same share."""
    draining: Policy | None = None
    """With `background`: the policy that shares among the drains what writers leave."""
    background: bool = False
    """True if drains get only what the writers leave."""


def share_target(
    rules: TargetRules,
    now: float,
    queues: Sequence[TargetQueue],
    columns: Callable[[], Columns],
) -> Shares:
    """Share one target among queues in which requests wait, ascending by entry.

    Raises `PolicyError` if a policy fails or breaks its contract.
    """
    if not rules.background:
        if rules.sharing is None:
            waiting = sum(queue.weight for queue in queues)
            left = rules.capacity * rules.congestion.efficiency(waiting)
            return _in_proportion(left, queues)
        return _congested(
            rules, queues, _ask(rules.sharing, now, rules.capacity, queues, columns)
        )
    half = len(columns().release) // 2
    writers = [queue for queue in queues if queue.entry < half]
    drains = [queue for queue in queues if queue.entry >= half]
    if not writers:
        return _congested(
            rules, drains, _ask(rules.draining, now, rules.capacity, drains, columns)
        )
    first = _congested(
        rules, writers, _ask(rules.sharing, now, rules.capacity, writers, columns)
    )
    waiting = sum(queue.weight for queue in queues)
    left = rules.capacity * rules.congestion.efficiency(waiting)
    left -= sum(first.rates.values())
    if not drains or left <= rules.capacity * TOLERANCE:
        return first
    rest = _ask(rules.draining, now, left, drains, columns)
    return Shares({**first.rates, **rest.rates}, min(first.wake, rest.wake))


def _in_proportion(capacity: float, queues: Sequence[TargetQueue]) -> Shares:
    """Share `capacity` (units/s) by demand: all requests get the same share."""
    wanted = [min(q.weight * q.request_cap, q.limit) for q in queues]
    total = sum(wanted)
    fraction = 1.0 if total <= capacity else capacity / total
    pairs = zip(queues, wanted, strict=True)
    return Shares({q.entry: min(fraction * want, q.cap) for q, want in pairs}, inf)


def _ask(
    policy: Policy | None,
    now: float,
    capacity: float,
    queues: Sequence[TargetQueue],
    columns: Callable[[], Columns],
) -> Shares:
    """Share `capacity` (units/s) among queues; None: in proportion to their demands.

    Raises `PolicyError` if the policy fails or breaks its contract.
    """
    if policy is None:
        return _in_proportion(capacity, queues)
    caps = {queue.entry: min(queue.demand(), capacity) for queue in queues}
    shown = columns()
    rates = [0.0] * len(shown.release)
    view = _view(policy, now, capacity, queues, shown)
    wake = ask_policy(policy, view, rates)
    breach = find_breach(view, rates, wake)
    if breach is not None:
        raise contract_error(policy, breach, now)
    return Shares({e: min(rates[e], cap) for e, cap in caps.items()}, wake)


def _congested(
    rules: TargetRules, queues: Sequence[TargetQueue], shares: Shares
) -> Shares:
    """Scale the rates down to what the requests that are served leave of a target."""
    waiting = sum(q.weight for q in queues if shares.rates[q.entry] > 0)
    left = rules.capacity * rules.congestion.efficiency(waiting)
    total = sum(shares.rates.values())
    if total <= left:
        return shares
    factor = left / total
    return Shares({e: factor * r for e, r in shares.rates.items()}, shares.wake)


def _view(
    policy: Policy,
    now: float,
    capacity: float,
    queues: Sequence[TargetQueue],
    columns: Columns,
) -> View:
    size = len(columns.release)
    cap, remaining = columns.blank.copy(), columns.blank.copy()
    volume, posted = columns.blank.copy(), columns.blank.copy()
    for queue in queues:
        entry = queue.entry
        cap[entry], remaining[entry] = (
            min(queue.demand(), capacity),
            queue.remaining(now),
        )
        volume[entry], posted[entry] = queue.volume(), queue.posted()
    whole = [0] * size
    shown: dict[str, Any] = {
        "now": now,
        "capacity": capacity,
        "window_begin": columns.window_begin,
        "window_end": columns.window_end,
        "dedicated_events": columns.dedicated_events,
        "entries": size,
        "n_active": len(queues),
        "parameters": policy.parameters.tolist(),
        "active": [queue.entry for queue in queues],
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
