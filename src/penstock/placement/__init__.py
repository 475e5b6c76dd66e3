# SPDX-License-Identifier: MIT
"""Allocation and placement: how many storage targets for whom, and which.

An algorithm is one file: copy `_template.py`, then add one row to `ALLOCATIONS` or
`PLACEMENTS`. One outside of penstock needs no row: name it by its dotted name, or
install it under the entry-point group ``penstock.allocations`` or
``penstock.placements``.

The tables hold what is needed to list the algorithms, so that listing them imports
none (and neither NumPy).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock import registry
from penstock.placement.algorithm import Allocation, Allocator, Placement, Placer
from penstock.placement.inputs import Input, in_words
from penstock.registry import PAPERS, Registry

__all__ = [
    "ALLOCATIONS",
    "ALLOCATION_REGISTRY",
    "PAPERS",
    "PLACEMENTS",
    "PLACEMENT_REGISTRY",
    "AlgorithmRow",
    "Allocation",
    "Allocator",
    "Input",
    "Placement",
    "Placer",
    "get_allocation",
    "get_placement",
    "placement_for",
]


@dataclass(frozen=True, slots=True)
class AlgorithmRow(registry.TableRow):
    """One line of a table of algorithms."""

    needs: frozenset[Input] = frozenset()
    """What it must be told of every application."""

    @property
    def inputs(self) -> str:
        """What it must be told, in words."""
        return in_words(self.needs)


_CHARACTERISTICS: Final = frozenset({Input.VOLUME, Input.COMPUTE, Input.BANDWIDTH})

ALLOCATIONS: Final[dict[str, AlgorithmRow]] = {
    "random": AlgorithmRow(
        "random_allocation",
        "Give every application a random number of targets.",
        "papers/2 §4.1",
    ),
    "static": AlgorithmRow(
        "static",
        "Give targets in proportion to compute nodes.",
        "papers/2 §4.1",
        frozenset({Input.NODES}),
    ),
    "best-bandwidth": AlgorithmRow(
        "best_bandwidth",
        "Give every application the number of targets on which it is fastest.",
        "papers/2 §4.1 (BBA)",
        frozenset({Input.BEST}),
    ),
    "n-sys": AlgorithmRow(
        "n_sys",
        "Give every application the number of targets that stresses them least.",
        "papers/2 §4.1 (NSYSA)",
        _CHARACTERISTICS,
    ),
    "t-cpu": AlgorithmRow(
        "t_cpu",
        "From n-sys on, add targets where most nodes get to compute, up to the load 1.",
        "papers/2 §4.1 (TA)",
        _CHARACTERISTICS | {Input.NODES},
    ),
    "mckp": AlgorithmRow(
        "mckp",
        "Maximise the sum of the bandwidths, no target being shared if possible.",
        "papers/2 §5.2 (Bez et al. 2021)",
        frozenset({Input.BANDWIDTH}),
    ),
}

PLACEMENTS: Final[dict[str, AlgorithmRow]] = {
    "random": AlgorithmRow(
        "random_placement",
        "Put every application on targets drawn at random.",
        "papers/2 §4.2 (RandP)",
    ),
    "greedy-non-clairvoyant": AlgorithmRow(
        "greedy_non_clairvoyant",
        "Deal the targets out in turn, those who want most first.",
        "papers/2 §4.2 (GNC)",
    ),
    "greedy-clairvoyant": AlgorithmRow(
        "greedy_clairvoyant",
        "Put the most I/O-intensive first, each on the least loaded targets.",
        "papers/2 §4.2 (GC)",
        _CHARACTERISTICS,
    ),
    "exclusive": AlgorithmRow(
        "exclusive",
        "Give every application targets of its own; the slowest share one if need be.",
        "papers/2 §5.2 (Bez et al. 2021)",
        frozenset({Input.BANDWIDTH}),
    ),
}


ALLOCATION_REGISTRY: Final = Registry(
    kind="allocation",
    plural="allocations",
    decides="how many storage targets each application gets",
    package=__name__,
    table=ALLOCATIONS,
    function="allocate",
    arguments=("problem",),
)

PLACEMENT_REGISTRY: Final = Registry(
    kind="placement",
    plural="placements",
    decides="which storage targets they are",
    package=__name__,
    table=PLACEMENTS,
    function="place",
    arguments=("problem", "allocation"),
)

#: The placement without which an allocation makes no sense; the others have none.
_PARTNERS: Final = {"mckp": "exclusive"}


def get_allocation(text: str) -> Allocator:
    """Return the allocation for ``name`` or ``name:key=value,key=value``.

    `name` is one of the table, one of an installed package, or the dotted name of
    a module with a function ``allocate`` (or of such a function).
    """
    return Allocator.bind(ALLOCATION_REGISTRY.find(text))


def get_placement(text: str) -> Placer:
    """Return the placement for ``name`` or ``name:key=value,key=value``.

    `name` is one of the table, one of an installed package, or the dotted name of
    a module with a function ``place`` (or of such a function).
    """
    return Placer.bind(PLACEMENT_REGISTRY.find(text))


def placement_for(allocation: str) -> str:
    """Return the placement to use where only an allocation is named."""
    return _PARTNERS.get(allocation, "greedy-non-clairvoyant")
