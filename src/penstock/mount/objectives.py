# SPDX-License-Identifier: MIT
"""What applications are promised, and which request is whose: the file of ``--slo``.

.. code-block:: toml

    scheduler = "two-level"        # or fifo, sfq, edf; "name:key=value,key=value"
    default = "bulk"               # whose all is that no rule fits

    [applications.viz]
    throughput = "10 MB/s"
    latency = "50 ms"

    [applications.bulk]
    throughput = "40 MB/s"
    latency = "1 s"
    mounts = 1                     # its files are spread evenly over so many

    [[rules]]                      # the first that fits decides
    application = "viz"
    program = "paraview*"          # also: job, cgroup, user, path

    [exchange]                     # or: mounts tell one another what they serve
    listen = "0.0.0.0:4713"
    peers = ["node2:4713"]
    key = "/etc/penstock/slo.key"
    threshold = "1 MB"
"""

from __future__ import annotations

import pwd
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from penstock.errors import InputError, UnknownNameError
from penstock.mount.exchange import Link, read_key
from penstock.mount.rules import CONDITIONS, FileOpener, Rule, application_of
from penstock.qos import SchedulerSpec, Slo, get_scheduler
from penstock.units import parse_bandwidth, parse_time, parse_volume

__all__ = ["REST", "Objectives", "objectives_from", "read_document"]

#: Application of what is nobody's.
REST: Final = "other"
#: Most applications: their totals must fit into a datagram.
_MOST: Final = 256
_LONGEST_NAME: Final = 64
Quantity = float | str


class _Application(msgspec.Struct, forbid_unknown_fields=True):
    throughput: Quantity
    latency: Quantity
    mounts: Annotated[int, msgspec.Meta(ge=1)] = 1


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    application: str
    job: str | None = None
    cgroup: str | None = None
    user: int | str | None = None
    path: str | None = None
    program: str | None = None


class _Exchange(msgspec.Struct, forbid_unknown_fields=True):
    listen: str
    peers: list[str]
    key: str
    threshold: Quantity = "1 MB"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    applications: dict[str, _Application]
    scheduler: str = "two-level"
    default: str | None = None
    rules: list[_Rule] = []
    exchange: _Exchange | None = None


@dataclass(frozen=True, slots=True)
class Objectives:
    """What a mount is to do for whom."""

    scheduler: SchedulerSpec
    slos: Mapping[str, Slo]
    default: str
    """Application of what no rule fits; need not have an SLO."""
    rules: tuple[Rule, ...]
    layout: Mapping[str, int]
    """Application -> mounts over which its files are spread evenly, if several."""
    link: Link | None
    """How service at other mounts is told; None: it is not."""
    document: Mapping[str, Any]
    """What it was made of."""

    @property
    def asks_jobs(self) -> bool:
        """Whether a rule is about jobs."""
        return any(rule.job is not None for rule in self.rules)

    def application_of(self, caller: FileOpener) -> str:
        """Return whose a file is that somebody opens."""
        return application_of(caller, self.rules, self.default)

    def present(self, application: str) -> str:
        """Return an application, or the default one if it is no longer there."""
        return application if application in self.slos else self.default


def read_document(path: str) -> dict[str, Any]:
    """Return what a file holds."""
    try:
        with Path(path).open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML: {error}", where=path) from None


def objectives_from(document: Mapping[str, Any]) -> Objectives:
    """Return the objectives of a document, or say what is wrong, and where."""
    try:
        file = msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        raise InputError(
            what, where=place.strip("`.") or "objectives", remedy="see docs: mount"
        ) from None
    slos = _slos(file.applications)
    if file.default is not None:
        _known(file.default, slos, "default")
    return Objectives(
        get_scheduler(file.scheduler),
        slos,
        file.default or REST,
        tuple(_rule(rule, slos, f"rules[{n}]") for n, rule in enumerate(file.rules)),
        _layout(file),
        None if file.exchange is None else _link(file.exchange),
        document,
    )


def _slos(applications: Mapping[str, _Application]) -> dict[str, Slo]:
    if len(applications) > _MOST:
        raise InputError(
            f"{len(applications)} are too many",
            where="applications",
            remedy=f"at most {_MOST}",
        )
    return {name: _slo(name, told) for name, told in applications.items()}


def _slo(name: str, told: _Application) -> Slo:
    where = f"applications.{name}"
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"{name!r} is no name",
            where="applications",
            remedy=f"give 1 to {_LONGEST_NAME} printable characters",
        )
    return Slo(
        _positive(told.throughput, parse_bandwidth, f"{where}.throughput"),
        _positive(told.latency, parse_time, f"{where}.latency"),
    )


def _positive(value: Quantity, parse: Callable[[object], float], where: str) -> float:
    try:
        number = parse(value)
    except InputError as error:
        raise error.at(f"{where}: ") from None
    if number <= 0.0:
        raise InputError(f"{value!r} is not positive", where=where)
    return number


def _known(name: str, slos: Mapping[str, Slo], where: str) -> None:
    if name not in slos:
        raise UnknownNameError("application", name, slos, where=where)


def _rule(told: _Rule, slos: Mapping[str, Slo], where: str) -> Rule:
    _known(told.application, slos, f"{where}.application")
    asked = {name: getattr(told, name) for name in CONDITIONS}
    if all(value is None for value in asked.values()):
        raise InputError(
            "has no condition",
            where=where,
            remedy=f"give {', '.join(CONDITIONS)}, or name it `default`",
        )
    asked["user"] = _user(told.user, f"{where}.user")
    if told.path is not None:
        asked["path"] = "/" + told.path.strip("/")
    return Rule(told.application, **asked)


def _user(told: int | str | None, where: str) -> int | None:
    if told is None or isinstance(told, int):
        return told
    try:
        return pwd.getpwnam(told).pw_uid
    except (KeyError, ValueError):
        raise InputError(f"there is no user {told!r}", where=where) from None


def _layout(file: _File) -> dict[str, int]:
    layout = {
        name: told.mounts for name, told in file.applications.items() if told.mounts > 1
    }
    if layout and file.exchange is not None:
        raise InputError(
            "does not go with `mounts` of an application",
            where="exchange",
            remedy="service elsewhere is inferred or told: leave one out",
        )
    return layout


def _link(told: _Exchange) -> Link:
    threshold = _positive(told.threshold, parse_volume, "exchange.threshold")
    try:
        key = read_key(told.key)
    except InputError as error:
        raise error.at("exchange.key: ") from None
    link = Link(told.listen, tuple(told.peers), key, threshold)
    link.address()
    link.others()
    return link
