# SPDX-License-Identifier: MIT
"""Stage while too many applications write at the same time (a template: copy this).

Rule
    Required. What the strategy does, in words. Here: the first ``writers`` to arrive
    write through, and the others stage.

Constraints
    1. Numbered: what holds in any case. Here: an application may drain at any time, at
       ``rate`` at most.

Parameters
    writers
        Number of applications that write through. Default 2.
    rate (bytes/s)
        Highest rate of the drain of one application. Default 1e9.

Properties
    What it guarantees, and its cost: O(K log K) for K applications.

Source
    Paper and section or equation; every deviation from it.
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

# Optional. Their values are passed to the function by name.
PARAMETERS: Final = (
    Parameter("writers", "number of applications that write through", 2, low=1),
    Parameter("rate", "highest rate of one drain", 1e9, unit="bytes/s", low=1.0),
)


def coordinate(situation: Situation, writers: float, rate: float) -> StagingPlan:
    """Return an order for every application.

    Pure: the same situation gives the same plan. No clock, state or random numbers.
    """
    staging = situation.arrivals()[int(writers) :]
    return StagingPlan(
        [
            StagingOrder(
                situation.all_targets,
                stage=i in staging,
                drain=True,
                drain_bytes_per_s=rate,
            )
            for i in range(len(situation.applications))
        ]
    )
