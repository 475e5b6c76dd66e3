# SPDX-License-Identifier: MIT
"""Quantities with units: the one place where they are parsed and printed.

Inside penstock every volume is in bytes, every time in seconds and every bandwidth in
bytes per second, all as ``float``. Users may write ``"200 GiB/s"``, ``"1.5 h"`` or a
number in these base units. A text must have a unit, because a user who writes ``"10"``
rarely means 10 bytes per second. Exceptions: 0, and callers that pass ``bare=True``.

An amount is printed in the units in which it was written, decimal (MB) or binary (MiB).
The number itself tells: people write few digits. 1e8 is 100 MB but 95.367431640625 MiB;
2**23 is 8 MiB but 8.388608 MB. An amount that binary units do not make shorter, e.g. a
measured one, is decimal. Amounts that are read beside another one, e.g. the draws of
jobs beside the shared bandwidth, are printed in the units of that one (`like`).
"""

from __future__ import annotations

import math
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, SupportsIndex

from penstock.errors import InputError

__all__ = [
    "counted",
    "format_bandwidth",
    "format_instant",
    "format_time",
    "format_volume",
    "parse_bandwidth",
    "parse_time",
    "parse_volume",
    "parse_whole",
    "quantity_pattern",
]

_VOLUME: Final = {
    "B": 1.0,
    **{f"{p}B": 1000.0 ** (i + 1) for i, p in enumerate("kMGTPE")},
    **{f"{p}iB": 1024.0 ** (i + 1) for i, p in enumerate("KMGTPE")},
    "KB": 1000.0,
}
_TIME: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
#: Longest number that a user is thought to have written (characters).
_WRITTEN: Final = 7
_BANDWIDTH: Final = {f"{unit}/s": factor for unit, factor in _VOLUME.items()}
_NUMBER: Final = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ZERO: Final = r"[+-]?(?:0+\.?0*|\.0+)(?:[eE][+-]?\d+)?"
_QUANTITY: Final = re.compile(rf"\s*({_NUMBER}|[+-]?inf|nan)\s*([A-Za-z/]*)\s*")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of quantity."""

    name: str
    units: dict[str, float]
    example: str
    usual: str
    """Unit that is suggested for a number without one."""


_OF_VOLUME: Final = _Kind("volume", _VOLUME, "200 GiB", "MB")
_OF_TIME: Final = _Kind("time", _TIME, "1.5 h", "s")
_OF_BANDWIDTH: Final = _Kind("bandwidth", _BANDWIDTH, "200 GiB/s", "MB/s")


def parse_volume(value: object, *, bare: bool = False) -> float:
    """Return `value` in bytes; strings may carry B, kB, KiB ... EB, EiB."""
    return _parse(value, _OF_VOLUME, bare=bare)


def parse_time(value: object, *, bare: bool = False) -> float:
    """Return `value` in seconds; strings may carry ns, us, ms, s, min, h, d."""
    return _parse(value, _OF_TIME, bare=bare)


def parse_bandwidth(value: object, *, bare: bool = False) -> float:
    """Return `value` in bytes per second; strings may carry B/s ... EiB/s."""
    return _parse(value, _OF_BANDWIDTH, bare=bare)


def parse_whole(value: object, *, least: int, most: int | None = None) -> int:
    """Return a whole number, or a text of one, from `least` to `most`."""
    number: int | None = None
    if isinstance(value, str):
        with suppress(ValueError):
            number = int(value)
    elif isinstance(value, SupportsIndex) and not isinstance(value, bool):
        number = value.__index__()
    if number is None or number < least:
        raise InputError(
            f"{value!r} is not a whole number of at least {least}",
            remedy=f"give {least} or more",
        )
    if most is not None and number > most:
        raise InputError(
            f"{value!r} is more than the limit of {most}",
            remedy=f"give at most {most}",
        )
    return number


def quantity_pattern(*kinds: str) -> str:
    """Return a regular expression for the texts that these kinds of quantity accept.

    The kinds are "volume", "time" and "bandwidth". The expression is one of JSON
    Schema, so it matches the whole text. It accepts some numbers that are too large.
    """
    known = (_OF_VOLUME, _OF_TIME, _OF_BANDWIDTH)
    units = "|".join(
        unit for kind in known if kind.name in kinds for unit in kind.units
    )
    return rf"^\s*(?:{_NUMBER}\s*(?:{units})|{_ZERO})\s*$"


def format_volume(size_bytes: float, like: float | None = None) -> str:
    """Return `size_bytes` with four digits and a unit, e.g. "1.5 GB" or "64 KiB".

    The units are those in which `like` was written; without it, `size_bytes` itself.
    """
    return _format(size_bytes, "B", like)


def format_bandwidth(rate_bytes_per_s: float, like: float | None = None) -> str:
    """Return `rate_bytes_per_s` with four digits and a unit, e.g. "100 MB/s".

    The units are those in which `like` was written; without it, the rate itself.
    """
    return _format(rate_bytes_per_s, "B/s", like)


def format_time(duration_s: float) -> str:
    """Return `duration_s` in the largest unit that leaves at least 1."""
    for unit in ("d", "h", "min", "s", "ms", "us"):
        if abs(duration_s) >= _TIME[unit]:
            return f"{duration_s / _TIME[unit]:.4g} {unit}"
    return f"{duration_s:.4g} s"


def format_instant(instant_s: float) -> str:
    """Return seconds since 1970 as the date and the time of day of this machine."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(instant_s))


def counted(number: int, noun: str) -> str:
    """Return ``1 run``, ``2 runs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _parse(value: object, kind: _Kind, *, bare: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(
            f"{value!r} is not a {kind.name}",
            remedy=f'write a number or "{kind.example}"',
        )
    if not isinstance(value, str):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        return _finite(number, value, kind.name)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise InputError(
            f"{value!r} is not a {kind.name}", remedy=f'write e.g. "{kind.example}"'
        )
    digits, unit = match.groups()
    if unit and unit not in kind.units:
        known = f"known for a {kind.name}: {', '.join(kind.units)}"
        raise InputError(
            f"unknown unit {unit!r} in {value!r}",
            remedy=f"{_suggestion(unit, kind.units)}{known}",
        )
    number = _finite(float(digits) * kind.units.get(unit, 1.0), value, kind.name)
    if number and not unit and not bare:
        example = f"{digits} {kind.usual}" if number > 0.0 else kind.example
        raise InputError(f"{value!r} has no unit", remedy=f'write e.g. "{example}"')
    return number


def _suggestion(unit: str, table: dict[str, float]) -> str:
    """Return advice for a unit that is nearly one of the table.

    It may be in small letters, of bits, or of a volume in place of a bandwidth.
    """
    in_small = {known.lower(): known for known in reversed(table)}
    if unit.islower() and unit in in_small:
        return f"did you mean {in_small[unit]}? "
    in_bytes = re.sub(r"(b|bit|bits)(?=/s$|ps$|$)", "B", unit)
    guess = re.sub(r"B(?:ps)?$", "B/s", in_bytes) if "B/s" in table else in_bytes
    if guess.lower() not in in_small:
        return ""
    known = guess if guess in table else in_small[guess.lower()]
    bits = "bits are not supported; " if in_bytes != unit else ""
    return f"{bits}did you mean {known}? "


def _finite(number: float, value: object, kind: str) -> float:
    if not math.isfinite(number):
        raise InputError(f"{value!r} is not a finite {kind}", remedy="give a number")
    return number


def _format(amount: float, unit: str, like: float | None) -> str:
    is_binary = _is_binary(amount if like is None else like)
    power = _power(amount, 1024.0 if is_binary else 1000.0)
    if is_binary:
        return f"{amount / 1024.0**power:.4g} {_BINARY[power]}{unit}"
    return f"{amount / 1000.0**power:.4g} {_DECIMAL[power]}{unit}"


def _is_binary(amount: float) -> bool:
    """Return True if the amount has few digits in binary units, more in decimal."""
    decimal = f"{amount / 1000.0 ** _power(amount, 1000.0):.12g}"
    binary = f"{amount / 1024.0 ** _power(amount, 1024.0):.12g}"
    return len(binary) < len(decimal) and len(binary) <= _WRITTEN


def _power(amount: float, base: float) -> int:
    """Return the power of `base` that leaves at least 1, if there is one."""
    power, amount = 0, abs(amount)
    # Comparing with powers is exact; repeated division would round.
    while power + 1 < len(_DECIMAL) and amount >= base ** (power + 1):
        power += 1
    return power
