# SPDX-License-Identifier: MIT
"""Search for instances on which a policy does badly, by hill climbing.

A candidate is a small instance: a few applications that can each use the whole storage
(b_i = B = 1), released at 0 and measured over a fixed window, with works and volumes in
multiples of 1/8. Its score is the distance to the bound: the bound on MinYield, which
holds for every scheduler, minus the MinYield of the policy. A step changes, adds or
removes one operation or application, and is kept unless the score falls. After a number
of steps the search starts again from another random candidate. It returns the best
candidate of all starts.

The bound may not be reachable, so the distance is an upper limit on what the policy
loses. `WorstCase.best_known`, the best MinYield of any policy of penstock on the
instance, is reached: it tells how much of the distance is real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from numpy.random import Generator, SeedSequence, default_rng

from penstock.analysis import measure, min_yield_bound
from penstock.analysis.adversary import UNIT, Phases
from penstock.errors import InputError
from penstock.model import Application, Instance, Window
from penstock.policies import POLICIES, get_policy
from penstock.sim import simulate

__all__ = ["Candidate", "Search", "WorstCase", "evaluate", "find_worst"]

#: Works and volumes are multiples of this (s), the same on every machine.
_GRID: Final = 0.125
#: Least number of applications of a candidate.
_FEWEST: Final = 2
_NAMES: Final = "ABCDEFGH"

#: Work and volume of an operation, in multiples of the grid.
_Operation: TypeAlias = tuple[int, int]
#: The operations of every application.
Candidate: TypeAlias = tuple[tuple[_Operation, ...], ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Limits of the instances, and the length of the search."""

    seed: int = 1
    restarts: int = 12
    steps: int = 1_500
    window_s: float = 16.0
    """Length of the window (s)."""
    max_applications: int = 4
    max_operations: int = 4
    """Most operations of one application."""

    def __post_init__(self) -> None:
        for name in ("restarts", "steps", "max_operations"):
            if getattr(self, name) < 1:
                raise InputError(
                    "must be positive", where=name, remedy="give 1 or more"
                )
        if not _FEWEST <= self.max_applications <= len(_NAMES):
            raise InputError(
                f"{self.max_applications} is not a possible number of applications",
                where="max_applications",
                remedy=f"give {_FEWEST} to {len(_NAMES)}",
            )

    @property
    def longest(self) -> int:
        """Length of the longest work or operation (the window), in grid steps."""
        return int(self.window_s / _GRID)

    def instance(self, candidate: Candidate) -> Instance:
        """Return the instance that a candidate stands for."""
        applications = tuple(
            Application.from_phases(name, 1, self._phases(operations))
            for name, operations in zip(_NAMES, candidate, strict=False)
        )
        return Instance(UNIT, Window(0.0, self.window_s), applications)

    def _phases(self, operations: tuple[_Operation, ...]) -> Phases:
        phases: Phases = []
        for work, volume in operations:
            phases += [("work", work * _GRID), ("io", volume * _GRID)]
        # The last work phase lasts beyond the window, so no application ends inside.
        return [*phases, ("work", self.window_s)]


@dataclass(frozen=True, slots=True)
class WorstCase:
    """An instance, and the MinYield that policies reach on it."""

    policy: str
    instance: Instance
    min_yield: float
    bound: float
    """No scheduler has a higher MinYield."""
    best_policy: str
    """The policy of penstock with the highest MinYield on this instance."""
    best_known: float
    """The MinYield of `best_policy`."""

    @property
    def distance(self) -> float:
        """Return the distance to the bound."""
        return self.bound - self.min_yield


def evaluate(policy: str, instance: Instance) -> WorstCase:
    """Run `policy` and all policies of penstock on an instance."""
    known = {name: _min_yield(instance, name) for name in POLICIES}
    best = max(known, key=lambda name: known[name])
    return WorstCase(
        policy,
        instance,
        _min_yield(instance, policy),
        min_yield_bound(instance).min_yield,
        best,
        known[best],
    )


def find_worst(policy: str, search: Search) -> WorstCase:
    """Return the instance furthest from the bound that the search finds."""
    get_policy(policy)
    ends = [_climb(policy, search, number) for number in range(search.restarts)]
    # Among equal scores take the smallest candidate: it is the easiest to understand.
    _, _, candidate = max(ends, key=lambda end: (round(end[0], 9), -end[1]))
    return evaluate(policy, search.instance(candidate))


def _climb(policy: str, search: Search, number: int) -> tuple[float, int, Candidate]:
    """Return score, size and candidate at the end of one climb."""
    generator = default_rng(SeedSequence(search.seed, spawn_key=(number,)))
    best = tuple(
        tuple(_draw(search, generator) for _ in range(search.max_operations))
        for _ in range(int(generator.integers(_FEWEST, search.max_applications + 1)))
    )
    score = _score(policy, search, best)
    for _ in range(search.steps):
        other = _changed(best, search, generator)
        other_score = _score(policy, search, other)
        # Among equal scores keep the smaller one: this removes what does not matter.
        if (other_score, -_size(other)) >= (score, -_size(best)):
            best, score = other, other_score
    return score, _size(best), best


def _score(policy: str, search: Search, candidate: Candidate) -> float:
    instance = search.instance(candidate)
    bound = min_yield_bound(instance, tolerance=1e-6).min_yield
    return bound - _min_yield(instance, policy)


def _min_yield(instance: Instance, policy: str) -> float:
    return float(measure(simulate(instance, policy)).min_yield)


def _size(candidate: Candidate) -> int:
    """Return the number of operations of all applications."""
    return sum(len(operations) for operations in candidate)


def _draw(search: Search, generator: Generator) -> _Operation:
    """Draw an operation: the logarithms of its lengths are uniform."""
    work, volume = search.longest ** generator.uniform(size=2)
    return int(work) - 1, int(volume)


def _changed(candidate: Candidate, search: Search, generator: Generator) -> Candidate:
    """Return the candidate with one application changed, added or removed."""
    applications = list(candidate)
    place = int(generator.integers(len(applications)))
    kind = generator.uniform()
    if kind < 0.05 and len(applications) < search.max_applications:
        applications.insert(place, (_draw(search, generator),))
    elif kind < 0.1 and len(applications) > _FEWEST:
        del applications[place]
    elif kind < 0.15:
        applications.append(applications.pop(place))
    else:
        applications[place] = _other(applications[place], search, generator)
    return tuple(applications)


def _other(
    operations: tuple[_Operation, ...], search: Search, generator: Generator
) -> tuple[_Operation, ...]:
    """Return the operations of an application with one changed, added or removed."""
    changed = list(operations)
    place = int(generator.integers(len(changed)))
    kind = generator.uniform()
    if kind < 0.1 and len(changed) < search.max_operations:
        changed.insert(place, _draw(search, generator))
    elif kind < 0.2 and len(changed) > 1:
        del changed[place]
    else:
        changed[place] = _moved(changed[place], search, generator)
    return tuple(changed)


def _moved(operation: _Operation, search: Search, generator: Generator) -> _Operation:
    """Return the operation with its work or its volume changed, slightly or much."""
    fresh = _draw(search, generator)
    step = int(generator.integers(-2, 3))
    work, volume = operation
    near = (max(work + step, 0), max(volume + step, 1))
    new = near if generator.uniform() < 0.5 else fresh
    work, volume = (new[0], volume) if generator.uniform() < 0.5 else (work, new[1])
    return min(work, search.longest), min(volume, search.longest)
