# SPDX-License-Identifier: MIT
"""Service-level objectives (SLOs): a throughput and a latency per application.

SLO_i = (t_i, l_i) (two-level scheduling, section 3): while application i issues at most
t_i bytes/s, 95 % of its requests are answered within l_i seconds. If it issues more,
only the throughput t_i is provisioned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, inf
from typing import Final

from penstock.errors import InputError
from penstock.units import format_bandwidth

__all__ = ["Slo", "slo_of", "unmet"]

#: The SLO of every application where no SLOs are given: all applications are equal.
_EQUAL_BYTES_PER_S: Final = 1e6
_EQUAL_LATENCY_S: Final = 1.0
#: Applications without an SLO get the lowest throughput divided by this factor, and
#: the longest latency multiplied by it.
_OTHERS_FACTOR: Final = 10.0


@dataclass(frozen=True, slots=True)
class Slo:
    """The promise to one application: throughput and latency, both positive."""

    throughput_bytes_per_s: float
    """t_i."""
    latency_s: float
    """l_i: bound on the 95th percentile of the response times."""

    def __post_init__(self) -> None:
        for name, value, unit in (
            ("throughput", self.throughput_bytes_per_s, "bytes/s"),
            ("latency", self.latency_s, "s"),
        ):
            if not 0 < value < inf:
                raise InputError(
                    f"{value!r} is not a valid bound",
                    where=name,
                    remedy=f"give a positive, finite number of {unit}",
                )


def slo_of(slos: Mapping[str, Slo], application: str) -> Slo:
    """Return the SLO of an application, or the SLO for unnamed applications.

    Unnamed applications get a tenth of the lowest throughput and ten times the longest
    latency: little, but enough not to starve.
    """
    if application in slos:
        return slos[application]
    if not slos:
        return Slo(_EQUAL_BYTES_PER_S, _EQUAL_LATENCY_S)
    return Slo(
        min(slo.throughput_bytes_per_s for slo in slos.values()) / _OTHERS_FACTOR,
        max(slo.latency_s for slo in slos.values()) * _OTHERS_FACTOR,
    )


def unmet(slos: Mapping[str, Slo], capacity_bytes_per_s: float) -> InputError | None:
    """Return an error if the sum of the throughputs exceeds the storage capacity."""
    total = fsum(slo.throughput_bytes_per_s for slo in slos.values())
    if total <= capacity_bytes_per_s:
        return None
    excess = total - capacity_bytes_per_s
    rates = (total, capacity_bytes_per_s, excess)
    sum_text, capacity, reduction = (
        format_bandwidth(rate, like=capacity_bytes_per_s) for rate in rates
    )
    return InputError(
        f"the SLOs add up to {sum_text}, and the storage has only {capacity}",
        remedy=f"reduce them by {reduction}, or expect overload",
    )
