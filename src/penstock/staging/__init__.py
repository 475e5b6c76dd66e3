# SPDX-License-Identifier: MIT
"""Staging strategies: write through, stage, or partition, and who drains now.

A strategy is one file: copy `_template.py`, then add one row to `STRATEGIES`. One
outside of penstock needs no row: name it by its dotted name, or install it under the
entry-point group ``penstock.strategies``.

The table holds what is needed to list the strategies, so that listing them imports
none.
"""

from __future__ import annotations

from typing import Final

from penstock.registry import Registry, TableRow
from penstock.staging.situation import (
    ApplicationStatus,
    Situation,
    StagingOrder,
    StagingPlan,
)
from penstock.staging.strategy import Strategy

__all__ = [
    "STRATEGIES",
    "STRATEGY_REGISTRY",
    "ApplicationStatus",
    "Situation",
    "StagingOrder",
    "StagingPlan",
    "Strategy",
    "get_strategy",
]

STRATEGIES: Final[dict[str, TableRow]] = {
    "none": TableRow(
        "write_through",
        "Let everybody write through, whoever else does.",
        "papers/4 §V.B.1",
    ),
    "1a": TableRow(
        "yield_and_block",
        "Stage when somebody else arrives; flush when that one is done.",
        "papers/4 §III.A",
    ),
    "1b": TableRow(
        "yield_and_flush",
        "Stage when somebody else arrives; flush when there is nothing else to do.",
        "papers/4 §III.A",
    ),
    "2a": TableRow(
        "wait_and_block",
        "Stage behind whoever is there already; flush when that one is done.",
        "papers/4 §III.A",
    ),
    "2b": TableRow(
        "wait_and_flush",
        "Stage behind whoever is there; flush when there is nothing else to do.",
        "papers/4 §III.A",
    ),
    "3a": TableRow(
        "static_partition",
        "Give every application storage targets of its own, from begin to end.",
        "papers/4 §III.B",
    ),
    "3b": TableRow(
        "dynamic_partition",
        "Divide the storage targets among those who write at the same time.",
        "papers/4 §III.B",
    ),
    "combined": TableRow(
        "partition_then_stage",
        "Divide the storage targets while there are enough; stage beyond.",
        "papers/4 §V.C",
    ),
    "controlled": TableRow(
        "controlled",
        "Stage behind whoever is there; drain into what it leaves of the bandwidth.",
        "beyond the papers",
    ),
}

STRATEGY_REGISTRY: Final = Registry(
    kind="strategy",
    plural="strategies",
    decides="write through, stage or partition, and who drains now",
    package=__name__,
    table=STRATEGIES,
    function="coordinate",
    arguments=("situation",),
)


def get_strategy(text: str) -> Strategy:
    """Return the strategy for ``name`` or ``name:key=value,key=value``.

    `name` is one of the table, one of an installed package, or the dotted name of a
    module with a function ``coordinate`` (or of such a function).
    """
    return Strategy.bind(STRATEGY_REGISTRY.find(text))
