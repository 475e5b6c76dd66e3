# SPDX-License-Identifier: MIT
"""Parsers of the values of settings, each with the JSON Schema of what it accepts.

A parser takes a value of a file, a variable or a flag, and returns the value of the
setting. It raises `InputError` if the value is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from penstock.errors import InputError, UnknownNameError
from penstock.units import (
    parse_bandwidth,
    parse_time,
    parse_volume,
    quantity_pattern,
)

__all__ = [
    "SCHEMAS",
    "UNIX",
    "choice",
    "class_pairs",
    "duration",
    "folders",
    "host_and_port",
    "one_of",
    "plain_text",
    "priority_pairs",
    "rate_or",
    "rates",
    "switch",
    "tcp_address",
    "unlimited_rate",
    "volume",
    "web_address",
]

#: Begin of the address of a Unix socket, with the slash of its path.
UNIX: Final = "unix:/"

_ADDRESS: Final = re.compile(r"tcp://[^\s/]+:([0-9]{1,5})")
_LAST_PORT: Final = 65535
_SMALLEST_ARCHIVE: Final = 1e6
#: As in messages (`penstock.live.wire.messages.message.Priority`).
_HIGHEST_PRIORITY: Final = 1e9
#: Parser of a setting -> JSON Schema of the values that it accepts in a file.
SCHEMAS: Final[dict[Callable[[Any], Any], dict[str, Any]]] = {}
_Parser = TypeVar("_Parser", bound=Callable[[Any], Any])


def _accepts(**schema: Any) -> Callable[[_Parser], _Parser]:
    """Declare the JSON Schema of the values that a parser accepts."""

    def declare(parse: _Parser) -> _Parser:
        SCHEMAS[parse] = schema
        return parse

    return declare


def _quantity(kind: str, *words: str) -> dict[str, Any]:
    """Return the schema of a text with a unit, or one of these words.

    Only 0 needs no unit. A bandwidth is never 0.
    """
    others = [*words] if kind == "bandwidth" else [*words, 0]
    schemas: list[dict[str, Any]] = [
        {"type": "string", "pattern": quantity_pattern(kind)}
    ]
    return {"anyOf": [*schemas, {"enum": others}] if others else schemas}


def choice(*words: str) -> Callable[[Any], str]:
    """Return a parser that accepts one of these words."""

    @_accepts(enum=list(words))
    def parse(value: Any) -> str:
        if value not in words:
            raise UnknownNameError("value", str(value), words)
        return str(value)

    return parse


def one_of(*words: str) -> str:
    """Return the placeholder for one of these words in a help text."""
    return f"{{{','.join(words)}}}"


def _written(value: Any) -> Any:
    """Return a number of the file as a text, so that it needs a unit like others."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


@_accepts(**_quantity("bandwidth"))
def _rate(value: Any) -> float:
    rate = parse_bandwidth(_written(value))
    if rate <= 0.0:
        raise InputError(
            f"{value!r} is not a positive bandwidth",
            remedy='give a rate such as "2 GB/s"',
        )
    return rate


def _listed(value: Any) -> list[str]:
    """Return the entries of a text that has commas between them; "" has none."""
    text = plain_text(value)
    return text.split(",") if text else []


@_accepts(type="string")
def rates(value: Any) -> tuple[float, ...]:
    """Return rates, from a text RATE,RATE,..."""
    return tuple(_rate(word) for word in _listed(value))


def rate_or(*words: str) -> Callable[[Any], float | str]:
    """Return a parser of a rate that accepts these words as well."""

    @_accepts(**_quantity("bandwidth", *words))
    def parse(value: Any) -> float | str:
        if value in words:
            return str(value)
        if isinstance(value, str) and value.strip()[:1].isalpha():
            close = get_close_matches(value.strip().lower(), words, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(
                f"{value!r} is not a bandwidth",
                remedy=f'{hint}write a rate such as "2 GB/s", or {" or ".join(words)}',
            )
        return _rate(value)

    return parse


@_accepts(**_quantity("bandwidth", "unlimited"))
def unlimited_rate(value: Any) -> float:
    """Return a rate (bytes/s); ``unlimited`` means infinity."""
    rate = rate_or("unlimited")(value)
    return math.inf if isinstance(rate, str) else rate


@_accepts(anyOf=[{"type": "number"}, *_quantity("volume")["anyOf"]])
def volume(value: Any) -> float:
    """Return the size of an archive (bytes)."""
    size_bytes = parse_volume(value)
    if size_bytes < _SMALLEST_ARCHIVE:
        raise InputError(f"{value!r} is too small", remedy="give 1 MB or more")
    return size_bytes


def duration(low: float, high: float) -> Callable[[Any], float]:
    """Return a parser of a time in this range (s)."""

    @_accepts(**_quantity("time"))
    def parse(value: Any) -> float:
        time_s = parse_time(_written(value))
        if not low <= time_s <= high:
            raise InputError(
                f"{value!r} is out of range", remedy=f"give {low:g} to {high:g} seconds"
            )
        return time_s

    return parse


_SWITCH: Final = {"yes": True, "no": False, "true": True, "false": False}


@_accepts(enum=[True, False, *_SWITCH])
def switch(value: Any) -> bool:
    """Return True for yes, False for no."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value not in _SWITCH:
        raise InputError(f"{value!r} is not yes or no", remedy="write yes or no")
    return _SWITCH[value]


@_accepts(type="string")
def plain_text(value: Any) -> str:
    """Return a text as it is."""
    if not isinstance(value, str):
        raise InputError(f"{value!r} is not a text", remedy="put it in quotes")
    return value


@_accepts(type="string", pattern=rf"^(?:{_ADDRESS.pattern})?$")
def tcp_address(value: Any) -> str:
    """Return an address tcp://HOST:PORT; an empty text means no address."""
    text = plain_text(value)
    match = _ADDRESS.fullmatch(text)
    if text and not (match and 1 <= int(match[1]) <= _LAST_PORT):
        raise InputError(
            f"{text!r} is not an address",
            remedy=f"write tcp://HOST:PORT, the port 1 to {_LAST_PORT}",
        )
    return text


@_accepts(type="string", pattern=r"^(?:.+:0*[1-9][0-9]*)?$")
def host_and_port(value: Any) -> str:
    """Return an address HOST:PORT; an empty text means no address."""
    text = plain_text(value)
    host, _, port = text.rpartition(":")
    if text and not (host and port.isdecimal() and 1 <= int(port) <= _LAST_PORT):
        raise InputError(
            f"{text!r} is not an address",
            remedy=f"write HOST:PORT, e.g. 127.0.0.1:9400, the port 1 to {_LAST_PORT}",
        )
    return text


@_accepts(type="string", pattern=r"^(?:.+:0*[1-9][0-9]*|unix:/.+)?$")
def web_address(value: Any) -> str:
    """Return HOST:PORT or unix:/PATH; an empty text means no address."""
    text = plain_text(value)
    if text == UNIX:
        raise InputError(
            f"{text!r} names no socket", remedy="write unix:/PATH, e.g. unix:/run/page"
        )
    return text if text.startswith(UNIX) else host_and_port(text)


_PRIORITY: Final = r" *([^,= ][^,=]*?) *= *([-+]?[0-9]+(?:\.[0-9]*)?) *"


@_accepts(type="string", pattern=rf"^(?:{_PRIORITY}(?:,{_PRIORITY})*)?$")
def priority_pairs(value: Any) -> tuple[tuple[str, float], ...]:
    """Return pairs of a name and a number, from a text NAME=NUMBER,NAME=NUMBER."""
    matches = [re.fullmatch(_PRIORITY, word) for word in _listed(value)]
    if not all(matches):
        raise InputError(
            f"{value!r} is not a list of priorities",
            remedy='write e.g. "urgent=10,backfill=-5"',
        )
    pairs = tuple((match[1], float(match[2])) for match in matches if match)
    for name, priority in pairs:
        if abs(priority) > _HIGHEST_PRIORITY:
            raise InputError(
                f"the priority of {name!r} is out of range",
                remedy=f"give {-_HIGHEST_PRIORITY:.0f} to {_HIGHEST_PRIORITY:.0f}",
            )
    return pairs


_CLASSES: Final = ("ascent", "descent", "peak", "neutral")
_JOB_CLASS: Final = rf" *([^,= ][^,=]*?) *= *({'|'.join(_CLASSES)}) *"


@_accepts(type="string", pattern=rf"^(?:{_JOB_CLASS}(?:,{_JOB_CLASS})*)?$")
def class_pairs(value: Any) -> tuple[tuple[str, str], ...]:
    """Return pairs of a pattern and a class, from a text PATTERN=CLASS,..."""
    matches = [re.fullmatch(_JOB_CLASS, word) for word in _listed(value)]
    if not all(matches):
        raise InputError(
            f"{value!r} is not a list of classes of jobs",
            remedy=f'write e.g. "climate*=peak"; the classes are {", ".join(_CLASSES)}',
        )
    return tuple((match[1], match[2]) for match in matches if match)


_FOLDER: Final = r"(?:/[^:]*)?"


@_accepts(
    anyOf=[
        {"type": "string", "pattern": rf"^{_FOLDER}(?::{_FOLDER})*$"},
        {"type": "array", "items": {"type": "string", "pattern": rf"^{_FOLDER}$"}},
    ]
)
def folders(value: Any) -> tuple[str, ...]:
    """Return absolute paths, from a list or from a text separated by colons."""
    parts = value.split(":") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(p, str) for p in parts):
        raise InputError(
            f"{value!r} is not a list of folders", remedy='write e.g. ["/scratch"]'
        )
    for part in filter(None, parts):
        if not part.startswith("/") or ":" in part:
            raise InputError(
                f"{part!r} is not an absolute path",
                remedy="write a path that begins with / and has no colon",
            )
    return tuple(filter(None, parts))
