# SPDX-License-Identifier: MIT
"""Simulate what comes next with none and 1a to 3b, and follow the best.

Rule
    When the set of applications in their I/O phase changes, simulate the phases that go
    on and those that are expected to begin soon, once with each strategy. Follow the
    strategy with the lowest mean slowdown until the set changes again.

Constraints
    1. The present strategy is kept unless another one is better by ``margin``.
    2. If at most one application writes within ``horizon``, nothing is simulated:
       ``none``.
    3. ``none`` also if nothing can be simulated: the bandwidth is not known, or more
       than 8 applications write. Bounds count applications and steps of simulations,
       never time: the same situation always gets the same plan.
    4. Strategies that stage are simulated only where all that write have buffers, those
       that divide the storage targets only where there are at least as many as
       applications.

Parameters
    use
        Which strategies are compared with ``none``: ``all`` (default), ``stage`` (1a to
        2b) or ``partition`` (3a and 3b).
    horizon (s)
        Phases that are expected to begin within this time are simulated. Default 60.
    margin
        Relative gain for which another strategy is followed. Default 0.02.
    interval (s)
        Least time between two simulations. Changes in between have to wait. Default
        0.25: with eight applications, a quarter of a processor at most.

Properties
    With exact predictions, never worse than the strategy that is best from the first
    decision on, apart from ``margin`` and the coarse requests of the simulation
    (`penstock.sim.forecast`). One decision takes a few simulations of at most some
    hundred steps.

Source
    Not in the papers. Burst-buffer coordination, section VII, plans to predict the I/O
    of applications and to select the best strategy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from statistics import fmean
from typing import Final

from penstock.errors import InputError
from penstock.registry import Parameter
from penstock.staging import Strategy, get_strategy
from penstock.staging.situation import Forecast, Situation, StagingPlan

__all__ = ["PARAMETERS", "AutoMemory", "coordinate"]

_NONE: Final = "none"
_STAGE: Final = ("1a", "1b", "2a", "2b")
_PARTITION: Final = ("3a", "3b")
_COMPARED: Final = {
    "all": (*_STAGE, *_PARTITION),
    "stage": _STAGE,
    "partition": _PARTITION,
}
#: More applications that write are not simulated.
_MOST_WRITERS: Final = 8
#: Slowdowns are compared after rounding: equal ones must be equal on every machine.
_DECIMALS: Final = 6

PARAMETERS: Final = (
    Parameter("use", "strategies to compare with none", "all", choices=(*_COMPARED,)),
    Parameter("horizon", "how far ahead to look", 60.0, unit="s", low=0.0),
    Parameter("margin", "relative gain for which to change", 0.02, low=0.0, high=1.0),
    Parameter("interval", "least time between simulations", 0.25, unit="s", low=0.0),
)


@dataclass(frozen=True, slots=True)
class AutoMemory:
    """What one decision leaves for the next."""

    choice: str = _NONE
    """The strategy that is followed."""
    reason: str = ""
    writing: frozenset[str] | None = None
    """Applications in their phase when the strategy was chosen; None: never chosen."""
    simulated_s: float = -inf
    """When strategies were simulated last (s)."""
    targets: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Targets that `choice` has given, by application."""


def coordinate(
    situation: Situation, use: str, horizon: float, margin: float, interval: float
) -> StagingPlan:
    """Return the plan of the best strategy."""
    memory = situation.memory
    if not isinstance(memory, AutoMemory):
        memory = AutoMemory()
    wake_s = memory.simulated_s + interval
    writing = frozenset(a.name for a in situation.applications if a.in_phase)
    if writing == memory.writing:
        wake_s = inf
    elif _count_writers(situation, horizon) < 2:
        reason = f"at most one application writes within {horizon:g} s"
        memory, wake_s = _changed(memory, writing, _NONE, reason), inf
    elif situation.now_s >= wake_s:
        choice, reason = _best(situation, memory.choice, use, horizon, margin)
        memory = _changed(memory, writing, choice, reason)
        memory, wake_s = replace(memory, simulated_s=situation.now_s), inf
    return _followed(situation, memory, wake_s)


def _count_writers(situation: Situation, horizon: float) -> int:
    """Return how many applications write now or are expected to do so soon."""
    end_s = situation.now_s + horizon
    return sum(
        a.in_phase or situation.now_s <= a.next_phase_s <= end_s
        for a in situation.applications
    )


def _changed(
    memory: AutoMemory, writing: frozenset[str], choice: str, reason: str
) -> AutoMemory:
    targets = memory.targets if choice == memory.choice else {}
    return AutoMemory(choice, reason, writing, memory.simulated_s, targets)


def _best(
    situation: Situation, present: str, use: str, horizon: float, margin: float
) -> tuple[str, str]:
    """Return the strategy to follow, and why."""
    count, forecast = _count_writers(situation, horizon), situation.forecast
    if forecast is None:
        return _NONE, "the bandwidth of the storage is not known"
    if count > _MOST_WRITERS:
        return _NONE, f"{count} applications are too many to simulate"
    slowdowns = _slowdowns(situation, forecast, use, horizon)
    if not slowdowns:
        return _NONE, "no strategy could be simulated"
    best = min(slowdowns, key=slowdowns.__getitem__)
    chosen = best
    if slowdowns.get(present, inf) <= slowdowns[best] * (1.0 + margin):
        chosen = present
    listed = sorted(slowdowns, key=lambda name: (name != chosen, slowdowns[name]))
    words = ", ".join(f"{slowdowns[name]:.2f} with {name}" for name in listed)
    kept = "" if chosen == best else f", not enough better than {chosen} to change"
    return chosen, (
        f"simulated for the {count} applications that write now or within "
        f"{horizon:g} s, their mean slowdown is {words}{kept}"
    )


def _slowdowns(
    situation: Situation, forecast: Forecast, use: str, horizon: float
) -> dict[str, float]:
    """Return the mean slowdown with each strategy that can be simulated."""
    slowdowns = {}
    for name in _candidates(situation, forecast, use):
        try:
            by_application = forecast(situation, name, horizon)
        except InputError:
            continue
        slowdowns[name] = round(fmean(by_application.values()), _DECIMALS)
    return slowdowns


def _candidates(situation: Situation, forecast: Forecast, use: str) -> Sequence[str]:
    names = [_NONE]
    all_stage = all(a.can_stage for a in situation.applications if a.in_phase)
    for name in _COMPARED[use]:
        if name in _STAGE and not (forecast.can_stage and all_stage):
            continue
        if name in _PARTITION and situation.target_count < max(
            len(situation.applications), 2
        ):
            continue
        names.append(name)
    return names


def _followed(situation: Situation, memory: AutoMemory, wake_s: float) -> StagingPlan:
    """Return the plan of the strategy that is followed, or of ``none`` if it fails."""
    # A strategy sees the targets that it has given itself, not those of another one.
    applications = tuple(
        replace(a, targets=memory.targets.get(a.name, ()))
        for a in situation.applications
    )
    shown = replace(situation, applications=applications, memory=None)
    try:
        plan = _strategy(memory.choice).decide(shown)
    except InputError as error:
        reason = f"strategy {memory.choice} cannot go on: {error}"
        memory = replace(memory, choice=_NONE, reason=reason, targets={})
        plan = _strategy(_NONE).decide(shown)
    pairs = zip(applications, plan.orders, strict=True)
    memory = replace(memory, targets={a.name: order.targets for a, order in pairs})
    return replace(
        plan,
        wake_s=min(plan.wake_s, wake_s),
        memory=memory,
        reason=f"auto follows {memory.choice}{_division(shown, plan, memory)}: "
        f"{memory.reason}",
    )


def _division(situation: Situation, plan: StagingPlan, memory: AutoMemory) -> str:
    """Return how the strategy has divided the storage targets; "": it has not.

    3a divides them among all applications, 3b among those that write, in the order in
    which they have arrived.
    """
    sharers: Sequence[int] = situation.arrivals()
    if memory.choice == "3a":
        sharers = range(len(situation.applications))
    if memory.choice not in _PARTITION or not sharers:
        return ""
    counts = " + ".join(str(len(plan.orders[i].targets)) for i in sharers)
    return f" ({counts} of {situation.target_count} storage targets, by their data)"


@cache
def _strategy(name: str) -> Strategy:
    return get_strategy(name)
