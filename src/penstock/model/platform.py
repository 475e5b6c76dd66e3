# SPDX-License-Identifier: MIT
"""The platform: shared storage bandwidth, and the bandwidth of one compute node.

Storage consists of one or more equal *targets*. Applications share a target in one of
two ways:

- by bandwidth (bandwidth sharing): the rates on a target add up to at most B / targets;
- by time (target allocation): a target serves one application at a time, at the full
  speed of that application.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from penstock.errors import InputError

__all__ = ["MOST_TARGETS", "Platform", "Sharing", "check_targets"]

#: Upper limit on the number of targets, because each of them takes memory.
MOST_TARGETS: Final = 1_000_000


def check_targets(count: int, where: str = "targets") -> None:
    """Raise `InputError` if `count` is not a valid number of storage targets."""
    if type(count) is not int or not 1 <= count <= MOST_TARGETS:
        raise InputError(
            f"{count!r} is not a number of storage targets",
            where=where,
            remedy=f"give a whole number from 1 to {MOST_TARGETS}",
        )


class Sharing(StrEnum):
    """What the applications on a storage target share: its bandwidth or its time."""

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
    """Number of storage targets; each has the bandwidth B / targets."""
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
        """Return the cap b_i = min(p_i b, targets B / N) of an application (bytes/s).

        With one target of N = 1: equation 1 of bandwidth sharing.
        """
        return min(nodes * self.node_bandwidth, targets * self.target_bandwidth)
