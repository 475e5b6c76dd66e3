# SPDX-License-Identifier: MIT
"""Settings of live control, for the file, the environment and the command line.

The fields of `Settings` define all three: the setting `node_bandwidth` is the key
``node_bandwidth`` in a TOML file, the environment variable ``PENSTOCK_NODE_BANDWIDTH``
and the flag ``--node-bandwidth``. A flag overrides the environment, which overrides the
file, which overrides the default. The file is the one that ``--settings`` or
``PENSTOCK_SETTINGS`` names, else the first that exists of
``~/.config/penstock/penstock.toml`` and ``/etc/penstock/penstock.toml``.

Rates and times carry their unit, also in the file: ``bandwidth = 20`` is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError, UnknownNameError
from penstock.live.setting_values import (
    SCHEMAS,
    choice,
    class_pairs,
    duration,
    folders,
    host_and_port,
    one_of,
    plain_text,
    priority_pairs,
    rate_or,
    rates,
    switch,
    tcp_address,
    unlimited_rate,
    volume,
    web_address,
)

__all__ = [
    "LEARN",
    "MEASURE",
    "MODES",
    "Settings",
    "load_settings",
    "misspelt_variables",
    "settings_schema",
    "settings_table",
]

MODES: Final = ("control", "dry-run", "off")
_LOG_FORMATS: Final = ("text", "json")
_LOG_LEVELS: Final = ("debug", "info", "warning", "error")
#: Values of the setting `bandwidth` that are not a rate.
LEARN: Final = "learn"
MEASURE: Final = "measure"
_ENVIRONMENT: Final = "PENSTOCK_"
#: Variables that are not settings, but known as well.
_OTHER_VARIABLES: Final = (
    *("SETTINGS", "DISABLE", "TRACEBACK", "PAGE", "CONTROLLED"),
    *("STAGING", "STAGING_SIZE", "STAGING_WHEN", "STAGING_DURABLE", "STAGING_RULES"),
    *("DRAIN", "DRAIN_CGROUPS", "DRAIN_OF", "DRAIN_PARTS", "DRAIN_USER", "DRAIN_NAMED"),
)
#: How near a name is to a known one if it is taken for a mistake; 1: equal.
_NEAR: Final = 0.8
_SYSTEM: Final = Path("/run/penstock")
_SOCKET: Final = "agent.sock"
_SYSTEM_ARCHIVE: Final = Path("/var/lib/penstock")


def _setting(
    shown: str, parse: Callable[[Any], Any], meaning: str, word: str = ""
) -> Any:
    """Return a field of `Settings`.

    Parameters
    ----------
    shown
        The default, as users write it.
    meaning
        One line for the help text and the documentation.
    word
        Placeholder for the value in the help text; by default the setting's name.
    """
    facts = {"parse": parse, "shown": shown, "meaning": meaning, "word": word}
    return field(default=parse(shown), metadata=facts)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Rates are in bytes/s, times in seconds."""

    policy: str = _setting(
        "fair-share",
        plain_text,
        "policy that shares the bandwidth (`penstock policies` lists them)",
    )
    bandwidth: float | str = _setting(
        LEARN,
        rate_or(LEARN, MEASURE),
        "total bandwidth that all jobs share, also a lone one; `learn`: a lone job is "
        "free, and what several jobs share is learnt from them, for each file system; "
        "`measure`: the same, beginning with the write bandwidth of the first prefix "
        "or of the working directory at the start",
        "RATE|learn|measure",
    )
    node_bandwidth: float = _setting(
        "unlimited", unlimited_rate, "most that one node can draw", "RATE"
    )
    prefixes: tuple[str, ...] = _setting(
        "",
        folders,
        "folders whose files are controlled (a list, or separated by colons); default: "
        "each job's working directory",
        "FOLDER:...",
    )
    mode: str = _setting(
        "control",
        choice(*MODES),
        "`control`: hold up calls that exceed a grant; `dry-run`: only count how long "
        "they would be held up; `off`: neither",
        one_of(*MODES),
    )
    reads: bool = _setting(
        "yes", switch, "whether reads are controlled as well as writes", "yes|no"
    )
    cached_reads: str = _setting(
        "free",
        choice("free", "charged"),
        "`free`: reads that memory serves are neither charged nor held up; `charged`: "
        "they are charged like reads from the storage",
        one_of("free", "charged"),
    )
    absorbed_writes: str = _setting(
        "charged",
        choice("charged", "free"),
        "`free`: writes that memory takes without waiting for the storage are neither "
        "charged nor held up, and what moves later is seen only as time in fsync and "
        "close; `charged`: all writes are charged",
        one_of("charged", "free"),
    )
    lend: bool = _setting(
        "yes",
        switch,
        "whether bandwidth that a job does not use is lent to others",
        "yes|no",
    )
    strategy: str = _setting(
        "none",
        plain_text,
        "strategy that decides which jobs stage their writes and which drain "
        "(`penstock policies` lists them); `none`: no staging",
    )
    priorities: tuple[tuple[str, float], ...] = _setting(
        "",
        priority_pairs,
        "priorities of jobs by their QOS in Slurm (by their partition, if Slurm does "
        "not tell the QOS), for strategies with `flush=priority`; `penstock run "
        "--priority` takes precedence",
        "QOS=NUMBER,...",
    )
    journals: tuple[str, ...] = _setting(
        "",
        folders,
        "folders, with `*` and `?`, in which the agent looks for journals of ended "
        "programs when it starts, to drain them; it always looks in "
        "/dev/shm/penstock-*",
        "FOLDER:...",
    )
    targets: str = _setting(
        "",
        plain_text,
        "storage targets that the strategy assigns to jobs, DRIVER:ROOT:TARGET,...",
    )
    placement: str = _setting(
        "",
        plain_text,
        "algorithms that give each job its `targets` when it joins, "
        "ALLOCATION+PLACEMENT (`penstock policies` lists them); default: a strategy "
        "may divide them",
        "ALLOCATION+PLACEMENT",
    )
    target_bandwidths: tuple[float, ...] = _setting(
        "",
        rates,
        "bandwidth of a job that is alone on 1, 2, ... targets; default: what "
        "`penstock profile` has measured on these `targets`, else not known",
        "RATE,...",
    )
    job_classes: tuple[tuple[str, str], ...] = _setting(
        "",
        class_pairs,
        "how the bandwidth of jobs changes with the number of targets, by the names of "
        "the jobs (with `*` and `?`): `ascent`, `descent`, `peak` or `neutral`; "
        "default: as `target_bandwidths`",
        "PATTERN=CLASS,...",
    )
    job_folder: str = _setting(
        "",
        plain_text,
        "folder of a job, with `{job}` for its name, and `{user}` for the name of its "
        "user (needed above it with `users = all`); new files in it go to the job's "
        "`targets`",
    )
    predict: str = _setting(
        "history",
        choice("history", "ftio"),
        "how to predict the volume of an operation without a hint: from the job's last "
        "operations (`history`), or from its period (`ftio`, package ftio-hpc)",
        one_of("history", "ftio"),
    )
    gap: float = _setting(
        "50 ms",
        duration(0.001, 60.0),
        "time without I/O after which an operation has ended",
        "TIME",
    )
    report: float = _setting(
        "100 ms",
        duration(0.005, 10.0),
        "time between two readings of a job's counters during an operation",
        "TIME",
    )
    lease: float = _setting(
        "3 s",
        duration(0.2, 60.0),
        "how long a grant holds after the last message of the agent or controller",
        "TIME",
    )
    floor: float = _setting(
        "unlimited",
        unlimited_rate,
        "rate that each job may draw when its lease has ended",
        "RATE",
    )
    folder: str = _setting(
        "",
        plain_text,
        "folder of the socket, the pages and the state; default: /run/penstock for "
        "root, else $XDG_RUNTIME_DIR/penstock or /tmp/penstock-UID",
    )
    users: str = _setting(
        "own",
        choice("own", "all"),
        "whose jobs are controlled: those of the `own` user, or of `all` users",
        one_of("own", "all"),
    )
    listen: str = _setting(
        "",
        tcp_address,
        "address at which the controller accepts agents of other nodes, tcp://HOST:PORT",
        "ADDRESS",
    )
    join: str = _setting(
        "",
        tcp_address,
        "run only an agent, of the controller at this address, tcp://HOST:PORT",
        "ADDRESS",
    )
    keys: str = _setting(
        "",
        plain_text,
        "folder of the keys for `listen` and `join`; default: FOLDER/keys",
        "FOLDER",
    )
    node: str = _setting(
        "", plain_text, "name of this node; default: the host name", "NAME"
    )
    metrics: str = _setting(
        "",
        host_and_port,
        "where Prometheus, or another USER, can read metrics; default: no metrics",
        "[USER@]HOST:PORT",
    )
    web: str = _setting(
        "",
        web_address,
        "HOST:PORT at which a browser shows live control, without `web_token` only on "
        "this machine, e.g. 127.0.0.1:9480; or unix:/PATH, for a web server; default: "
        "no page",
        "HOST:PORT|unix:/PATH",
    )
    web_token: str = _setting(
        "",
        plain_text,
        "file with the tokens of those who may look at the page, made by `penstock "
        "serve --make-web-token USER`",
        "FILE",
    )
    web_proxy: str = _setting(
        "",
        plain_text,
        "user as whom a web server on this machine runs that forwards requests to the "
        "page, and names the reader in the header X-Remote-User",
        "USER",
    )
    state: str = _setting(
        "",
        plain_text,
        "file for the histories of jobs; default: FOLDER/history.sqlite",
        "FILE",
    )
    history_age: float = _setting(
        "30 d",
        duration(3600.0, 1e10),
        "how long the volumes and times of a job's operations are remembered for its "
        "next run under the same name, for the last 2,000 names of each user and "
        "10,000 in all; its age and lost time: for one hour",
        "TIME",
    )
    archive: str = _setting(
        "",
        plain_text,
        "folder that keeps what jobs did, for `penstock history` and `report`; `none`: "
        "keep nothing; default: FOLDER/archive if `folder` is set, /var/lib/penstock "
        "for root, else $XDG_STATE_HOME/penstock or ~/.local/state/penstock",
        "FOLDER",
    )
    archive_age: float = _setting(
        "90 d",
        duration(60.0, 1e10),
        "how long the archive keeps what jobs did",
        "TIME",
    )
    archive_size: float = _setting(
        "1 GB",
        volume,
        "largest size of the archive's database, and again of its Parquet files (so "
        "twice this in all); users with most records lose their oldest",
        "VOLUME",
    )
    log_format: str = _setting(
        "text",
        choice(*_LOG_FORMATS),
        "form of the log: lines of `text`, or one object of `json` per line",
        one_of(*_LOG_FORMATS),
    )
    log_level: str = _setting(
        "info",
        choice(*_LOG_LEVELS),
        "the least important messages in the log",
        one_of(*_LOG_LEVELS),
    )
    linger: float = _setting(
        "0 s",
        duration(0.0, 1e9),
        "stop when there was no job for this long; 0: never",
        "TIME",
    )

    @property
    def home(self) -> Path:
        """Folder of the socket, the pages and the state."""
        if self.folder:
            return Path(self.folder)
        if os.geteuid() == 0:
            return _SYSTEM
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        if runtime:
            return Path(runtime) / "penstock"
        # Others can make it: see `own_folder` and `Client`.
        return Path(f"/tmp/penstock-{os.geteuid()}")  # noqa: S108

    @property
    def state_file(self) -> Path:
        """File for the histories of jobs; what else is learnt is kept beside it."""
        return Path(self.state or self.home / "history.sqlite")

    @property
    def profiles_file(self) -> Path:
        """File for the bandwidths on targets that `penstock profile` has measured."""
        return self.state_file.with_name(f"{self.state_file.stem}-targets.json")

    @property
    def acts_file(self) -> Path:
        """File for what operators change on the web page."""
        return self.state_file.with_name(f"{self.state_file.stem}-acts.json")

    @property
    def archive_folder(self) -> Path | None:
        """Folder that keeps what jobs did; None: nothing is kept."""
        if self.archive:
            return None if self.archive == "none" else Path(self.archive)
        # `penstock run` names the default folder to the daemon that it starts.
        if self.folder and Path(self.folder) != Settings().home:
            return Path(self.folder) / "archive"
        if os.geteuid() == 0:
            return _SYSTEM_ARCHIVE
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(state) / "penstock"

    @property
    def socket(self) -> Path:
        """Socket of the agent that uses this folder."""
        return self.home / _SOCKET

    @property
    def client_socket(self) -> Path:
        """Socket that programs use: that of the system's agent, if there is one."""
        system = _SYSTEM / _SOCKET
        # False also if the folder is not open to this user; Path.exists would raise.
        is_there = os.path.exists(system)  # noqa: PTH110
        return system if not self.folder and is_there else self.socket


def load_settings(
    flags: Mapping[str, str | None],
    environment: Mapping[str, str] | None = None,
    file: str | None = None,
) -> Settings:
    """Return the settings from flags, environment and file; see the module."""
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


def misspelt_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that look like misspelt ones of penstock, with the right names.

    RATIONALE: unknown names that are not near to a known one are ignored. Sites define
    variables such as PENSTOCK_ROOT for where they have installed penstock.
    """
    words = [name.upper() for name in _by_name()] + list(_OTHER_VARIABLES)
    known = {_ENVIRONMENT + word for word in words}
    found = {}
    for name in environment:
        word = name.upper().removeprefix(_ENVIRONMENT)
        if name in known or word == name.upper():
            continue
        if near := get_close_matches(word, words, n=1, cutoff=_NEAR):
            found[name] = _ENVIRONMENT + near[0]
    return found


def settings_table() -> list[tuple[str, str, str, str]]:
    """Return name, default, meaning and placeholder of every setting."""
    facts = ("shown", "meaning", "word")
    return [
        (name, *(item.metadata[fact] for fact in facts))
        for name, item in _by_name().items()
    ]


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file, from the parsers of the settings."""
    return {
        "title": "Settings",
        "description": "Settings of live control (TOML).",
        "type": "object",
        "properties": {
            name: {
                "description": item.metadata["meaning"],
                "default": item.metadata["shown"],
                **SCHEMAS[item.metadata["parse"]],
            }
            for name, item in _by_name().items()
        },
        "additionalProperties": False,
    }


def _by_name() -> dict[str, Any]:
    return {item.name: item for item in fields(Settings)}


def _parsed(values: Mapping[str, Any], place: Callable[[str], str]) -> dict[str, Any]:
    known = _by_name()
    parsed = {}
    for key, value in values.items():
        if isinstance(value, dict):
            raise InputError(
                "this file has no sections",
                where=place(f"[{key}]"),
                remedy=f"remove the line [{key}]: all settings stand side by side",
            )
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
    import tomllib  # noqa: PLC0415 - to start fast: most users have no file

    try:
        with Path(path).open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=path, remedy="check --settings"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"is not TOML: {error}", where=path, remedy="correct the syntax of the file"
        ) from None
