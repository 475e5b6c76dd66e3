# SPDX-License-Identifier: MIT
"""Make platforms, applications and instances from texts with units.

The functions are named like the records of `penstock.model` that they return.
"""

# ruff: noqa: N802 - named like the records that they return

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from penstock import model
from penstock.errors import InputError, UnknownNameError
from penstock.model.documents import parsed, parsed_name
from penstock.model.formats import PHASES
from penstock.units import parse_bandwidth, parse_time

__all__ = ["Application", "Instance", "Platform", "Quantity"]

#: A number in bytes, seconds or bytes per second, or a text with a unit.
Quantity: TypeAlias = float | str
_T = TypeVar("_T")


def Platform(
    bandwidth: Quantity, node_bandwidth: Quantity, **rest: Any
) -> model.Platform:
    """Return a platform: storage of a bandwidth, and nodes of a bandwidth each.

    >>> ps.Platform("200 GB/s", node_bandwidth="1 GB/s").bandwidth
    200000000000.0
    """
    return model.Platform(
        parsed(parse_bandwidth, bandwidth, "bandwidth"),
        parsed(parse_bandwidth, node_bandwidth, "node_bandwidth"),
        **rest,
    )


def Application(
    name: str,
    nodes: int,
    phases: Iterable[Sequence[Any]],
    release: Quantity = 0.0,
    **rest: Any,
) -> model.Application:
    """Return an application with phases ``[("work", "1 h"), ("io", "2 TB"), ...]``.

    `rest` are other fields of `penstock.model.Application`, e.g. ``user="ann"``.

    >>> fusion = ps.Application("fusion", nodes=8, phases=[("work", "1 h"), ("io", 5)])
    >>> fusion.phases()
    [('work', 3600.0), ('io', 5.0)]
    """
    listed = [_phase(phase, f"phases[{n}]") for n, phase in enumerate(_listed(phases))]
    if not listed:
        raise InputError("no phase", where="phases", remedy="give at least one")
    return model.Application.from_phases(
        parsed_name(name),
        nodes,
        listed,
        release=parsed(parse_time, release, "release"),
        **rest,
    )


def _listed(phases: object) -> Iterable[Any]:
    if isinstance(phases, str) or not isinstance(phases, Iterable):
        raise InputError(
            f"{phases!r} is not a list of phases",
            where="phases",
            remedy='write [("work", "10 min"), ("io", "2 TB"), ...]',
        )
    return phases


def _phase(phase: Sequence[Any], where: str) -> tuple[str, float]:
    if not isinstance(phase, list | tuple) or len(phase) != 2:
        raise InputError(
            f"{phase!r} is not a phase",
            where=where,
            remedy='write ("work", "10 min") or ("io", "2 TB")',
        )
    kind, amount = phase
    if kind not in PHASES:
        raise UnknownNameError("kind of phase", str(kind), PHASES, where=where)
    _, parse = PHASES[kind]
    return kind, parsed(parse, amount, where)


def Instance(
    platform: model.Platform,
    applications: Iterable[model.Application],
    window: tuple[Quantity, Quantity],
) -> model.Instance:
    """Return an instance; the window is what is measured.

    >>> platform = ps.Platform("10 GB/s", node_bandwidth="1 GB/s")
    >>> genome = ps.Application("genome", 4, [("work", "2 min"), ("io", "90 GB")] * 9)
    >>> ps.Instance(platform, [genome], window=("0 s", "20 min")).window.end
    1200.0
    """
    if not isinstance(window, list | tuple) or len(window) != 2:
        raise InputError(
            f"{window!r} is not a window",
            where="window",
            remedy='write ("0 s", "3 h")',
        )
    begin, end = (parsed(parse_time, time, "window") for time in window)
    return model.Instance(
        _checked(platform, model.Platform, "platform"),
        model.Window(begin, end),
        tuple(_applications(applications)),
    )


def _applications(applications: object) -> list[model.Application]:
    if isinstance(applications, model.Application):
        raise InputError(
            f"the application {applications.name!r} is not in a list",
            where="applications",
            remedy="write [application]",
        )
    if isinstance(applications, str) or not isinstance(applications, Iterable):
        raise InputError(
            f"{applications!r} is not a list of applications",
            where="applications",
            remedy="write [ps.Application(...), ...]",
        )
    return [
        _checked(item, model.Application, f"applications[{number}]")
        for number, item in enumerate(applications)
    ]


def _checked(value: object, kind: type[_T], where: str) -> _T:
    """Return `value`; raise `InputError` if it is not a record of this kind."""
    if not isinstance(value, kind):
        raise InputError(
            f"{value!r} is not made with ps.{kind.__name__}",
            where=where,
            remedy=f"write ps.{kind.__name__}(...)",
        )
    return value
