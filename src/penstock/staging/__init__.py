# SPDX-License-Identifier: MIT
"""Staging strategies: pure functions that decide where applications write.

For every application a strategy decides: write through, stage, or use a part of the
storage targets; and which applications drain now. `situation` defines what a strategy
is shown and what it answers; `Strategy` runs one and checks its answer.

A strategy is one file: copy `_template.py` into the folder ``staging/strategies/``,
then add a row to `STRATEGIES`. A strategy outside of penstock needs no row: name it by
its dotted name, or install it under the entry-point group ``penstock.strategies``.

The other files beside this one are the rules that several strategies share:
`precedence`, `flushing`, `partition`; the warnings of `limits`; and `redirection`,
which says when open files follow their application to other targets.

`STRATEGIES` has the names and summaries, so that strategies can be listed without
importing them.
"""

from __future__ import annotations

from typing import Final

from penstock.registry import Registry, TableRow
from penstock.staging.redirection import REDIRECT_AGE_S, follows
from penstock.staging.situation import (
    ApplicationStatus,
    Forecast,
    Situation,
    StagingOrder,
    StagingPlan,
)
from penstock.staging.strategy import Strategy

__all__ = [
    "REDIRECT_AGE_S",
    "STRATEGIES",
    "STRATEGY_REGISTRY",
    "ApplicationStatus",
    "Forecast",
    "Situation",
    "StagingOrder",
    "StagingPlan",
    "Strategy",
    "follows",
    "get_strategy",
]

STRATEGIES: Final[dict[str, TableRow]] = {
    "none": TableRow(
        "strategies.write_through",
        "Let all applications write through at any time.",
        "burst-buffer coordination §V.B.1",
    ),
    "1a": TableRow(
        "strategies.yield_and_block",
        "Stage when another application arrives; flush when that one is done.",
        "burst-buffer coordination §III.A",
    ),
    "1b": TableRow(
        "strategies.yield_and_flush",
        "Stage when another application arrives; flush when blocked.",
        "burst-buffer coordination §III.A",
    ),
    "2a": TableRow(
        "strategies.wait_and_block",
        "Stage behind earlier arrivals; flush when they are done.",
        "burst-buffer coordination §III.A",
    ),
    "2b": TableRow(
        "strategies.wait_and_flush",
        "Stage behind earlier arrivals; flush when blocked.",
        "burst-buffer coordination §III.A",
    ),
    "3a": TableRow(
        "strategies.static_partition",
        "Give every application storage targets of its own for the whole run.",
        "burst-buffer coordination §III.B",
    ),
    "3b": TableRow(
        "strategies.dynamic_partition",
        "Divide the storage targets among the applications that write now.",
        "burst-buffer coordination §III.B",
    ),
    "combined": TableRow(
        "strategies.partition_then_stage",
        "Divide the storage targets while there are enough; stage beyond.",
        "burst-buffer coordination §V.C",
    ),
    "controlled": TableRow(
        "strategies.controlled",
        "Stage behind the first to arrive; drain into the bandwidth that is left.",
        "beyond the papers",
    ),
    "auto": TableRow(
        "strategies.auto",
        "Simulate what comes next with none and 1a to 3b, and follow the best.",
        "beyond the papers",
    ),
}

STRATEGY_REGISTRY: Final = Registry(
    kind="strategy",
    plural="strategies",
    decides="write through, stage or partition, and which applications drain",
    package=__name__,
    table=STRATEGIES,
    function="coordinate",
    arguments=("situation",),
)


def get_strategy(text: str) -> Strategy:
    """Return the strategy for ``name`` or ``name:key=value,key=value``.

    `name` is a name in `STRATEGIES`, the name of an entry point, or the dotted name of
    a module with a function ``coordinate`` (or of such a function).
    """
    return Strategy.bind(STRATEGY_REGISTRY.find(text))
