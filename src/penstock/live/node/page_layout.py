# SPDX-License-Identifier: MIT
"""The layout of a page: that of ``native/shim/page.h``, and a test compares the two."""

from __future__ import annotations

import math
from ctypes import Structure, c_char, c_uint32, c_uint64
from enum import IntEnum
from typing import Final

from penstock.errors import InputError

__all__ = [
    "FOLDER_KNOWN",
    "LAYOUT",
    "MAGIC",
    "NO_BUCKET",
    "RATE_SHIFT",
    "SIZE",
    "UNLIMITED",
    "VERSION",
    "Bucket",
    "BucketWords",
    "ClassWords",
    "CurveWords",
    "IoClass",
    "Mode",
    "PageWords",
    "StagingWords",
    "check_word",
    "granted_at",
    "rate_word",
]

MAGIC: Final = int.from_bytes(b"penstock", "little")
VERSION: Final = 3
SIZE: Final = 4096
UNLIMITED: Final = 2**64 - 1
RATE_SHIFT: Final = 40
_RATE_UNIT: Final = 2.0**RATE_SHIFT / 1e9
NO_BUCKET: Final = 255
_FOLDER_BYTES: Final = 1024
FOLDER_KNOWN: Final = 2


class Mode(IntEnum):
    """What the preload library does with the grants."""

    #: Every call passes; nothing is counted.
    OFF = 0
    #: Calls are counted, and the waits that control would cause; nobody waits.
    DRY_RUN = 1
    #: Calls are counted and wait.
    CONTROL = 2


class IoClass(IntEnum):
    """What a call does."""

    WRITE = 0
    READ = 1
    #: Calls on names (open, stat, rename ...): counted, never delayed.
    META = 2
    #: Drains by a drainer beside the program; they draw on the writes' bucket.
    DRAIN = 3


class Bucket(IntEnum):
    """A grant of its own. Both classes may draw on one, or each on its own."""

    #: Writes, and reads where both share one bandwidth.
    MAIN = 0
    #: Reads where they have a bandwidth of their own.
    READS = 1


class CurveWords(Structure):
    """What a bucket grants, as a function of time."""

    _fields_ = (
        ("from_ns", c_uint64),
        ("granted_bytes", c_uint64),
        ("rate", c_uint64),
        ("credit_bytes", c_uint64),
        ("slack_bytes", c_uint64),
        ("check", c_uint64),
        ("unused", c_uint64 * 2),
    )


class BucketWords(Structure):
    """A grant of its own, and what is charged to it."""

    _fields_ = (
        ("grant_number", c_uint32),
        ("unused_word", c_uint32),
        ("charged_bytes", c_uint64),
        ("unused", c_uint64 * 6),
        ("curve", CurveWords * 2),
    )


class ClassWords(Structure):
    """What the calls of one class have done."""

    _fields_ = (
        ("begun_calls", c_uint64),
        ("ended_calls", c_uint64),
        ("moved_bytes", c_uint64),
        ("held_up_ns", c_uint64),
        ("waiting_calls", c_uint64),
        ("heartbeat_ns", c_uint64),
        ("last_active_ns", c_uint64),
        ("resumed_ns", c_uint64),
    )


class StagingWords(Structure):
    """What is staged, and whether it is to be."""

    _fields_ = (
        ("mode", c_uint32),
        ("folder_state", c_uint32),
        ("absorbed_bytes", c_uint64),
        ("drained_bytes", c_uint64),
        ("refused_files", c_uint64),
        ("unused", c_uint64 * 4),
    )


class PageWords(Structure):
    """All of it."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("size", c_uint32),
        ("mode", c_uint32),
        ("posts", c_uint32),
        ("lease_ns", c_uint64),
        ("floor_rate", c_uint64),
        ("gap_ns", c_uint64),
        ("bucket_of", c_uint32 * 2),
        ("phase_begin_ns", c_uint64),
        ("attached_processes", c_uint64),
        ("bypass_setups", c_uint64),
        ("announced_bytes", c_uint64),
        ("phases_begun", c_uint64),
        ("phases_ended", c_uint64),
        ("announced_at_ns", c_uint64),
        ("unused_line", c_uint64 * 2),
        ("classes", ClassWords * len(IoClass)),
        ("buckets", BucketWords * len(Bucket)),
        ("staging", StagingWords),
        ("folder", c_char * _FOLDER_BYTES),
    )


#: C name of a structure -> its counterpart here.
LAYOUT: Final[dict[str, type[Structure]]] = {
    "struct page_curve": CurveWords,
    "struct page_bucket": BucketWords,
    "struct page_class": ClassWords,
    "struct page_staging": StagingWords,
    "struct penstock_page": PageWords,
}


def granted_at(place: BucketWords, now_ns: int) -> int | None:
    """Return what a bucket has granted by now (bytes); None without a limit."""
    curve = place.curve[place.grant_number & 1]
    if curve.rate == UNLIMITED or curve.check != check_word(curve):
        return None
    since = max(0, now_ns - int(curve.from_ns))
    served = int(curve.rate) * since >> RATE_SHIFT
    return int(curve.granted_bytes) + served


def rate_word(rate: float) -> int:
    """Return a rate (bytes/s) as it stands in a page."""
    if not rate >= 0.0:
        raise InputError(f"a rate of {rate!r} bytes/s", remedy="give 0 (pause) or more")
    if math.isinf(rate):
        return UNLIMITED
    word = min(round(rate * _RATE_UNIT), UNLIMITED - 1)
    return max(word, 1) if rate > 0.0 else 0


def check_word(curve: CurveWords) -> int:
    """Return the word by which a curve is known to be whole."""
    moment = int(curve.from_ns) ^ int(curve.granted_bytes) ^ int(curve.rate)
    return moment ^ int(curve.credit_bytes) ^ int(curve.slack_bytes) ^ MAGIC
