# SPDX-License-Identifier: MIT
"""A policy ready to decide: the function of its file, and values for its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.policies.view import Allocate
from penstock.registry import Parameter, labelled, parameter_values

__all__ = ["Parameter", "Policy", "bind"]


@dataclass(frozen=True)
class Policy:
    """A policy with its parameters set: what the simulator and the controller run."""

    name: str
    """As in the table of policies, or the dotted name of a user's own."""
    label: str
    """`name` with the parameters that are not at their default."""
    allocate: Allocate = field(repr=False)
    parameters: NDArray[np.float64] = field(repr=False)
    """What it finds in ``view.parameters``: in the order in which it declares them."""


def bind(
    name: str,
    allocate: Allocate,
    declared: tuple[Parameter, ...],
    given: Mapping[str, str],
) -> Policy:
    """Return the policy `name` with the `given` parameters set."""
    values = parameter_values(f"policy {name}", declared, given)
    return Policy(
        name,
        labelled(name, declared, values),
        allocate,
        np.array([values[p.name] for p in declared], dtype=np.float64),
    )
