# SPDX-License-Identifier: MIT
"""Values of settings: parsers, each with the JSON Schema of what it accepts.

A parser takes a text of the environment, the command line or the file, or another value
of the file. It returns the value in SI units, or raises `InputError`.
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
    "choice_of",
    "duration_between",
    "parse_address",
    "parse_archive_size",
    "parse_folders",
    "parse_host_and_port",
    "parse_job_classes",
    "parse_priorities",
    "parse_rate",
    "parse_rates",
    "parse_switch",
    "parse_text",
    "parse_unlimited_rate",
    "rate_or",
    "value_schema",
]

_ADDRESS: Final = re.compile(r"tcp://[^\s/]+:([0-9]{1,5})")
_LAST_PORT: Final = 65535
_SMALLEST_ARCHIVE: Final = 1e6
#: Parser of a setting -> JSON Schema of the values that it accepts in a file.
_SCHEMAS: Final[dict[Callable[[Any], Any], dict[str, Any]]] = {}
_Parser = TypeVar("_Parser", bound=Callable[[Any], Any])


def _accepts(**schema: Any) -> Callable[[_Parser], _Parser]:
    """Declare the JSON Schema of the values that a parser accepts."""

    def declare(parse: _Parser) -> _Parser:
        _SCHEMAS[parse] = schema
        return parse

    return declare


def _quantity(kind: str, *words: str) -> dict[str, Any]:
    """Return the schema of a text with a unit, or one of these words."""
    texts: list[dict[str, Any]] = [
        {"type": "string", "pattern": quantity_pattern(kind)}
    ]
    return {"anyOf": [*texts, {"enum": [*words, 0]}]}


def choice_of(*words: str) -> Callable[[Any], str]:
    """Return a parser that accepts only these words."""

    @_accepts(enum=list(words))
    def parse(value: Any) -> str:
        if value not in words:
            raise UnknownNameError("value", str(value), words)
        return str(value)

    return parse


def _written(value: Any) -> Any:
    """Return a number of the file as a text, so that it needs a unit like others."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


@_accepts(**_quantity("bandwidth"))
def parse_rate(value: Any) -> float:
    """Return a positive rate (bytes/s)."""
    rate = parse_bandwidth(_written(value))
    if rate <= 0.0:
        raise InputError(
            f"{value!r} is not a positive bandwidth",
            remedy='give a rate such as "2 GB/s"',
        )
    return rate


@_accepts(type="string")
def parse_rates(value: Any) -> tuple[float, ...]:
    """Return rates, from a text RATE,RATE,..."""
    return tuple(
        parse_rate(word) for word in filter(None, parse_text(value).split(","))
    )


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
        return parse_rate(value)

    return parse


@_accepts(**_quantity("bandwidth", "unlimited"))
def parse_unlimited_rate(value: Any) -> float:
    """Return a positive rate (bytes/s), or infinity for `unlimited`."""
    rate = rate_or("unlimited")(value)
    return math.inf if isinstance(rate, str) else rate


@_accepts(anyOf=[{"type": "number"}, *_quantity("volume")["anyOf"]])
def parse_archive_size(value: Any) -> float:
    """Return a volume of 1 MB or more (bytes)."""
    size_bytes = parse_volume(value)
    if size_bytes < _SMALLEST_ARCHIVE:
        raise InputError(f"{value!r} is too small", remedy="give 1 MB or more")
    return size_bytes


def duration_between(low: float, high: float) -> Callable[[Any], float]:
    """Return a parser of times from `low` to `high` (s)."""

    @_accepts(**_quantity("time"))
    def parse(value: Any) -> float:
        duration = parse_time(_written(value))
        if not low <= duration <= high:
            raise InputError(
                f"{value!r} is out of range", remedy=f"give {low:g} to {high:g} seconds"
            )
        return duration

    return parse


_SWITCH: Final = {"yes": True, "no": False, "true": True, "false": False}


@_accepts(enum=[True, False, *_SWITCH])
def parse_switch(value: Any) -> bool:
    """Return True for `yes`, False for `no`."""
    if isinstance(value, bool):
        return value
    if value not in _SWITCH:
        raise InputError(f"{value!r} is not yes or no", remedy="write yes or no")
    return _SWITCH[value]


@_accepts(type="string")
def parse_text(value: Any) -> str:
    """Return a text as it is."""
    if not isinstance(value, str):
        raise InputError(f"{value!r} is not a text", remedy="put it in quotes")
    return value


@_accepts(type="string", pattern=rf"^(?:{_ADDRESS.pattern})?$")
def parse_address(value: Any) -> str:
    """Return an address tcp://HOST:PORT; an empty text means no address."""
    text = parse_text(value)
    match = _ADDRESS.fullmatch(text)
    if text and not (match and 1 <= int(match[1]) <= _LAST_PORT):
        raise InputError(
            f"{text!r} is not an address",
            remedy=f"write tcp://HOST:PORT, the port 1 to {_LAST_PORT}",
        )
    return text


@_accepts(type="string", pattern=r"^(?:.*:[0-9]+)?$")
def parse_host_and_port(value: Any) -> str:
    """Return an address HOST:PORT; an empty text means no address."""
    text = parse_text(value)
    port = text.rpartition(":")[2]
    if text and not (":" in text and port.isdecimal() and int(port) <= _LAST_PORT):
        raise InputError(
            f"{text!r} is not an address",
            remedy="write HOST:PORT, e.g. 127.0.0.1:9400",
        )
    return text


_PRIORITY: Final = r" *([^,= ][^,=]*?) *= *([-+]?[0-9]+(?:\.[0-9]*)?) *"


@_accepts(type="string", pattern=rf"^(?:{_PRIORITY}(?:,{_PRIORITY})*)?$")
def parse_priorities(value: Any) -> tuple[tuple[str, float], ...]:
    """Return pairs of a name and a number, from a text NAME=NUMBER,NAME=NUMBER."""
    words = parse_text(value).split(",") if value else []
    matches = [re.fullmatch(_PRIORITY, word) for word in words]
    if not all(matches):
        raise InputError(
            f"{value!r} is not a list of priorities",
            remedy='write e.g. "urgent=10,backfill=-5"',
        )
    return tuple((match[1], float(match[2])) for match in matches if match)


_CLASSES: Final = ("ascent", "descent", "peak", "neutral")
_JOB_CLASS: Final = rf" *([^,= ][^,=]*?) *= *({'|'.join(_CLASSES)}) *"


@_accepts(type="string", pattern=rf"^(?:{_JOB_CLASS}(?:,{_JOB_CLASS})*)?$")
def parse_job_classes(value: Any) -> tuple[tuple[str, str], ...]:
    """Return pairs of a pattern and a class, from a text PATTERN=CLASS,..."""
    words = parse_text(value).split(",") if value else []
    matches = [re.fullmatch(_JOB_CLASS, word) for word in words]
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
def parse_folders(value: Any) -> tuple[str, ...]:
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


def value_schema(parse: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the JSON Schema of the values that a parser accepts."""
    return _SCHEMAS[parse]
