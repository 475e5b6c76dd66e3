# SPDX-License-Identifier: MIT
"""Base of all messages, their version, and the types of their fields."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from penstock.errors import InputError

__all__ = [
    "LARGEST_BYTES",
    "LARGEST_REQUEST_BYTES",
    "VERSION",
    "Amount",
    "AnnouncedBytes",
    "AnnouncedSeconds",
    "Count",
    "Counted",
    "GivenName",
    "Message",
    "MessageError",
    "ModeName",
    "Name",
    "Priority",
    "Text",
]

VERSION: Final = 6
#: Longest message of a program or user (bytes).
LARGEST_REQUEST_BYTES: Final = 1 << 16
#: Longest message of an agent or controller (bytes).
LARGEST_BYTES: Final = 1 << 26

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
#: A name that a user chooses. It has no control characters: tables show it in one line.
GivenName = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        pattern=r"\A[^\x00-\x1f\x7f-\x9f\u2028\u2029]+\Z",
    ),
]
Text = Annotated[str, msgspec.Meta(max_length=4096)]
Amount = Annotated[float, msgspec.Meta(ge=0.0)]
#: What nodes count is finite: an infinite counter would make averages NaN. The bound is
#: far above counters of 64 bits and their sums.
Counted = Annotated[float, msgspec.Meta(ge=0.0, le=1e30)]
#: What a user announces is finite: strategies and placements calculate with it. Pages
#: count bytes in 64 bits.
AnnouncedBytes = Annotated[float, msgspec.Meta(ge=0.0, le=2.0**64)]
AnnouncedSeconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0)]
#: Priority of a job: the higher, the sooner; most jobs have 0.
Priority = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
ModeName = Literal["control", "dry-run", "off"]


class MessageError(InputError):
    """Bytes that are not a message of this version."""


class Message(msgspec.Struct, array_like=True, tag=True):
    """Base of all messages."""
