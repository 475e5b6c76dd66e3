# SPDX-License-Identifier: MIT
"""Allocation and placement algorithms with their parameters set.

Both the problem and the answer are checked: the problem must contain all inputs that
the algorithm needs, and the answer must be an allocation or placement of the problem.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias

from penstock.errors import InputError, PolicyError
from penstock.placement.inputs import Input, require
from penstock.placement.target_use import TargetUse
from penstock.registry import BoundPlugin, Lookup, Parameter, call_plugin

if TYPE_CHECKING:
    from penstock.model.problem import Problem

__all__ = ["Allocation", "Allocator", "Parameter", "Placement", "Placer"]

#: pi = (n_1, ..., n_K): how many targets each application gets.
Allocation: TypeAlias = tuple[int, ...]
#: Which targets each application gets, ascending.
Placement: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Algorithm(BoundPlugin):
    """Base class of allocation and placement algorithms."""

    needs: frozenset[Input] = frozenset()
    """The inputs that must be known of every application."""

    @classmethod
    def bind(cls, lookup: Lookup) -> Self:
        """Return the algorithm with the values that the user has given.

        Raises `InputError` if its module does not declare ``NEEDS``.
        """
        needs = getattr(lookup.module, "NEEDS", None)
        if not isinstance(needs, frozenset) or not all(
            isinstance(item, Input) for item in needs
        ):
            raise InputError(
                "NEEDS is not a frozenset of `Input`",
                where=f"{cls.KIND} {lookup.name}",
                remedy="see penstock/placement/_template.py",
            )
        return replace(super().bind(lookup), needs=needs)

    def _whole(self, values: Iterable[SupportsIndex]) -> tuple[int, ...]:
        """Return `values` as ints; raise `PolicyError` if they are not whole."""
        try:
            return tuple(map(index, values))
        except TypeError:
            raise self._broken(values, "a list of whole numbers") from None

    def _broken(self, returned: object, wanted: str) -> PolicyError:
        what = f"{reprlib.repr(returned)} is not {wanted}"
        return PolicyError(what, where=self.title)


@dataclass(frozen=True)
class Allocator(_Algorithm):
    """An allocation algorithm: decides how many targets each application gets."""

    KIND = "allocation"

    def allocate(self, problem: Problem) -> Allocation:
        """Return n_j, from 1 to ``problem.most_targets(j)``, for every application j.

        Raises
        ------
        InputError
            If the problem lacks an input that the algorithm needs.
        PolicyError
            If the algorithm fails or returns no allocation of the problem.
        """
        require(self.needs, problem, self.title)
        counts = self._whole(self.call(problem))
        try:
            problem.check_allocation(counts)
        except InputError as error:
            raise PolicyError(str(error), where=self.title) from None
        return counts


@dataclass(frozen=True)
class Placer(_Algorithm):
    """A placement algorithm: decides which targets each application gets."""

    KIND = "placement"

    next_function: Callable[[TargetUse, int], Any] | None = field(
        default=None, repr=False
    )
    """Places one application beside those that are there; None: it cannot."""

    @classmethod
    def bind(cls, lookup: Lookup) -> Self:
        """Return the algorithm with the values that the user has given."""
        function = getattr(lookup.module, "place_next", None)
        return replace(super().bind(lookup), next_function=function)

    def place_next(self, use: TargetUse, number: int) -> tuple[int, ...]:
        """Return `number` different targets for an application that arrives.

        They are in the order of the algorithm, which `TargetUse.add` needs.

        Raises
        ------
        InputError
            If the algorithm cannot place applications one by one.
        PolicyError
            If the algorithm fails or returns no such targets.
        """
        if self.next_function is None:
            raise InputError(
                "it places all applications at once, not one that arrives",
                where=self.title,
                remedy="use greedy-non-clairvoyant or greedy-clairvoyant",
            )
        failure = f"{self.title} failed"
        targets = self._whole(call_plugin(failure, self.next_function, use, number))
        self._check_targets(targets, number, len(use.counts))
        return targets

    def place(self, problem: Problem, allocation: Sequence[int]) -> Placement:
        """Return n_j different targets, ascending, for every application j.

        Raises
        ------
        InputError
            If the problem lacks an input that the algorithm needs.
        PolicyError
            If the algorithm fails or returns no placement of the problem.
        """
        problem.check_allocation(allocation)
        require(self.needs, problem, self.title)
        chosen = self.call(problem, tuple(allocation))
        if not isinstance(chosen, Sequence) or len(chosen) != len(allocation):
            raise self._broken(chosen, "a list of targets for each application")
        placement = tuple(tuple(sorted(self._whole(targets))) for targets in chosen)
        for targets, n in zip(placement, allocation, strict=True):
            self._check_targets(targets, n, problem.resources)
        return placement

    def _check_targets(self, targets: Sequence[int], n: int, resources: int) -> None:
        """Raise `PolicyError` if these are not `n` different targets."""
        lawful = {r for r in targets if 0 <= r < resources}
        if not len(targets) == len(lawful) == n:
            wanted = f"{n} different targets of 0 to {resources - 1}"
            raise self._broken(list(targets), wanted)
