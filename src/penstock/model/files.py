# SPDX-License-Identifier: MIT
"""Instance files: JSON in and out, every mistake with its place.

::

    {"penstock": 1,
     "platform": {"bandwidth": "200 GiB/s", "node_bandwidth": "1.2 GiB/s"},
     "window": [0, "3 h"],
     "applications": [
       {"name": "climate", "nodes": 64, "release": 0,
        "phases": [["work", "10 min"], ["io", "500 GiB"], ...]}]}

An application may also have ``start``, ``done_work``, ``done_volume`` (its
history), ``user``, ``group`` and ``period``. ``start`` is the release, or the
begin of the window for an application with a history.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from penstock.errors import InputError, UnknownNameError
from penstock.model.application import Application
from penstock.model.instance import Instance
from penstock.model.platform import Platform
from penstock.model.window import Window
from penstock.units import parse_bandwidth, parse_time, parse_volume

__all__ = [
    "FORMAT",
    "instance_from_document",
    "instance_to_document",
    "read_instance",
    "replacing",
    "write_instance",
]

#: Version of the file format, the value of the key "penstock".
FORMAT = 1

_TEXT = {"user", "group"}
_PHASES = {"work": parse_time, "io": parse_volume}
_HISTORY = {
    "start": parse_time,
    "done_work": parse_time,
    "done_volume": parse_volume,
    "period": parse_time,
}


def read_instance(path: str | Path) -> Instance:
    """Read an instance file (``.json``, or ``.json.gz``)."""
    prefix = f"{path}: "
    try:
        data = Path(path).read_bytes()
        if str(path).endswith(".gz"):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read the file: {reason}", where=str(path)) from None
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"not JSON: {error}", where=str(path), remedy="mend the file's syntax"
        ) from None
    try:
        return instance_from_document(document)
    except InputError as error:
        raise error.at(prefix) from None


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write an instance file; an existing one is replaced only when it is whole."""
    data = msgspec.json.encode(instance_to_document(instance))
    with replacing(path) as stream:
        if str(path).endswith(".gz"):
            stream.write(gzip.compress(data, mtime=0))
        else:
            stream.write(data)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path` when the block ends well.

    What is no plain file (a pipe, ``/dev/stdout``) is written to as it is.
    """
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        try:
            with target.open("wb") as stream:
                yield stream
        except OSError as error:
            raise InputError(
                f"cannot write the file: {error.strerror}", where=str(path)
            ) from None
        return
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(
            f"cannot write the file: {error.strerror}", where=str(path)
        ) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except OSError as error:
        raise InputError(
            f"cannot write the file: {error.strerror}", where=str(path)
        ) from None
    finally:
        Path(name).unlink(missing_ok=True)


def instance_to_document(instance: Instance) -> dict[str, Any]:
    """Return `instance` as the JSON document of this module's docstring."""
    return {
        "penstock": FORMAT,
        "platform": {
            "bandwidth": instance.platform.bandwidth,
            "node_bandwidth": instance.platform.node_bandwidth,
        },
        "window": [instance.window.begin, instance.window.end],
        "applications": [_application_document(a) for a in instance.applications],
    }


def instance_from_document(document: object) -> Instance:
    """Return the instance that a JSON document describes."""
    top = _fields(
        document, "", {"penstock", "platform", "window", "applications"}, set()
    )
    if type(top["penstock"]) is not int or top["penstock"] != FORMAT:
        raise InputError(
            f"format {top['penstock']!r} is not known",
            where="penstock",
            remedy=f"this version reads format {FORMAT}",
        )
    platform = _platform(top["platform"])
    window = _window(top["window"])
    if not isinstance(top["applications"], list):
        raise InputError("not a list", where="applications", remedy="write [...]")
    applications = tuple(
        _application(item, f"applications[{number}]", window)
        for number, item in enumerate(top["applications"])
    )
    return Instance(platform, window, applications)


def _platform(value: object) -> Platform:
    known = {"bandwidth", "node_bandwidth"}
    fields = _fields(value, "platform", known, set())
    with _inside("platform"):
        return Platform(
            **{k: _parsed(parse_bandwidth, fields[k], k) for k in sorted(known)}
        )


def _window(value: object) -> Window:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(
            f"{value!r} is not a window", where="window", remedy="write [begin, end]"
        )
    begin, end = (_parsed(parse_time, v, f"window[{n}]") for n, v in enumerate(value))
    with _inside("window"):
        return Window(begin, end)


def _application(item: object, where: str, window: Window) -> Application:
    required = {"name", "nodes", "release", "phases"}
    fields = _fields(item, where, required, set(_HISTORY) | _TEXT)
    with _inside(where):
        name = fields["name"]
        if not isinstance(name, str) or not name:
            raise InputError(f"{name!r} is not a name", where="name")
        rest: dict[str, Any] = {
            "release": _parsed(parse_time, fields["release"], "release")
        }
        for key in sorted(fields.keys() & _HISTORY.keys()):
            rest[key] = _parsed(_HISTORY[key], fields[key], key)
        for key in sorted(fields.keys() & _TEXT):
            if not isinstance(fields[key], str):
                raise InputError(f"{fields[key]!r} is not a name", where=key)
            rest[key] = fields[key]
        if rest.get("done_work") or rest.get("done_volume"):
            rest.setdefault("start", window.begin)
        if not isinstance(fields["phases"], list):
            raise InputError("not a list", where="phases", remedy="write [...]")
        phases = [_phase(p, number) for number, p in enumerate(fields["phases"])]
        return Application.from_phases(name, fields["nodes"], phases, **rest)


def _phase(item: object, number: int) -> tuple[str, float]:
    where = f"phases[{number}]"
    if not isinstance(item, list) or len(item) != 2:
        raise InputError(
            f"{item!r} is not a phase",
            where=where,
            remedy='write ["work", seconds] or ["io", bytes]',
        )
    kind, amount = item
    parse = _PHASES.get(kind) if isinstance(kind, str) else None
    if parse is None:
        raise UnknownNameError("kind of phase", str(kind), _PHASES, where=where)
    return kind, _parsed(parse, amount, where)


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
    return document


def _fields(
    value: object, where: str, required: set[str], optional: set[str]
) -> dict[str, Any]:
    """Return `value` as a dictionary with all the required and no unknown keys."""
    if not isinstance(value, dict):
        raise InputError("not an object", where=where, remedy="write {...}")
    for key in sorted(value.keys() - required - optional):
        raise UnknownNameError("key", key, required | optional, where=where)
    for key in sorted(required - value.keys()):
        raise InputError(f"key {key!r} is missing", where=where, remedy="add it")
    return value


def _parsed(parse: Callable[[object], float], value: object, where: str) -> float:
    with _inside(where):
        return parse(value)


@contextmanager
def _inside(where: str) -> Iterator[None]:
    """Name the place `where` in errors raised by the block."""
    try:
        yield
    except InputError as error:
        raise error.at(where) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
