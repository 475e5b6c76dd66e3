# SPDX-License-Identifier: MIT
"""An algorithm ready to decide: its function, what it needs, its parameters.

What goes in is checked (the problem must know what the algorithm needs), and so is
what comes out, whoever wrote the algorithm.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex, TypeAlias

from penstock.errors import InputError, PenstockError, PolicyError, reason_of
from penstock.placement.inputs import Input, require
from penstock.registry import Lookup, Parameter, labelled, parameter_values

if TYPE_CHECKING:
    from penstock.model.problem import Problem

__all__ = ["Allocation", "Allocator", "Parameter", "Placement", "Placer"]

#: pi = (n_1, ..., n_K): how many targets each application gets.
Allocation: TypeAlias = tuple[int, ...]
#: Which targets each application gets, ascending.
Placement: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Algorithm:
    """What allocations and placements have in common."""

    name: str
    """As in its table, or the dotted name of a user's own."""
    label: str
    """`name` with the parameters that are not at their default."""
    needs: frozenset[Input]
    """What it must be told of every application."""
    decide: Callable[..., Any] = field(repr=False)
    settings: Mapping[str, float] = field(repr=False)
    given: frozenset[str] = frozenset()
    """Those parameters that the user has set, be it to their default."""

    #: What it is called in messages.
    KIND: ClassVar[str]

    @classmethod
    def bind(cls, found: Lookup) -> Self:
        """Return the algorithm that was found, its parameters set."""
        owner = f"{cls.KIND} {found.name}"
        needs = getattr(found.home, "NEEDS", None)
        if not isinstance(needs, frozenset) or not all(
            isinstance(item, Input) for item in needs
        ):
            raise InputError(
                "NEEDS is not a frozenset of `Input`",
                where=owner,
                remedy="see penstock/placement/_template.py",
            )
        values = parameter_values(owner, found.declared, found.given)
        label = labelled(found.name, found.declared, values)
        given = frozenset(found.given)
        return cls(found.name, label, needs, found.function, values, given)

    def _decided(self, *told: object) -> Any:
        """Ask the algorithm; its own mistakes become a `PolicyError`."""
        try:
            return self.decide(*told, **self.settings)
        except PenstockError:
            raise
        except Exception as error:
            raise PolicyError(
                f"{self.KIND} {self.label} failed: {reason_of(error)}"
            ) from error

    def _whole(self, values: Iterable[SupportsIndex]) -> tuple[int, ...]:
        try:
            return tuple(map(index, values))
        except TypeError:
            raise self._broken(values, "a list of whole numbers") from None

    def _broken(self, returned: object, wanted: str) -> PolicyError:
        what = f"{self.KIND} {self.label}: {reprlib.repr(returned)} is not {wanted}"
        return PolicyError(what)


@dataclass(frozen=True)
class Allocator(_Algorithm):
    """An allocation algorithm: how many targets for each application."""

    KIND = "allocation"

    def allocate(self, problem: Problem) -> Allocation:
        """Return n_j, from 1 to what is there and was measured, of every j."""
        require(self.needs, problem, f"allocation {self.label}")
        counts = self._whole(self._decided(problem))
        try:
            problem.check_allocation(counts)
        except InputError as error:
            raise PolicyError(f"allocation {self.label}: {error}") from None
        return counts


@dataclass(frozen=True)
class Placer(_Algorithm):
    """A placement algorithm: which targets for each application."""

    KIND = "placement"

    def place(self, problem: Problem, allocation: Sequence[int]) -> Placement:
        """Return n_j different targets of every j, ascending."""
        problem.check_allocation(allocation)
        require(self.needs, problem, f"placement {self.label}")
        chosen = self._decided(problem, tuple(allocation))
        if not isinstance(chosen, Sequence) or len(chosen) != len(allocation):
            raise self._broken(chosen, "a list of targets for each application")
        placement = tuple(tuple(sorted(self._whole(targets))) for targets in chosen)
        for targets, n in zip(placement, allocation, strict=True):
            lawful = {r for r in targets if 0 <= r < problem.resources}
            if not len(targets) == len(lawful) == n:
                wanted = f"{n} different targets of 0 to {problem.resources - 1}"
                raise self._broken(list(targets), wanted)
        return placement
