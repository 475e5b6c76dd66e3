# SPDX-License-Identifier: MIT
"""Instance files: JSON in and out.

::

    {"penstock": 1,
     "platform": {"bandwidth": "200 GiB/s", "node_bandwidth": "1.2 GiB/s"},
     "window": [0, "3 h"],
     "applications": [
       {"name": "climate", "nodes": 64, "release": 0,
        "phases": [["work", "10 min"], ["io", "500 GiB"], ...]}]}

An application may also have ``start``, ``done_work`` and ``done_volume`` (its past
before the window), ``user``, ``group`` and ``period``. The default of ``start`` is the
release, or the begin of the window for an application with a past.

A platform may have several ``targets`` (a number), whose ``sharing`` is "bandwidth" or
"time". An application then lists the numbers of its ``targets``, counted from 0, and
may give its ``bandwidth`` on 1, 2, ... targets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError, UnknownNameError
from penstock.model.application import Application
from penstock.model.documents import (
    FORMAT,
    checked_fields,
    inside,
    listed,
    parsed,
    parsed_name,
    parsed_phases,
    parsed_profile,
    read_document,
    top_fields,
    write_document,
)
from penstock.model.formats import (
    ApplicationFormat,
    InstanceFormat,
    PlatformFormat,
    optional_keys,
    required_keys,
)
from penstock.model.instance import Instance
from penstock.model.platform import Platform, Sharing
from penstock.model.window import Window
from penstock.units import parse_bandwidth, parse_time, parse_volume

__all__ = [
    "instance_from_document",
    "instance_to_document",
    "read_instance",
    "write_instance",
]

_TEXT: Final = {"user", "group"}
_HISTORY: Final = {
    "start": parse_time,
    "done_work": parse_time,
    "done_volume": parse_volume,
    "period": parse_time,
}


def read_instance(path: str | Path) -> Instance:
    """Read an instance file (``.json``, or ``.json.gz``)."""
    document = read_document(path)
    with inside(f"{path}: "):
        return instance_from_document(document)


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write an instance file; an existing file is replaced only by a complete one."""
    write_document(instance_to_document(instance), path)


def instance_to_document(instance: Instance) -> dict[str, Any]:
    """Return `instance` as the JSON document that the module docstring shows."""
    return {
        "penstock": FORMAT,
        "platform": _platform_document(instance.platform),
        "window": [instance.window.begin, instance.window.end],
        "applications": [_application_document(a) for a in instance.applications],
    }


def instance_from_document(document: object) -> Instance:
    """Return the instance that a JSON document describes."""
    top = top_fields(document, required_keys(InstanceFormat))
    with inside("platform"):
        platform = _platform(top["platform"])
    window = _window(top["window"])
    applications = []
    for number, item in enumerate(listed(top["applications"], "applications")):
        with inside(f"applications[{number}]"):
            applications.append(_application(item, window))
    return Instance(platform, window, tuple(applications))


def _platform(value: object) -> Platform:
    fields = checked_fields(
        value, required_keys(PlatformFormat), optional_keys(PlatformFormat)
    )
    sharing = fields.get("sharing", Sharing.BANDWIDTH.value)
    known = [kind.value for kind in Sharing]
    if sharing not in known:
        raise UnknownNameError("sharing", str(sharing), known, where="sharing")
    total, node = (
        parsed(parse_bandwidth, fields[key], key)
        for key in ("bandwidth", "node_bandwidth")
    )
    return Platform(
        total,
        node,
        targets=fields.get("targets", 1),
        sharing=Sharing(sharing),
    )


def _platform_document(platform: Platform) -> dict[str, Any]:
    document: dict[str, Any] = {
        "bandwidth": platform.bandwidth,
        "node_bandwidth": platform.node_bandwidth,
    }
    if platform.targets > 1 or platform.sharing is not Sharing.BANDWIDTH:
        document |= {"targets": platform.targets, "sharing": platform.sharing.value}
    return document


def _window(value: object) -> Window:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(
            f"{value!r} is not a window", where="window", remedy="write [begin, end]"
        )
    begin, end = (parsed(parse_time, v, f"window[{n}]") for n, v in enumerate(value))
    with inside("window"):
        return Window(begin, end)


def _application(item: object, window: Window) -> Application:
    fields = checked_fields(
        item, required_keys(ApplicationFormat), optional_keys(ApplicationFormat)
    )
    name = parsed_name(fields["name"])
    rest: dict[str, Any] = {"release": parsed(parse_time, fields["release"], "release")}
    for key in sorted(fields.keys() & _HISTORY.keys()):
        rest[key] = parsed(_HISTORY[key], fields[key], key)
    if not rest.get("period", 1.0) > 0:
        raise InputError(
            f"{fields['period']!r} is not positive",
            where="period",
            remedy="leave it out if it is not known",
        )
    for key in sorted(fields.keys() & _TEXT):
        if not isinstance(fields[key], str):
            raise InputError(
                f"{fields[key]!r} is not a name", where=key, remedy="write a text"
            )
        rest[key] = fields[key]
    if "targets" in fields:
        rest["targets"] = _targets(fields["targets"])
    if "bandwidth" in fields:
        rest["profile"] = parsed_profile(fields["bandwidth"])
    if rest.get("done_work") or rest.get("done_volume"):
        rest.setdefault("start", window.begin)
    phases = parsed_phases(fields["phases"])
    return Application.from_phases(name, fields["nodes"], phases, **rest)


def _targets(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(item) is not int for item in value):
        raise InputError(
            f"{value!r} is not a list of storage targets",
            where="targets",
            remedy="list target numbers, counted from 0: [0, 1, ...]",
        )
    return tuple(value)


def _application_document(application: Application) -> dict[str, Any]:
    a = application
    document: dict[str, Any] = {
        "name": a.name,
        "nodes": a.nodes,
        "release": a.release,
        "start": a.start,
        "phases": a.phases(),
    }
    for key in ("done_work", "done_volume", "user", "group", "period"):
        if getattr(a, key):
            document[key] = getattr(a, key)
    if a.targets != (0,):
        document["targets"] = list(a.targets)
    if a.profile.size:
        document["bandwidth"] = a.profile.tolist()
    return document
