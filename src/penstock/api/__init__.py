# SPDX-License-Identifier: MIT
"""What a notebook uses: ``import penstock as ps``.

The functions here do what the commands do, with the same code and the same numbers.
`penstock` offers their names; they are imported on first use.
"""

from penstock.api.construction import Application, Instance, Platform
from penstock.api.functions import (
    advise,
    bound,
    compare,
    import_logs,
    place,
    read,
    simulate,
    workload,
)
from penstock.api.results import AdviceResult, ComparisonResult, SimulationResult

__all__ = [
    "AdviceResult",
    "Application",
    "ComparisonResult",
    "Instance",
    "Platform",
    "SimulationResult",
    "advise",
    "bound",
    "compare",
    "import_logs",
    "place",
    "read",
    "simulate",
    "workload",
]
