# SPDX-License-Identifier: MIT
"""Workloads: families of instances, each drawn from a seed.

Adding one = one file with a frozen dataclass of parameters and a method
``instance(seed, index)``, and one row in `WORKLOADS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from penstock.errors import InputError, UnknownNameError
from penstock.model import Instance
from penstock.workloads.apex.workload import Apex
from penstock.workloads.io_sets import IOSets
from penstock.workloads.microbenchmark import Microbenchmark
from penstock.workloads.parameters import parse_settings
from penstock.workloads.striped import Striped
from penstock.workloads.synthetic import Synthetic

__all__ = [
    "WORKLOADS",
    "Apex",
    "IOSets",
    "Microbenchmark",
    "Striped",
    "Synthetic",
    "Workload",
    "get_workload",
]


class Workload(Protocol):
    """A family of instances with its parameters set."""

    def instance(self, seed: int, index: int) -> Instance:
        """Draw instance `index` of `seed`: always the same one."""


#: name -> class
WORKLOADS: Final[dict[str, type[Workload]]] = {
    "synthetic": Synthetic,
    "io-sets": IOSets,
    "apex": Apex,
    "striped": Striped,
    "microbenchmark": Microbenchmark,
}


def get_workload(name: str, settings: Iterable[str] = ()) -> Workload:
    """Return the workload `name` with ``["key=value", ...]`` set."""
    if name not in WORKLOADS:
        family, _, parameters = name.partition(":")
        if family in WORKLOADS:
            listed = (parameters or "KEY=VALUE").split(",")
            options = " ".join(f"--set {each}" for each in listed)
            raise InputError(
                f"workload {name!r} has parameters in its name",
                remedy=f"give parameters with {options}, in Python {', '.join(listed)}",
            )
        raise UnknownNameError("workload", name, WORKLOADS)
    workload = WORKLOADS[name]
    return workload(**parse_settings(workload, settings))
