# SPDX-License-Identifier: MIT
"""Stage while too many write at the same time (a template: copy this file).

Rule
    Required. What the strategy does, in words. Here: the first ``writers`` to arrive
    write through, the others stage; drains at ``rate`` at most, at any time.

Parameters
    writers
        How many write through. Default 2.
    rate (bytes/s)
        What one application may drain at. Default 1e9.

Properties
    What it promises, and its cost: O(K log K).

Source
    Paper, section or equation; every deviation from it.
"""

# How to use your own strategy, without touching penstock: name it by its dotted name,
# mypackage.mymodule:writers=3, where mypackage/mymodule.py is a copy of this file (the
# current folder counts), or announce it in your package under the entry-point group
# `penstock.strategies`. A strategy of penstock itself also gets a row in
# `penstock.staging.STRATEGIES`.

from __future__ import annotations

from typing import Final

from penstock.registry import Parameter
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]

# Optional. The function is given, by name, those that it takes.
PARAMETERS: Final = (
    Parameter("writers", "how many write through", 2, low=1),
    Parameter("rate", "what one may drain at", 1e9, unit="bytes/s", low=1.0),
)


def coordinate(situation: Situation, writers: float, rate: float) -> StagingPlan:
    """Return an order for every application.

    The same situation, the same plan: no clock, no state, no random numbers.
    """
    staging = situation.arrivals()[int(writers) :]
    return StagingPlan(
        [
            StagingOrder(
                situation.all_targets, stage=i in staging, drain=True, drain_rate=rate
            )
            for i in range(len(situation.applications))
        ]
    )
