# SPDX-License-Identifier: MIT
"""The machine: storage bandwidth shared by all, and what one node can draw."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.errors import InputError

__all__ = ["Platform"]


@dataclass(frozen=True, slots=True)
class Platform:
    """Shared storage of total bandwidth B and nodes of bandwidth b each."""

    bandwidth: float
    """B: total bandwidth of the storage (bytes/s)."""
    node_bandwidth: float
    """b: bandwidth of the network card of one compute node (bytes/s)."""

    def __post_init__(self) -> None:
        for name in ("bandwidth", "node_bandwidth"):
            value = float(getattr(self, name))
            object.__setattr__(self, name, value)
            if not (math.isfinite(value) and value > 0):
                raise InputError(
                    f"{value!r} is not a positive bandwidth",
                    where=name,
                    remedy='give bytes per second, e.g. "200 GiB/s"',
                )

    def cap(self, nodes: int) -> float:
        """Return b_i = min(p_i b, B), papers/1 eq. 1 (bytes/s)."""
        return min(nodes * self.node_bandwidth, self.bandwidth)
