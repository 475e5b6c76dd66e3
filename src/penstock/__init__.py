# SPDX-License-Identifier: MIT
"""penstock: simulate I/O bandwidth-sharing policies, then run them live."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.program.hints import phase

__all__ = ["__version__", "phase"]

__version__ = version("penstock")


def __getattr__(name: str) -> Any:
    # A program that gives no hint does not pay for it.
    if name != "phase":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock.program.hints import phase  # noqa: PLC0415

    return phase
