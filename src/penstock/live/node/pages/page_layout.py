# SPDX-License-Identifier: MIT
"""The layout of a page, as ``native/shim/page.h`` defines it.

A test compares both field by field. The meaning of each word is documented there.
"""

from __future__ import annotations

import math
import time
from ctypes import Structure, c_char, c_uint32, c_uint64
from enum import IntEnum
from typing import Final

from penstock.errors import InputError

__all__ = [
    "FOLDER_KNOWN",
    "FOLDER_UNKNOWN",
    "LAYOUT",
    "LEASE_MAX_S",
    "MAGIC",
    "NO_BUCKET",
    "PART_FOLDER_BYTES",
    "PART_ROOTS_BYTES",
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
    "lease_end_ns",
    "rate_word",
]

MAGIC: Final = int.from_bytes(b"penstock", "little")
VERSION: Final = 5
SIZE: Final = 4096
UNLIMITED: Final = 2**64 - 1
RATE_SHIFT: Final = 40
#: Longest lease (s); the preload library ignores longer ones.
LEASE_MAX_S: Final = 60.0
#: Scaled rate in the page for 1 byte/s.
_RATE_UNIT: Final = 2.0**RATE_SHIFT / 1e9
NO_BUCKET: Final = 255
_FOLDER_BYTES: Final = 1024
PART_FOLDER_BYTES: Final = 512
PART_ROOTS_BYTES: Final = 1024
FOLDER_UNKNOWN: Final = 0
FOLDER_KNOWN: Final = 2


class Mode(IntEnum):
    """What the preload library does with the grants."""

    #: Calls pass; nothing is counted.
    OFF = 0
    #: Calls are counted, and the time that control would hold them up; no call waits.
    DRY_RUN = 1
    #: Calls are counted and wait.
    CONTROL = 2


class IoClass(IntEnum):
    """The classes of calls, counted separately."""

    WRITE = 0
    READ = 1
    #: Writes of a drainer process; they draw on the bucket of the writes.
    DRAIN = 2


class Bucket(IntEnum):
    """A bucket: the grant that a class of calls draws on."""

    #: Writes, and reads where both share one bandwidth.
    MAIN = 0
    #: Reads, where they have a bandwidth of their own.
    READS = 1


class CurveWords(Structure):
    """``struct page_curve``: the grant of a bucket as a function of time."""

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
    """``struct page_bucket``: a grant, and the bytes charged to it."""

    _fields_ = (
        ("grant_number", c_uint32),
        ("unused_word", c_uint32),
        ("charged_bytes", c_uint64),
        ("unused", c_uint64 * 6),
        ("curve", CurveWords * 2),
    )


class ClassWords(Structure):
    """``struct page_class``: the counters of one class of calls."""

    _fields_ = (
        ("begun_calls", c_uint64),
        ("ended_calls", c_uint64),
        ("moved_bytes", c_uint64),
        ("memory_bytes", c_uint64),
        ("busy_ns", c_uint64),
        ("last_active_ns", c_uint64),
        ("unused", c_uint64 * 2),
        ("held_up_ns", c_uint64),
        ("waiting_calls", c_uint64),
        ("heartbeat_ns", c_uint64),
        ("resumed_ns", c_uint64),
        ("would_hold_up_ns", c_uint64),
        ("pauses", c_uint64),
        ("paused_ns", c_uint64),
        ("unused_line", c_uint64 * 1),
    )


class StagingWords(Structure):
    """``struct page_staging``: the mode and the counters of staging."""

    _fields_ = (
        ("mode", c_uint32),
        ("folder_state", c_uint32),
        ("absorbed_bytes", c_uint64),
        ("drained_bytes", c_uint64),
        ("refused_files", c_uint64),
        ("partition", c_uint32),
        ("part_slots", c_uint32),
        ("redirected_bytes", c_uint64),
        ("merged_bytes", c_uint64),
        ("redirect_age_ms", c_uint32),
        ("unused", c_uint32),
    )


class PageWords(Structure):
    """``struct penstock_page``: the whole page."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("size", c_uint32),
        ("mode", c_uint32),
        ("operations_begun", c_uint32),
        ("lease_ns", c_uint64),
        ("floor_rate", c_uint64),
        ("gap_ns", c_uint64),
        ("bucket_of", c_uint32 * 2),
        ("phase_begin_ns", c_uint64),
        ("unused", c_uint64),
        ("bypass_setups", c_uint64),
        ("announced_bytes", c_uint64),
        ("phases_begun", c_uint64),
        ("phases_ended", c_uint64),
        ("announced_at_ns", c_uint64),
        ("free_cached_reads", c_uint32),
        ("free_absorbed_writes", c_uint32),
        ("bell_user", c_uint32),
        ("bell_slot", c_uint32),
        ("classes", ClassWords * len(IoClass)),
        ("buckets", BucketWords * len(Bucket)),
        ("staging", StagingWords),
        ("folder", c_char * _FOLDER_BYTES),
        ("part_folder", c_char * PART_FOLDER_BYTES),
        ("part_roots", c_char * PART_ROOTS_BYTES),
    )


#: Name of a structure in C -> its class here.
LAYOUT: Final[dict[str, type[Structure]]] = {
    "struct page_curve": CurveWords,
    "struct page_bucket": BucketWords,
    "struct page_class": ClassWords,
    "struct page_staging": StagingWords,
    "struct penstock_page": PageWords,
}


def granted_at(bucket: BucketWords, now_ns: int) -> int | None:
    """Return the bytes that a bucket has granted by `now_ns`; None without a limit."""
    curve = bucket.curve[bucket.grant_number & 1]
    if curve.rate == UNLIMITED or curve.check != check_word(curve):
        return None
    since_ns = max(0, now_ns - int(curve.from_ns))
    return int(curve.granted_bytes) + (int(curve.rate) * since_ns >> RATE_SHIFT)


def lease_end_ns(duration_s: float) -> int:
    """Return the end of a lease that begins now, as it is stored in pages and bells.

    Raises `InputError` for durations that the preload library would not accept.
    """
    if not 0.0 <= duration_s <= LEASE_MAX_S:
        raise InputError(
            f"a lease of {duration_s!r} s",
            remedy=f"give 0 to {LEASE_MAX_S:g} s and renew it in time",
        )
    return time.monotonic_ns() + round(duration_s * 1e9)


def rate_word(rate: float) -> int:
    """Return a rate (bytes/s) as it is stored in a page.

    Raises `InputError` for negative rates and NaN.
    """
    if not rate >= 0.0:
        raise InputError(f"a rate of {rate!r} bytes/s", remedy="give 0 (pause) or more")
    if math.isinf(rate):
        return UNLIMITED
    scaled = rate * _RATE_UNIT
    word = round(scaled) if scaled < UNLIMITED - 1 else UNLIMITED - 1
    return max(word, 1) if rate > 0.0 else 0


def check_word(curve: CurveWords) -> int:
    """Return the check word of a curve, which shows that it was not torn."""
    first = int(curve.from_ns) ^ int(curve.granted_bytes) ^ int(curve.rate)
    return first ^ int(curve.credit_bytes) ^ int(curve.slack_bytes) ^ MAGIC
