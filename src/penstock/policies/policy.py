# SPDX-License-Identifier: MIT
"""A bandwidth-sharing policy with its parameters set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from penstock.policies.view import Allocate
from penstock.registry import BoundPlugin, Lookup, Parameter

__all__ = ["Parameter", "Policy", "bind"]


@dataclass(frozen=True)
class Policy(BoundPlugin):
    """A policy with its parameters set: the simulator and the controller run it.

    `penstock.policies.ask` calls it.
    """

    KIND = "policy"

    parameters: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros(0), repr=False, compare=False
    )
    """The settings as numbers, as ``view.parameters`` shows them: in the order in
    which the policy declares them; a word is its position among the choices."""

    @property
    def allocate(self) -> Allocate:
        """The policy's function: sets the rates, returns the next wake-up (s)."""
        return cast(Allocate, self.function)

    @classmethod
    def bind(cls, lookup: Lookup) -> Self:
        """Return the policy with the values that the user has given."""
        policy = super().bind(lookup)
        numbers = [p.number(policy.settings[p.name]) for p in lookup.declared]
        return replace(policy, parameters=np.array(numbers, dtype=np.float64))


def bind(
    name: str,
    allocate: Allocate,
    declared: tuple[Parameter, ...] = (),
    given: Mapping[str, str] | None = None,
) -> Policy:
    """Return the function `allocate` as a policy that no registry lists."""
    return Policy.bind(Lookup(name, allocate, None, declared, given or {}))
