# SPDX-License-Identifier: MIT
"""The simulator: `simulate` runs a policy on an instance, exactly.

The controller of live jobs uses `engine` and `state` on nodes without NumPy. Therefore
what needs NumPy is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.sim.run import EventLog, GrantLog, Run
    from penstock.sim.simulation import simulate, warm_up

__all__ = ["EventLog", "GrantLog", "Run", "simulate", "warm_up"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "simulation" if name in ("simulate", "warm_up") else "run"
    return getattr(import_module(f"{__name__}.{module}"), name)
