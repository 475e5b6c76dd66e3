# SPDX-License-Identifier: MIT
"""penstock: simulate I/O bandwidth-sharing policies, then run them live.

Programs under live control import `phase` and `bbio` from here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from penstock.program import bbio
    from penstock.program.hints import phase

__all__ = ["__version__", "bbio", "phase"]


def __getattr__(name: str) -> Any:
    # Imported on first use: `import penstock` and `penstock run` must be fast.
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("penstock")
    if name == "phase":
        from penstock.program.hints import phase  # noqa: PLC0415

        return phase
    if name == "bbio":
        from importlib import import_module  # noqa: PLC0415

        return import_module("penstock.program.bbio")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
