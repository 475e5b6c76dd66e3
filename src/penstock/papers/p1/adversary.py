# SPDX-License-Identifier: MIT
"""An adversary: applications whose next phases depend on the schedule so far.

The lower bounds of papers/1 section 5 are games. A policy does not see the
future, so an adversary may wait for a completion before it settles what the
application does next. The engine runs fixed instances; `play` gets from one to
the other by replay:

1. simulate with what is settled, all else being work without end;
2. reveal the earliest completions that the rule has not seen yet;
3. let the rule settle, from these and the earlier ones, what comes next;
4. from the start again, until the window holds no unseen completion.

This is sound for a policy whose decisions depend on the past only, and that is
checked: every replay must repeat all completions revealed before, to the last bit.
(The default delta of periodic-greedy-yield depends on the whole instance: E of
papers/1 eq. 5. Give it a delta.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.errors import InternalError
from penstock.model import Application, Instance, Platform, Window
from penstock.sim import simulate
from penstock.sim.state import COMPLETION

__all__ = ["UNIT", "Completion", "Phases", "Rule", "listed", "play", "with_phases"]

#: The platform of all examples: b_i = B = 1.
UNIT = Platform(1.0, 1.0)

Phases = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Completion:
    """End of an operation, as the adversary sees it."""

    time: float
    application: int
    number: int
    """How many operations the application completed before this one."""


#: From the completions so far: the phases of every application, as far as settled.
#: An application works on after its settled phases until the rule settles more.
Rule = Callable[[Sequence[Completion]], list[Phases]]


def with_phases(
    application: Application, phases: Iterable[tuple[str, float]]
) -> Application:
    """Return `application`, with its name, nodes and history, but other phases."""
    made = Application.from_phases(application.name, application.nodes, phases)
    return replace(application, work=made.work, volume=made.volume)


def listed(instance: Instance, order: Sequence[int]) -> Instance:
    """Return `instance` with its applications listed in `order`.

    Policies serve the first listed of equals: this is a way to choose a schedule.
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
    """Return the instance into which `rule` leads `policy`.

    Only name, nodes, release, start and history of `applications` matter; their
    phases come from `rule`.

    Raises
    ------
    InternalError
        If the policy knew the future: see this module's docstring.
    """
    forever = 2.0 * (window.end - min(a.start for a in applications))
    seen: list[Completion] = []
    while True:
        settled = rule(seen)
        instance = Instance(
            platform,
            window,
            tuple(
                with_phases(application, [*phases, ("work", forever)])
                for application, phases in zip(applications, settled, strict=True)
            ),
        )
        completions = _completions(instance, policy)
        if completions[: len(seen)] != seen:
            raise InternalError(f"{policy}: the past changed with the future")
        unseen = completions[len(seen) :]
        if not unseen:
            return instance
        now = unseen[0].time
        seen += [completion for completion in unseen if completion.time == now]


def _completions(instance: Instance, policy: str) -> list[Completion]:
    """Return the completions inside the window, in the order of the log."""
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
