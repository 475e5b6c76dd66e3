# SPDX-License-Identifier: MIT
"""penstock: simulate I/O bandwidth-sharing policies, then run them live.

Notebooks and scripts: ``import penstock as ps`` (`penstock.api`). Programs under live
control import `phase` and `bbio` from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from penstock.api import (
        AdviceResult,
        Application,
        ComparisonResult,
        Instance,
        Platform,
        SimulationResult,
        advise,
        bound,
        compare,
        import_logs,
        place,
        read,
        simulate,
        workload,
    )
    from penstock.errors import (
        InputError,
        MissingExtraError,
        PenstockError,
        PolicyError,
        UnavailableError,
        UnknownNameError,
    )
    from penstock.program import bbio
    from penstock.program.hints import phase

__all__ = [
    "AdviceResult",
    "Application",
    "ComparisonResult",
    "InputError",
    "Instance",
    "MissingExtraError",
    "PenstockError",
    "Platform",
    "PolicyError",
    "SimulationResult",
    "UnavailableError",
    "UnknownNameError",
    "__version__",
    "advise",
    "bbio",
    "bound",
    "compare",
    "import_logs",
    "phase",
    "place",
    "read",
    "simulate",
    "workload",
]


def __getattr__(name: str) -> Any:
    # Imported on first use: `import penstock` and `penstock run` must be fast.
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("penstock")
    if name == "phase":
        return import_module("penstock.program.hints").phase
    if name == "bbio":
        return import_module("penstock.program.bbio")
    if name in __all__ and name.endswith("Error"):
        return getattr(import_module("penstock.errors"), name)
    if name in __all__:
        return getattr(_api(name), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _api(name: str) -> Any:
    try:
        return import_module("penstock.api")
    except ModuleNotFoundError as error:
        from penstock.errors import MissingExtraError  # noqa: PLC0415 - as above

        raise MissingExtraError.of(error, where=f"penstock.{name}") or error from None
