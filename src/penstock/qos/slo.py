# SPDX-License-Identifier: MIT
"""Service-level objectives: a throughput, and a latency while it is kept.

SLO_i = (t_i, l_i), papers/5 section 3: 95 of 100 requests of application i are answered
within l_i as long as it issues no more than t_i; beyond that only t_i is provisioned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, inf
from typing import Final

from penstock.errors import InputError
from penstock.units import format_bandwidth

__all__ = ["Slo", "slo_of", "unmet"]

#: Without any SLO all are equal; these are the numbers of that equality.
_EQUAL_THROUGHPUT: Final = 1e6
_EQUAL_LATENCY: Final = 1.0
#: Those without an SLO of their own have a tenth of the least that somebody has.
_OTHERS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Slo:
    """What an application is promised."""

    throughput: float
    """t_i (bytes/s)."""
    latency: float
    """l_i (s): bound on the 95th percentile of its response times."""

    def __post_init__(self) -> None:
        for name, unit in (("throughput", "bytes/s"), ("latency", "s")):
            value = getattr(self, name)
            if not 0 < value < inf:
                raise InputError(
                    f"{value!r} is no bound",
                    where=name,
                    remedy=f"give a positive, finite number of {unit}",
                )


def slo_of(slos: Mapping[str, Slo], application: str) -> Slo:
    """Return the SLO of an application; one that is not named has what is left over.

    That is a tenth of the least throughput and ten times the longest latency: little,
    but not nothing, so that nobody starves.
    """
    if application in slos:
        return slos[application]
    if not slos:
        return Slo(_EQUAL_THROUGHPUT, _EQUAL_LATENCY)
    return Slo(
        min(slo.throughput for slo in slos.values()) / _OTHERS,
        max(slo.latency for slo in slos.values()) * _OTHERS,
    )


def unmet(slos: Mapping[str, Slo], capacity: float) -> InputError | None:
    """Return what is wrong if the storage (bytes/s) cannot give all throughputs."""
    total = fsum(slo.throughput for slo in slos.values())
    if total <= capacity:
        return None
    return InputError(
        f"the SLOs ask for {format_bandwidth(total)} in all, and the storage has "
        f"{format_bandwidth(capacity)}",
        remedy=f"ask for {format_bandwidth(total - capacity)} less, or expect overload",
    )
