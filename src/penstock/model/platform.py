# SPDX-License-Identifier: MIT
"""The machine: storage bandwidth shared by all, and what one node can draw.

Storage is one or more equal *targets*. A target is shared in one of two ways:

- by bandwidth (papers/1): what its users draw adds up to B / targets at most;
- by time (papers/2): only one user is served at a time, at its own full speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from penstock.errors import InputError

__all__ = ["MOST_TARGETS", "Platform", "Sharing", "check_targets"]

#: Each of them takes memory.
MOST_TARGETS: Final = 1_000_000


def check_targets(count: int, where: str = "targets") -> None:
    """Raise `InputError` if `count` is no number of storage targets."""
    if type(count) is not int or not 1 <= count <= MOST_TARGETS:
        raise InputError(
            f"{count!r} is not a number of storage targets",
            where=where,
            remedy=f"give a whole number from 1 to {MOST_TARGETS}",
        )


class Sharing(StrEnum):
    """What the users of a storage target divide among them."""

    BANDWIDTH = "bandwidth"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Platform:
    """Shared storage of total bandwidth B and nodes of bandwidth b each."""

    bandwidth: float
    """B: total bandwidth of the storage (bytes/s)."""
    node_bandwidth: float
    """b: bandwidth of the network card of one compute node (bytes/s)."""
    targets: int = 1
    """Storage targets, of bandwidth B / targets each."""
    sharing: Sharing = Sharing.BANDWIDTH

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

        check_targets(self.targets)

    @property
    def target_bandwidth(self) -> float:
        """Bandwidth of one storage target (bytes/s)."""
        return self.bandwidth / self.targets

    def cap(self, nodes: int, targets: int = 1) -> float:
        """Return b_i = min(p_i b, B), papers/1 eq. 1, on some targets (bytes/s)."""
        return min(nodes * self.node_bandwidth, targets * self.target_bandwidth)
