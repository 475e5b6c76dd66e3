# SPDX-License-Identifier: MIT
"""A bandwidth-sharing policy with its parameters set."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self, cast

from penstock.errors import InputError
from penstock.policies.view import Allocate
from penstock.registry import BoundPlugin, Lookup, Parameter

__all__ = ["Knowledge", "Parameter", "Policy", "bind"]


class Knowledge(Enum):
    """Knowledge that is not always there, and that a policy may need.

    The module of a policy declares ``NEEDS``: what it needs -> the parameter and the
    value with which it needs this.
    """

    PERIOD = "the period of every application"
    DEDICATED_EVENTS = "the number of events in dedicated mode"


@dataclass(frozen=True)
class Policy(BoundPlugin):
    """A policy with its parameters set: the simulator and the controller run it.

    `penstock.policies.ask` calls it.
    """

    KIND = "policy"

    parameters: array[float] = field(
        default_factory=lambda: array("d"), repr=False, compare=False
    )
    """The settings as numbers, as ``view.parameters`` shows them: in the order in
    which the policy declares them; a word is its position among the choices."""
    needs: Mapping[Knowledge, str] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What it needs with its settings -> the parameter that causes the need."""

    @property
    def allocate(self) -> Allocate:
        """The policy's function: sets the rates, returns the next wake-up (s)."""
        return cast(Allocate, self.function)

    @classmethod
    def bind(cls, lookup: Lookup) -> Self:
        """Return the policy with the values that the user has given.

        Raises `InputError` if a value or its module's ``NEEDS`` is not valid.
        """
        policy = super().bind(lookup)
        numbers = [p.number(policy.settings[p.name]) for p in lookup.declared]
        declared = getattr(lookup.module, "NEEDS", {})
        if not isinstance(declared, dict) or not all(
            isinstance(item, Knowledge) and isinstance(cause, tuple) and len(cause) == 2
            for item, cause in declared.items()
        ):
            raise InputError(
                "NEEDS is not a dict from `Knowledge` to (parameter, value)",
                where=policy.title,
                remedy="see penstock/policies/io_sets/sets.py",
            )
        needs = {
            item: parameter
            for item, (parameter, value) in declared.items()
            if policy.settings.get(parameter) == value
        }
        return replace(policy, parameters=array("d", numbers), needs=needs)


def bind(
    name: str,
    allocate: Allocate,
    declared: tuple[Parameter, ...] = (),
    given: Mapping[str, str] | None = None,
) -> Policy:
    """Return the function `allocate` as a policy that no registry lists."""
    return Policy.bind(Lookup(name, allocate, None, declared, given or {}))
