# SPDX-License-Identifier: MIT
"""Settings of live control: one table, from which file, environment and flags follow.

A setting `node_bandwidth` is a key ``node_bandwidth`` in a TOML file, an environment
variable ``PENSTOCK_NODE_BANDWIDTH`` and a flag ``--node-bandwidth``. A flag beats the
environment, which beats the file, which beats the default. The file is the one that
``--settings`` or ``PENSTOCK_SETTINGS`` names, else the first that exists of
``~/.config/penstock/penstock.toml`` and ``/etc/penstock/penstock.toml``.

Rates and times that are texts carry their unit; numbers of the file are bytes/s and
seconds.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError, UnknownNameError
from penstock.units import parse_bandwidth, parse_time

__all__ = ["MODES", "Settings", "load_settings", "settings_table"]

MODES: Final = ("control", "dry-run", "off")
_ENVIRONMENT: Final = "PENSTOCK_"
_SYSTEM: Final = Path("/run/penstock")
_SOCKET: Final = "agent.sock"
_ADDRESS: Final = re.compile(r"tcp://[^\s/]+:([0-9]{1,5})")
_LAST_PORT: Final = 65535


def _choice(*words: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in words:
            raise UnknownNameError("value", str(value), words)
        return str(value)

    return parse


def _one_of(*words: str) -> str:
    return f"{{{','.join(words)}}}"


def _rate(value: Any) -> float:
    rate = parse_bandwidth(value)
    if rate <= 0.0:
        raise InputError(f"{value!r} is not a positive bandwidth")
    return rate


def _measured_rate(value: Any) -> float:
    return 0.0 if value == "measure" else _rate(value)


def _unlimited_rate(value: Any) -> float:
    return math.inf if value == "unlimited" else _rate(value)


def _duration(low: float, high: float) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        duration = parse_time(value)
        if not low <= duration <= high:
            raise InputError(
                f"{value!r} is out of range", remedy=f"give {low:g} to {high:g} seconds"
            )
        return duration

    return parse


def _switch(value: Any) -> bool:
    words = {"yes": True, "no": False, "true": True, "false": False}
    if isinstance(value, bool):
        return value
    if value not in words:
        raise InputError(f"{value!r} is not yes or no", remedy="write yes or no")
    return words[value]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{value!r} is not a text")
    return value


def _address(value: Any) -> str:
    """Return tcp://HOST:PORT; no such address: an empty text."""
    text = _text(value)
    found = _ADDRESS.fullmatch(text)
    if text and not (found and 1 <= int(found[1]) <= _LAST_PORT):
        raise InputError(
            f"{text!r} is not an address",
            remedy=f"write tcp://HOST:PORT, the port 1 to {_LAST_PORT}",
        )
    return text


def _folders(value: Any) -> tuple[str, ...]:
    """Return absolute folders, from a list or separated by colons."""
    parts = value.split(":") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(p, str) for p in parts):
        raise InputError(f"{value!r} is not a list of folders")
    for part in filter(None, parts):
        if not part.startswith("/") or ":" in part:
            raise InputError(
                f"{part!r} is not an absolute path", remedy="without any colon"
            )
    return tuple(filter(None, parts))


def _setting(
    shown: str, parse: Callable[[Any], Any], meaning: str, word: str = ""
) -> Any:
    """Return a field; `word` stands for its value where flags are listed."""
    facts = {"parse": parse, "shown": shown, "meaning": meaning, "word": word}
    return field(default=parse(shown), metadata=facts)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Rates in bytes/s, times in seconds."""

    policy: str = _setting("fair-share", _text, "the policy that decides")
    bandwidth: float = _setting(
        "measure",
        _measured_rate,
        "B, what all jobs together may draw; `measure`: what a short test writes to "
        "the first prefix, or to the working directory",
        "RATE",
    )
    node_bandwidth: float = _setting(
        "unlimited", _unlimited_rate, "b, what one node can draw", "RATE"
    )
    prefixes: tuple[str, ...] = _setting(
        "",
        _folders,
        "folders whose files are controlled (a list, or separated by colons); none: "
        "each job's working directory",
        "FOLDER:...",
    )
    mode: str = _setting(
        "control",
        _choice(*MODES),
        "`control`; `dry-run`: count the waits but do not wait; `off`",
        _one_of(*MODES),
    )
    reads: bool = _setting(
        "yes", _switch, "whether reads draw on the bandwidth, too", "yes|no"
    )
    lend: bool = _setting(
        "yes", _switch, "whether what a job does not use is lent to others", "yes|no"
    )
    strategy: str = _setting(
        "none",
        _text,
        "the strategy that decides who stages writes and who drains (`penstock "
        "policies` lists them); `none`: nobody stages",
    )
    journals: tuple[str, ...] = _setting(
        "",
        _folders,
        "folders of journals, with `*` and `?`, that may hold what programs have left "
        "behind, besides /dev/shm/penstock-*: drained when the agent starts",
        "FOLDER:...",
    )
    targets: str = _setting(
        "",
        _text,
        "storage targets that the strategy may give out, DRIVER:ROOT:TARGET,...: only "
        "with `users = own`",
    )
    job_folder: str = _setting(
        "",
        _text,
        "the folder of a job, with `{job}` for its name, whose new files go to the "
        "job's targets",
    )
    predict: str = _setting(
        "history",
        _choice("history", "ftio"),
        "volumes that nobody says: from the `history` of the job, or by the period "
        "that `ftio` detects (package ftio-hpc)",
        _one_of("history", "ftio"),
    )
    gap: float = _setting(
        "50 ms",
        _duration(0.001, 60.0),
        "time without I/O that ends an operation",
        "TIME",
    )
    report: float = _setting(
        "100 ms",
        _duration(0.005, 10.0),
        "time between two looks at the counters",
        "TIME",
    )
    lease: float = _setting(
        "3 s",
        _duration(0.2, 60.0),
        "how long a grant holds when its agent or controller falls silent",
        "TIME",
    )
    floor: float = _setting(
        "unlimited", _unlimited_rate, "what a job may draw afterwards", "RATE"
    )
    folder: str = _setting(
        "",
        _text,
        "folder of socket, pages and state; default: /run/penstock for root, else "
        "$XDG_RUNTIME_DIR/penstock or /tmp/penstock-UID",
    )
    users: str = _setting(
        "own",
        _choice("own", "all"),
        "who may be controlled: `own` user or `all`",
        _one_of("own", "all"),
    )
    listen: str = _setting(
        "",
        _address,
        "address at which agents find the controller, tcp://HOST:PORT",
        "ADDRESS",
    )
    join: str = _setting(
        "",
        _address,
        "be the agent of the controller at this address, tcp://HOST:PORT",
        "ADDRESS",
    )
    keys: str = _setting(
        "",
        _text,
        "folder of the keys for `listen` and `join`; default: FOLDER/keys",
        "FOLDER",
    )
    node: str = _setting("", _text, "name of this node; default: the host name", "NAME")
    metrics: str = _setting(
        "",
        _text,
        "HOST:PORT at which Prometheus may read; none: not at all",
        "HOST:PORT",
    )
    state: str = _setting(
        "", _text, "file of the jobs' history; default: FOLDER/history.sqlite", "FILE"
    )
    linger: float = _setting(
        "0 s",
        _duration(0.0, 1e9),
        "end when there was no job for this long; 0: stay",
        "TIME",
    )

    @property
    def home(self) -> Path:
        """Folder of socket, pages and state."""
        if self.folder:
            return Path(self.folder)
        if os.geteuid() == 0:
            return _SYSTEM
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        if runtime:
            return Path(runtime) / "penstock"
        return Path(f"/tmp/penstock-{os.geteuid()}")  # noqa: S108 - mode 0700, checked

    @property
    def socket(self) -> Path:
        """Where the agent of this folder listens."""
        return self.home / _SOCKET

    @property
    def found_socket(self) -> Path:
        """Where programs find an agent: the one of the system, if there is one."""
        system = _SYSTEM / _SOCKET
        return system if not self.folder and system.exists() else self.socket


def load_settings(
    flags: Mapping[str, str | None],
    environment: Mapping[str, str] | None = None,
    file: str | None = None,
) -> Settings:
    """Return the settings that flags, environment and file make."""
    environment = os.environ if environment is None else environment
    path = file or environment.get(f"{_ENVIRONMENT}SETTINGS")
    values = _parsed(_from_file(path), lambda key: f"{path or _existing()}: {key}")
    variables = {
        key: environment[name]
        for key in _by_name()
        if (name := _ENVIRONMENT + key.upper()) in environment
    }
    values |= _parsed(variables, lambda key: _ENVIRONMENT + key.upper())
    given = {key: value for key, value in flags.items() if value is not None}
    values |= _parsed(given, lambda key: f"--{key.replace('_', '-')}")
    return Settings(**values)


def settings_table() -> list[tuple[str, str, str, str]]:
    """Return name, default and meaning of every setting, and a word for its value."""
    facts = ("shown", "meaning", "word")
    return [
        (name, *(item.metadata[fact] for fact in facts))
        for name, item in _by_name().items()
    ]


def _by_name() -> dict[str, Any]:
    return {item.name: item for item in fields(Settings)}


def _parsed(values: Mapping[str, Any], place: Callable[[str], str]) -> dict[str, Any]:
    known = _by_name()
    parsed = {}
    for key, value in values.items():
        if key not in known:
            raise UnknownNameError("setting", key, known, where=place(key))
        try:
            parsed[key] = known[key].metadata["parse"](value)
        except InputError as error:
            raise error.at(f"{place(key)}: ") from None
    return parsed


def _existing() -> str | None:
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    for folder in (Path(base).expanduser(), Path("/etc")):
        path = folder / "penstock" / "penstock.toml"
        if path.is_file():
            return str(path)
    return None


def _from_file(path: str | None) -> dict[str, Any]:
    path = path or _existing()
    if path is None:
        return {}
    try:
        with Path(path).open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=path, remedy="check --settings"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"is not TOML: {error}", where=path, remedy="mend the file's syntax"
        ) from None
