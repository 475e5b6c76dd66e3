# SPDX-License-Identifier: MIT
"""The shapes of instance files and of problem files: keys, types and limits.

The readers (`penstock.model.files`, `penstock.model.problem`) take the keys, the kinds
of phases and the limits from here. ``penstock schema`` prints the same shapes as JSON
Schemas. What a schema cannot say, e.g. that names are unique, only the readers check.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from penstock.model.application import MOST_NODES
from penstock.model.platform import MOST_TARGETS, Sharing
from penstock.units import parse_time, parse_volume, quantity_pattern

__all__ = [
    "NAME",
    "PHASES",
    "ApplicationFormat",
    "Bandwidth",
    "Duration",
    "InstanceFormat",
    "Instant",
    "Name",
    "Nodes",
    "Period",
    "Phase",
    "PlatformFormat",
    "ProblemApplicationFormat",
    "ProblemFormat",
    "Profile",
    "Targets",
    "Version",
    "Volume",
    "optional_keys",
    "required_keys",
]

#: A name: not empty, and without control characters, which no table can show.
NAME: Final = "^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+$"

Name = Annotated[str, Meta(pattern=NAME)]
Version = Annotated[Literal[1], Meta(description="Version of the format.")]
_Number = Annotated[float, Meta(ge=0)]
_Positive = Annotated[float, Meta(gt=0)]
_Time = Annotated[str, Meta(pattern=quantity_pattern("time"))]
_Volume = Annotated[str, Meta(pattern=quantity_pattern("volume"))]
_Bandwidth = Annotated[str, Meta(pattern=quantity_pattern("bandwidth"))]
Instant = Annotated[float | _Time, Meta(description="Seconds, or with a unit.")]
Duration = Annotated[_Number | _Time, Meta(description="Seconds, or with a unit.")]
Volume = Annotated[_Number | _Volume, Meta(description="Bytes, or with a unit.")]
Bandwidth = Annotated[
    _Positive | _Bandwidth, Meta(description="Bytes per second, or with a unit.")
]
Period = Annotated[_Positive | _Time, Meta(description="Seconds, or with a unit.")]
Nodes = Annotated[int, Meta(ge=1, le=MOST_NODES)]
Targets = Annotated[int, Meta(ge=1, le=MOST_TARGETS)]
Profile = Annotated[
    list[Bandwidth],
    Meta(min_length=1, description="Bandwidth alone on 1, 2, ... storage targets."),
]

#: Kind of phase -> type of its amount, and its parser.
PHASES: Final = {"work": (Duration, parse_time), "io": (Volume, parse_volume)}
_EITHER_PHASE: Final = [
    {"prefixItems": [{"const": kind}, msgspec.json.schema(amount)]}
    for kind, (amount, _) in PHASES.items()
]
Phase = Annotated[
    tuple[Literal["work", "io"], _Number | str],
    Meta(
        description="Work and its time, or I/O and its volume.",
        extra_json_schema={"anyOf": _EITHER_PHASE},
    ),
]


class PlatformFormat(msgspec.Struct, forbid_unknown_fields=True):
    """Storage and compute nodes."""

    bandwidth: Bandwidth
    node_bandwidth: Bandwidth
    targets: Targets = 1
    sharing: Sharing = Sharing.BANDWIDTH


class ApplicationFormat(msgspec.Struct, forbid_unknown_fields=True):
    """An application: its phases, and its history before the window."""

    name: Name
    nodes: Nodes
    release: Instant
    phases: list[Phase]
    start: Instant | msgspec.UnsetType = msgspec.UNSET
    done_work: Duration = 0.0
    done_volume: Volume = 0.0
    period: Period | msgspec.UnsetType = msgspec.UNSET
    user: str = ""
    group: str = ""
    targets: (
        Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=1)]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    bandwidth: Profile | msgspec.UnsetType = msgspec.UNSET


class InstanceFormat(msgspec.Struct, forbid_unknown_fields=True):
    """An instance: a platform, a window of time and applications."""

    penstock: Version
    platform: PlatformFormat
    window: tuple[Instant, Instant]
    applications: list[ApplicationFormat]


class ProblemApplicationFormat(msgspec.Struct, forbid_unknown_fields=True):
    """An application that needs storage targets."""

    name: Name
    nodes: Nodes
    phases: list[Phase] = []
    bandwidth: Profile | msgspec.UnsetType = msgspec.UNSET
    best_targets: Targets | msgspec.UnsetType = msgspec.UNSET


class ProblemFormat(msgspec.Struct, forbid_unknown_fields=True):
    """A placement problem: storage targets, compute nodes and applications."""

    penstock: Version
    resources: Targets
    compute_nodes: Nodes
    applications: Annotated[list[ProblemApplicationFormat], Meta(min_length=1)]


@cache
def required_keys(shape: type[msgspec.Struct]) -> frozenset[str]:
    """Return the keys that an object of this shape must have."""
    items = msgspec.structs.fields(shape)
    return frozenset(item.encode_name for item in items if item.required)


@cache
def optional_keys(shape: type[msgspec.Struct]) -> frozenset[str]:
    """Return the keys that an object of this shape may have as well."""
    items = msgspec.structs.fields(shape)
    return frozenset(item.encode_name for item in items if not item.required)
