# SPDX-License-Identifier: MIT
"""Bandwidth limits of a mount; ``native/mount/limiter.h`` defines how they hold."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from penstock.qos import Kind

__all__ = ["DATA_KINDS", "Limits"]

#: The kinds of requests that move data.
DATA_KINDS: Final[tuple[Kind, ...]] = ("read", "write")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bytes/s; inf: no limit."""

    total: float = inf
    read: float = inf
    write: float = inf
