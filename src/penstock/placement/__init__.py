# SPDX-License-Identifier: MIT
"""Allocation and placement: how many storage targets each application gets, and which.

An algorithm is one file. To add one, copy `_template.py` into the folder
``placement/allocations/`` or ``placement/placements/`` and add a row to `ALLOCATIONS`
or `PLACEMENTS`. An algorithm outside of penstock needs no row: users name it by its
dotted name, or install it under the entry-point group ``penstock.allocations`` or
``penstock.placements``.

The files beside this one are what algorithms share: `algorithm` (the interface),
`inputs`, `target_use`, and `online` for applications that arrive one by one.

The tables hold all that is needed to list the algorithms. Listing them imports neither
the algorithms nor NumPy.
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
    """One algorithm in its table."""

    needs: frozenset[Input] = frozenset()
    """Inputs that must be known of every application."""

    @property
    def inputs(self) -> str:
        """The inputs as text, for tables."""
        return in_words(self.needs)


_CHARACTERISTICS: Final = frozenset({Input.VOLUME, Input.COMPUTE, Input.BANDWIDTH})

ALLOCATIONS: Final[dict[str, AlgorithmRow]] = {
    "random": AlgorithmRow(
        "allocations.random_allocation",
        "Give every application a random number of targets.",
        "target allocation, section 4.1",
    ),
    "static": AlgorithmRow(
        "allocations.static",
        "Give targets in proportion to compute nodes.",
        "target allocation, section 4.1",
        frozenset({Input.NODES}),
    ),
    "best-bandwidth": AlgorithmRow(
        "allocations.best_bandwidth",
        "Give every application the number of targets on which it is fastest.",
        "target allocation, section 4.1 (BBA)",
        frozenset({Input.BEST}),
    ),
    "n-sys": AlgorithmRow(
        "allocations.n_sys",
        "Give every application the number of targets that stresses them least.",
        "target allocation, section 4.1 (NSYSA)",
        _CHARACTERISTICS,
    ),
    "t-cpu": AlgorithmRow(
        "allocations.t_cpu",
        "Start from n-sys and add targets where most nodes can compute, up to load 1.",
        "target allocation, section 4.1 (TA)",
        _CHARACTERISTICS | {Input.NODES},
    ),
    "mckp": AlgorithmRow(
        "allocations.mckp",
        "Maximise the sum of the bandwidths without shared targets, if possible.",
        "target allocation, section 5.2 (Bez et al. 2021)",
        frozenset({Input.BANDWIDTH}),
    ),
}

PLACEMENTS: Final[dict[str, AlgorithmRow]] = {
    "random": AlgorithmRow(
        "placements.random_placement",
        "Put every application on targets drawn at random.",
        "target allocation, section 4.2 (RandP)",
    ),
    "greedy-non-clairvoyant": AlgorithmRow(
        "placements.greedy_non_clairvoyant",
        "Deal out the targets in turn, the largest allocation first.",
        "target allocation, section 4.2 (GNC)",
    ),
    "greedy-clairvoyant": AlgorithmRow(
        "placements.greedy_clairvoyant",
        "Place each application on the least loaded targets, I/O-intensive ones first.",
        "target allocation, section 4.2 (GC)",
        _CHARACTERISTICS,
    ),
    "exclusive": AlgorithmRow(
        "placements.exclusive",
        "Give every application its own targets; the slowest share one if necessary.",
        "target allocation, section 5.2 (Bez et al. 2021)",
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
    decides="which storage targets each application gets",
    package=__name__,
    table=PLACEMENTS,
    function="place",
    arguments=("problem", "allocation"),
)

#: Allocations that only make sense with one placement.
_PARTNERS: Final = {"mckp": "exclusive"}


def get_allocation(text: str) -> Allocator:
    """Return the allocation for ``name`` or ``name:key=value,key=value``.

    `name` is a name in the table, a name that an installed package announces, or the
    dotted name of a module with a function ``allocate`` or of such a function.
    """
    return Allocator.bind(ALLOCATION_REGISTRY.find(text))


def get_placement(text: str) -> Placer:
    """Return the placement for ``name`` or ``name:key=value,key=value``.

    `name` is a name in the table, a name that an installed package announces, or the
    dotted name of a module with a function ``place`` or of such a function.
    """
    return Placer.bind(PLACEMENT_REGISTRY.find(text))


def placement_for(allocation: str) -> str:
    """Return the placement to use if the user names only an allocation."""
    return _PARTNERS.get(allocation, "greedy-non-clairvoyant")
