# SPDX-License-Identifier: MIT
"""The file of ``--slo``: SLOs of applications, and rules that assign files to them.

.. code-block:: toml

    scheduler = "two-level"        # or fifo, sfq, edf; "name:key=value,key=value"
    default = "bulk"               # application of files that match no rule
    metadata_depth = 8             # metadata requests at the storage at once

    [applications.viz]
    throughput = "10 MB/s"
    latency = "50 ms"

    [applications.bulk]
    throughput = "40 MB/s"
    latency = "1 s"
    mounts = 1                     # number of mounts that hold its files evenly; or
                                   # "auto": ask the file system
    bandwidth = "80 MB/s"          # limit of its reads and writes together
    operations = "1000/s"          # limit of its metadata requests

    [[rules]]                      # the first match decides
    application = "viz"
    program = "paraview*"          # also: job, cgroup, slurm_job, user, group, path

    [exchange]                     # or: a penstock serve shares storages among mounts
    controller = "tcp://node1:4713"
    keys = "/etc/penstock/keys"
    storage = "scratch"            # mounts that name the same storage share it
"""

from __future__ import annotations

import grp
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from penstock.errors import InputError, UnknownNameError, plain_mismatch
from penstock.live.wire.identity import user_id
from penstock.mount.exchange import ExchangeSettings
from penstock.mount.rules import CONDITIONS, Rule
from penstock.mount.striping import targets_of
from penstock.qos import SchedulerSpec, Slo, get_scheduler
from penstock.units import parse_bandwidth, parse_time

__all__ = [
    "OTHER",
    "ExchangeFormat",
    "ObjectiveFormat",
    "Quantity",
    "RuleFormat",
    "SloFormat",
    "SloSettings",
    "read_document",
    "slo_settings_from",
]

#: Application of files that match no rule, if the file names no default.
OTHER: Final = "other"
#: Reports hold the totals of all applications.
_MAX_APPLICATIONS: Final = 256
_MAX_NAME_LENGTH: Final = 64
#: Metadata requests at the storage at once, unless the file says more or less.
_METADATA_DEPTH: Final = 8
#: Fewer than the threads for them: an operation that hangs keeps its thread.
_MAX_METADATA_DEPTH: Final = 32
#: What msgspec says of a key that the file must not have.
_UNKNOWN_KEY: Final = re.compile(r"Object contains unknown field `(.*)`")
Quantity = float | str


class ObjectiveFormat(msgspec.Struct, forbid_unknown_fields=True):
    """The SLO of an application."""

    throughput: Quantity
    latency: Quantity
    mounts: Annotated[int, msgspec.Meta(ge=1)] | Literal["auto"] = 1
    bandwidth: Quantity | None = None
    operations: Quantity | None = None


class RuleFormat(msgspec.Struct, forbid_unknown_fields=True):
    """A rule that assigns files to an application."""

    application: str
    job: str | None = None
    cgroup: str | None = None
    slurm_job: int | str | None = None
    user: int | str | None = None
    group: int | str | None = None
    path: str | None = None
    program: str | None = None


class ExchangeFormat(msgspec.Struct, forbid_unknown_fields=True):
    """The controller that shares storages among mounts."""

    controller: str
    keys: str
    storage: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class SloFormat(msgspec.Struct, forbid_unknown_fields=True):
    """The file of ``penstock mount --slo`` (TOML)."""

    applications: dict[str, ObjectiveFormat]
    scheduler: str = "two-level"
    default: str | None = None
    rules: list[RuleFormat] = []
    exchange: ExchangeFormat | None = None
    metadata_depth: Annotated[int, msgspec.Meta(ge=1, le=_MAX_METADATA_DEPTH)] = (
        _METADATA_DEPTH
    )


@dataclass(frozen=True, slots=True)
class SloSettings:
    """The checked content of the file of ``--slo``."""

    scheduler: SchedulerSpec
    slos: Mapping[str, Slo]
    default: str
    """Application of files that match no rule; it need not have an SLO."""
    rules: tuple[Rule, ...]
    layout: Mapping[str, int]
    """Application -> number of mounts that hold its files evenly, if more than 1."""
    caps: Mapping[str, float]
    """Application -> limit of its reads and writes (bytes/s), if it has one."""
    operations: Mapping[str, float]
    """Application -> limit of its metadata requests (1/s), if it has one."""
    exchange: ExchangeSettings | None
    """The controller that shares storages among mounts; None: no reports."""
    metadata_depth: int
    """Metadata requests at the storage at once."""
    document: Mapping[str, Any]
    """The file as it was read."""
    backing: str
    """The folder that is mounted."""

    def has_condition(self, *conditions: str) -> bool:
        """Return True if a rule has one of these conditions."""
        return any(
            getattr(rule, name) is not None
            for rule in self.rules
            for name in conditions
        )


def read_document(path: str) -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        with Path(path).open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not a TOML file: {error}", where=path) from None


def slo_settings_from(document: Mapping[str, Any], backing: str = "") -> SloSettings:
    """Return the settings in a document; raise `InputError` that names the place.

    `backing` is the folder that is mounted.
    """
    try:
        file = msgspec.convert(document, SloFormat)
    except msgspec.ValidationError as error:
        raise _mismatch(str(error)) from None
    slos = _slos(file.applications)
    if file.default is not None:
        _check_known(file.default, slos, "default")
    return SloSettings(
        get_scheduler(file.scheduler),
        slos,
        file.default or OTHER,
        tuple(_rule(rule, slos, f"rules[{n}]") for n, rule in enumerate(file.rules)),
        _layout(file, backing),
        _caps(file.applications, slos),
        _operations(file.applications),
        None if file.exchange is None else _exchange(file.exchange),
        file.metadata_depth,
        document,
        backing,
    )


def _mismatch(text: str) -> InputError:
    """Return the error for a document that is not as expected, in plain words."""
    what, _, place = text.partition(" - at `$")
    where = place.strip("`.") or "slo"
    kinds = {
        ".applications": ObjectiveFormat,
        ".rules": RuleFormat,
        ".exchange": ExchangeFormat,
    }
    kind = next((kinds[name] for name in kinds if place.startswith(name)), SloFormat)
    keys = kind.__struct_fields__
    if unknown := _UNKNOWN_KEY.fullmatch(what):
        return UnknownNameError("key", unknown[1], keys, where=where)
    return InputError(
        plain_mismatch(what),
        where=where,
        remedy=f"known keys here: {', '.join(keys)}; see docs/how-to/mount.md",
    )


def _slos(applications: Mapping[str, ObjectiveFormat]) -> dict[str, Slo]:
    if len(applications) > _MAX_APPLICATIONS:
        raise InputError(
            f"{len(applications)} applications are too many",
            where="applications",
            remedy=f"name at most {_MAX_APPLICATIONS}",
        )
    return {name: _slo(name, entry) for name, entry in applications.items()}


def _slo(name: str, entry: ObjectiveFormat) -> Slo:
    where = f"applications.{name}"
    if not 0 < len(name) <= _MAX_NAME_LENGTH or not name.isprintable():
        raise InputError(
            f"{name!r} is not a valid name",
            where="applications",
            remedy=f"give 1 to {_MAX_NAME_LENGTH} printable characters",
        )
    return Slo(
        _positive(entry.throughput, parse_bandwidth, f"{where}.throughput"),
        _positive(entry.latency, parse_time, f"{where}.latency"),
    )


def _positive(value: Quantity, parse: Callable[[object], float], where: str) -> float:
    """Return a positive quantity; raise `InputError` that names the place."""
    try:
        number = parse(value)
    except InputError as error:
        raise error.at(f"{where}: ") from None
    if number <= 0.0:
        raise InputError(
            f"{value!r} is not positive", where=where, remedy="give more than 0"
        )
    return number


def _check_known(name: str, slos: Mapping[str, Slo], where: str) -> None:
    if name not in slos:
        raise UnknownNameError("application", name, slos, where=where)


def _rule(entry: RuleFormat, slos: Mapping[str, Slo], where: str) -> Rule:
    _check_known(entry.application, slos, f"{where}.application")
    conditions = {name: getattr(entry, name) for name in CONDITIONS}
    if all(value is None for value in conditions.values()):
        raise InputError(
            "the rule has no condition",
            where=where,
            remedy=f"give one of {', '.join(CONDITIONS)}, or set `default` instead",
        )
    if entry.slurm_job is not None:
        conditions["slurm_job"] = str(entry.slurm_job)
    conditions["user"] = _user(entry.user, f"{where}.user")
    conditions["group"] = _group(entry.group, f"{where}.group")
    if entry.path is not None:
        conditions["path"] = _path(entry.path, f"{where}.path")
    return Rule(entry.application, **conditions)


def _path(path: str, where: str) -> str:
    """Return a path below the mount point, in the form that the kernel gives files."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        raise InputError(
            f"{path!r} is not a path below the mount point: it contains ..",
            where=where,
            remedy="give a path relative to the mount point, e.g. /results",
        )
    return "/" + "/".join(names)


def _user(user: int | str | None, where: str) -> int | None:
    """Return the number of a user."""
    if user is None or isinstance(user, int):
        return user
    number = user_id(user)
    if number is None:
        raise InputError(
            f"there is no user {user!r}", where=where, remedy="give a name or a number"
        )
    return number


def _group(group: int | str | None, where: str) -> int | None:
    """Return the number of a group."""
    if group is None or isinstance(group, int):
        return group
    try:
        return grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):
        raise InputError(
            f"there is no group {group!r}",
            where=where,
            remedy="give a name or a number",
        ) from None


def _layout(file: SloFormat, backing: str) -> dict[str, int]:
    counts = {
        name: _targets(name, file.rules, backing) if count == "auto" else count
        for name, count in ((n, entry.mounts) for n, entry in file.applications.items())
    }
    layout = {name: count for name, count in counts.items() if count > 1}
    if layout and file.exchange is not None:
        raise InputError(
            "cannot be combined with `mounts` of an application",
            where="exchange",
            remedy="remove one: service at other mounts is reported or inferred",
        )
    return layout


def _targets(application: str, rules: Sequence[RuleFormat], backing: str) -> int:
    """Return over how many targets the folder of an application is striped."""
    where = f"applications.{application}.mounts: "
    paths = (r.path for r in rules if r.application == application and r.path)
    path = next(paths, None)
    if path is None:
        raise InputError(
            "no rule says which folder belongs to it",
            where=where.removesuffix(": "),
            remedy="give a rule with `path`, or a number of mounts",
        )
    try:
        return targets_of(Path(backing, path.strip("/")))
    except InputError as error:
        raise error.at(where) from None
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", where=where.removesuffix(": ")
        ) from None


def _caps(
    applications: Mapping[str, ObjectiveFormat], slos: Mapping[str, Slo]
) -> dict[str, float]:
    caps = {}
    for name, entry in applications.items():
        if entry.bandwidth is not None:
            where = f"applications.{name}.bandwidth"
            caps[name] = _positive(entry.bandwidth, parse_bandwidth, where)
            if caps[name] < slos[name].throughput_bytes_per_s:
                raise InputError(
                    f"{entry.bandwidth!r} is less than the promised throughput",
                    where=where,
                    remedy="give at least `throughput`, or promise less",
                )
    return caps


def _operations(applications: Mapping[str, ObjectiveFormat]) -> dict[str, float]:
    return {
        name: _positive(
            entry.operations, _parse_frequency, f"applications.{name}.operations"
        )
        for name, entry in applications.items()
        if entry.operations is not None
    }


def _parse_frequency(value: object) -> float:
    """Return a number per second; ``"1000/s"`` or a bare number."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("/s"))
    except ValueError:
        number = nan
    if not isfinite(number):
        raise InputError(f"{value!r} is not a rate", remedy='write e.g. "1000/s"')
    return number


def _exchange(entry: ExchangeFormat) -> ExchangeSettings:
    """Return the exchange settings; check the keys and the address."""
    from penstock.live.wire.curve import check_client  # noqa: PLC0415 - needs ZeroMQ

    try:
        check_client(Path(entry.keys), entry.controller)
    except InputError as error:
        raise error.at("exchange: ") from None
    return ExchangeSettings(entry.controller, Path(entry.keys), entry.storage)
