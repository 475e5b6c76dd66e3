# SPDX-License-Identifier: MIT
"""Parameters of a workload: default, symbol of the paper, meaning and range.

A parameter is a number with a range, or one word of its `choices`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import Field, field, fields
from typing import Any, Final

from penstock.errors import InputError, UnknownNameError

__all__ = [
    "MOST_APPLICATIONS",
    "check_parameters",
    "describe",
    "parameter",
    "parse_settings",
    "range_of",
    "settings_text",
]


#: Largest number of applications, or of targets, of a workload.
MOST_APPLICATIONS: Final = 100_000


def parameter(
    default: float | str,
    symbol: str,
    meaning: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """Return a dataclass field that describes a parameter of a workload."""
    metadata = {
        "symbol": symbol,
        "meaning": meaning,
        "low": low,
        "high": high,
        "choices": choices,
    }
    return field(default=default, metadata=metadata)


def check_parameters(workload: Any) -> None:
    """Raise `InputError` if a parameter of `workload` is outside its range."""
    for item in fields(workload):
        value = getattr(workload, item.name)
        if choices := item.metadata["choices"]:
            if value not in choices:
                raise UnknownNameError(item.name, str(value), choices)
            continue
        low, high = item.metadata["low"], item.metadata["high"]
        if not (math.isfinite(value) and low <= value <= high):
            raise InputError(
                f"{value!r} is out of range",
                where=item.name,
                remedy=f"{item.metadata['meaning']}: {range_of(item)}",
            )


def range_of(item: Field[Any]) -> str:
    """Return the range of a parameter in words."""
    if item.metadata["choices"]:
        return " or ".join(item.metadata["choices"])
    low, high = item.metadata["low"], item.metadata["high"]
    if math.isinf(high):
        return "any" if math.isinf(low) else f"at least {low:g}"
    return f"{low:g} to {high:g}"


def parse_settings(workload: type, settings: Iterable[str]) -> dict[str, Any]:
    """Return ``["pressure=0.5", ...]`` as keyword arguments of `workload`.

    A parameter may be given by its name or by the symbol of the paper.
    """
    known = {item.name: item for item in fields(workload)}
    symbols = {item.metadata["symbol"]: item for item in known.values()}
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"{setting!r} is not a setting", remedy="write key=value")
        item = known.get(key) or symbols.get(key)
        if item is None:
            raise UnknownNameError("workload key", key, known)
        if item.name in values:
            raise InputError(
                f"{item.name} is given twice", where=key, remedy="give it once"
            )
        if item.metadata["choices"]:
            values[item.name] = text
            continue
        kind = int if isinstance(item.default, int) else float
        try:
            values[item.name] = kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise InputError(
                f"{text!r} is not {wanted}", where=key, remedy=item.metadata["meaning"]
            ) from None
    return values


def settings_text(workload: Any) -> str:
    """Return all parameters of a workload with their values: ``trace=NERSC, ...``."""
    return ", ".join(
        f"{item.name}={_shown(getattr(workload, item.name))}"
        for item in fields(workload)
    )


def describe(workload: type) -> list[str]:
    """Return one line per parameter: name, default, meaning, range, symbol."""
    return [
        f"{item.name}={_shown(item.default)}  {item.metadata['meaning']}; "
        f"{range_of(item)} [{item.metadata['symbol']}]"
        for item in fields(workload)
    ]


def _shown(default: Any) -> str:
    return default if isinstance(default, str) else f"{default:g}"
