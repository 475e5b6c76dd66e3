# SPDX-License-Identifier: MIT
"""Applications that arrive one after the other, end, and free their targets.

An application gets its targets when it arrives and keeps them until it ends. The same
object decides in the simulator and in the controller.

How many
    The allocation is applied to the newcomer and to the applications that are there and
    of which its inputs are known; the number of the newcomer counts. If an input of the
    newcomer is not known, the first of these allocations that can serve it decides
    instead: the one that the user has chosen, ``best-bandwidth``, ``static``.

Which
    The placement is shown how many applications, and which load, every target has. The
    load of an application of which the inputs are not known is the mean of the others.

Source: target allocation, sections 4.1 and 4.2, which place all applications at once.
Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from penstock.placement.inputs import Input, in_words, missing
from penstock.placement.target_use import TargetUse

if TYPE_CHECKING:
    from penstock.model.application import Application
    from penstock.model.problem import Problem
    from penstock.placement.algorithm import Allocator, Placer

__all__ = ["OnlinePlacement", "PlacedApplication"]

#: Allocations to use if an input of the chosen one is not known.
_WITH_LESS: Final = ("best-bandwidth", "static")


@dataclass(frozen=True, slots=True)
class PlacedApplication:
    """An application that has its targets."""

    application: Application
    targets: tuple[int, ...]
    """Its targets, ascending."""
    load: float
    """T_io / (T_cpu + T_io) on these targets, or the mean of the others."""
    reason: str
    """Which algorithms have decided, and by what, for its user."""
    lacks: frozenset[Input]
    """Inputs that are not known of it."""


class OnlinePlacement:
    """Gives targets to applications that arrive.

    Parameters
    ----------
    resources
        N: number of storage targets.
    compute_nodes
        Q: number of compute nodes; if the applications have more, that number.

    Raises `InputError` if the placement cannot place applications one by one.
    """

    def __init__(
        self, resources: int, compute_nodes: int, allocator: Allocator, placer: Placer
    ) -> None:
        self.resources = resources
        self.label = f"{allocator.label}+{placer.label}"
        self._compute_nodes = compute_nodes
        self._allocator, self._placer = allocator, placer
        self._use = TargetUse.none(resources)
        self._placed: dict[str, PlacedApplication] = {}
        placer.place_next(self._use, 1)  # refuse now what cannot serve later

    def get(self, name: str) -> PlacedApplication | None:
        """Return an application that is there; None if there is none of this name."""
        return self._placed.get(name)

    def arrive(
        self, application: Application, kept: Sequence[int] = ()
    ) -> PlacedApplication:
        """Give targets to an application, and return them.

        One that is there already, by its name, keeps its targets. One that has had
        targets before it arrives here gets these: `kept`.
        """
        present = self._placed.get(application.name)
        if present is not None:
            return present
        given, reason = self._choose(application, kept)
        load = self._load(application, len(given))
        self._use.add(given, load)
        lacks = missing(Input, self._problem([application]), 0)
        targets = tuple(sorted(given))
        placed = PlacedApplication(application, targets, load, reason, lacks)
        self._placed[application.name] = placed
        return placed

    def _choose(
        self, newcomer: Application, kept: Sequence[int]
    ) -> tuple[tuple[int, ...], str]:
        """Return the targets of the newcomer, and why it gets them."""
        if kept:
            reason = "it had them before the controller was restarted"
            return tuple(kept), reason
        number, reason = self._allocate(newcomer)
        given = tuple(self._placer.place_next(self._use, number))
        return given, f"{reason}, {self._placer.label} has chosen which"

    def leave(self, name: str) -> None:
        """Free the targets of an application that has ended, if it is there."""
        placed = self._placed.pop(name, None)
        if placed is not None:
            self._use.remove(placed.targets, placed.load)

    def _allocate(self, newcomer: Application) -> tuple[int, str]:
        """Return how many targets the newcomer gets, and why."""
        alone = self._problem([newcomer])
        lacking = in_words(missing(self._allocator.needs, alone, 0))
        # The last of them needs the nodes only, which are always known.
        allocator = next(
            each for each in self._candidates() if not missing(each.needs, alone, 0)
        )
        others = [
            placed.application
            for placed in self._placed.values()
            if placed.lacks.isdisjoint(allocator.needs)
        ]
        number = allocator.allocate(self._problem([*others, newcomer]))[-1]
        reason = f"{allocator.label} gives it {number} of {self.resources} targets"
        if allocator is not self._allocator:
            reason += f" ({self._allocator.label} would have to know {lacking})"
        return number, reason

    def _candidates(self) -> list[Allocator]:
        """Return the allocations to try, the chosen one first."""
        from penstock.placement import get_allocation  # noqa: PLC0415 - no cycle

        return [self._allocator, *map(get_allocation, _WITH_LESS)]

    def _problem(self, applications: list[Application]) -> Problem:
        from penstock.model.problem import Problem  # noqa: PLC0415 - NumPy

        nodes = max(self._compute_nodes, sum(a.nodes for a in applications))
        return Problem(self.resources, nodes, tuple(applications))

    def _load(self, application: Application, number: int) -> float:
        problem = self._problem([application])
        if problem.has_phases(0) and problem.has_bandwidth(0):
            return problem.io_ratio(0, number)
        return fmean([placed.load for placed in self._placed.values()] or [1.0])
