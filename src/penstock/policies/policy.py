# SPDX-License-Identifier: MIT
"""A policy ready to decide: the function of its file, and values for its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError, UnknownNameError
from penstock.policies.view import Allocate
from penstock.units import parse_bandwidth, parse_time, parse_volume

__all__ = ["Parameter", "Policy", "bind"]

_PARSERS = {"s": parse_time, "bytes": parse_volume, "bytes/s": parse_bandwidth}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a policy: a quantity, or one of several words.

    A policy reads its value from ``view.parameters``, at the position at which it
    declares the parameter; a word is given as its position in `choices`.
    """

    name: str
    meaning: str
    default: float | str
    unit: str = ""
    choices: tuple[str, ...] = ()
    low: float = 0.0

    def parse(self, text: str) -> float:
        """Return `text` as the number that the policy will read."""
        if self.choices:
            if text not in self.choices:
                raise UnknownNameError("value", text, self.choices, where=self.name)
            return float(self.choices.index(text))
        try:
            value = _PARSERS[self.unit](text) if self.unit else float(text)
        except (ValueError, InputError):
            unit = f" in {self.unit}" if self.unit else ""
            raise InputError(
                f"{text!r} is not a number{unit}", where=self.name, remedy=self.meaning
            ) from None
        if not (math.isfinite(value) and value >= self.low):
            raise InputError(
                f"{text!r} is out of range",
                where=self.name,
                remedy=f"{self.meaning}; at least {self.low:g}",
            )
        return value

    def show(self, value: float) -> str:
        """Return the shortest text that `parse` makes `value` of."""
        if self.choices:
            return self.choices[int(value)]
        return repr(value).removesuffix(".0")


@dataclass(frozen=True)
class Policy:
    """A policy with its parameters set: what the simulator and the controller run."""

    name: str
    """As in the table of policies, or the dotted name of a user's own."""
    label: str
    """`name` with the parameters that are not at their default."""
    allocate: Allocate = field(repr=False)
    parameters: NDArray[np.float64] = field(repr=False)


def bind(
    name: str,
    allocate: Allocate,
    declared: tuple[Parameter, ...],
    given: Mapping[str, str],
) -> Policy:
    """Return the policy `name` with the `given` parameters set."""
    known = {parameter.name: parameter for parameter in declared}
    for key in given:
        if key not in known:
            raise UnknownNameError("parameter", key, known, where=f"policy {name}")
    values = []
    for parameter in declared:
        text = given.get(parameter.name, str(parameter.default))
        try:
            values.append(parameter.parse(text))
        except InputError as error:
            raise error.at(f"policy {name}: ") from None
    changed = {
        parameter.name: parameter.show(value)
        for parameter, value in zip(declared, values, strict=True)
        if value != parameter.parse(str(parameter.default))
    }
    settings = ",".join(f"{key}={changed[key]}" for key in sorted(changed))
    label = f"{name}:{settings}" if settings else name
    return Policy(name, label, allocate, np.array(values, dtype=np.float64))
