# SPDX-License-Identifier: MIT
"""An adversary: applications whose next phases depend on the schedule so far.

Lower bounds on competitive ratios (bandwidth sharing, section 5) are games. A policy
does not see the future, so an adversary may wait for the end of an operation before it
chooses what the application does next. The engine runs instances that are fixed from
the start; `play` builds one by replay:

1. Simulate with the phases chosen so far, each application followed by endless work.
2. Reveal the earliest completions that the adversary has not seen yet.
3. Let the adversary choose more phases from all completions revealed so far.
4. Start again, until the window holds no unseen completion.

This is correct for a policy that decides by the past only. `play` checks it: every
replay must repeat all completions revealed before, to the last bit. The default delta
of periodic-greedy-yield depends on the whole instance (E in bandwidth sharing, eq. 5),
so that policy needs an explicit delta here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.errors import InternalError
from penstock.model import Application, Instance, Platform, Window
from penstock.sim import simulate
from penstock.sim.state import COMPLETION

__all__ = ["UNIT", "Completion", "Phases", "Rule", "listed", "play", "with_phases"]

#: A platform whose bandwidth one application can use alone: b_i = B = 1.
UNIT = Platform(1.0, 1.0)

Phases = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of an operation."""

    time: float
    application: int
    number: int
    """The number of operations that the application completed before this one."""


#: An adversary: returns the phases of every application that are chosen so far, from
#: the completions so far. After these phases an application works without end.
Rule = Callable[[Sequence[Completion]], list[Phases]]


def with_phases(
    application: Application, phases: Iterable[tuple[str, float]]
) -> Application:
    """Return an application with other phases, but the same name, nodes and history."""
    made = Application.from_phases(application.name, application.nodes, phases)
    return replace(application, work=made.work, volume=made.volume)


def listed(instance: Instance, order: Sequence[int]) -> Instance:
    """Return `instance` with its applications listed in `order`.

    Policies serve the first listed of equal applications, so that the order chooses
    between schedules.
    """
    chosen = tuple(instance.applications[i] for i in order)
    return replace(instance, applications=chosen)


def play(
    policy: str,
    rule: Rule,
    applications: Sequence[Application],
    window: Window,
    platform: Platform = UNIT,
) -> Instance:
    """Return the instance that the adversary `rule` builds against `policy`.

    The phases of `applications` are ignored: they come from `rule`.

    Raises
    ------
    InternalError
        If the decisions of the policy depend on the future.
    """
    forever = 2.0 * (window.end - min(a.start for a in applications))
    seen: list[Completion] = []
    while True:
        chosen = rule(seen)
        instance = Instance(
            platform,
            window,
            tuple(
                with_phases(application, [*phases, ("work", forever)])
                for application, phases in zip(applications, chosen, strict=True)
            ),
        )
        completions = _completions(instance, policy)
        if completions[: len(seen)] != seen:
            raise InternalError(f"{policy}: its past decisions depend on the future")
        unseen = completions[len(seen) :]
        if not unseen:
            return instance
        now = unseen[0].time
        seen += [completion for completion in unseen if completion.time == now]


def _completions(instance: Instance, policy: str) -> list[Completion]:
    """Return the completions inside the window, in the order of the event log."""
    log = simulate(instance, policy, record=True).log
    if log is None:
        raise InternalError("a recorded run has no log")
    count = [0] * len(instance.applications)
    completions = []
    for time, kind, number in zip(
        log.time.tolist(), log.kind.tolist(), log.application.tolist(), strict=True
    ):
        if kind == COMPLETION:
            completions.append(Completion(time, number, count[number]))
            count[number] += 1
    return completions
