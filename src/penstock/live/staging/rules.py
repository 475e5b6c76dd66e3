# SPDX-License-Identifier: MIT
"""What is staged, where, and what fsync and close promise: for the preload library.

The library reads it from the environment (``native/stage/stage_settings.c``), so that
staging
works with any program and without a controller.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.errors import InputError, UnknownNameError
from penstock.units import parse_volume

__all__ = ["Staging"]

#: What the library has room for.
_TEXT_BYTES: Final = 1024
_LEAST_BYTES: Final = 64 << 10
_DURABLE: Final = ("file", "journal")
_IN_MEMORY: Final = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Staging:
    """How writes are staged.

    Parameters
    ----------
    folder
        Where the journals are, in memory or on a local disk; made if it is not there.
    capacity_bytes
        What the journal of one file may hold; beyond it writes drain first.
    always
        Whatever the page says; otherwise while the page says so.
    durable
        ``"file"``: fsync and close wait until all is in the file. ``"journal"``: until
        it is in the journal, on storage that survives the machine.
    rules
        Patterns of paths, with ``*`` and ``?``; one that begins with ``-`` says that
        such files are not staged. The first that matches decides; if none does, a file
        is staged. A pattern without a slash is for the last part of a path.
    """

    folder: Path
    capacity_bytes: int = 256 << 20
    always: bool = True
    durable: str = "file"
    rules: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.durable not in _DURABLE:
            raise UnknownNameError("durability", self.durable, _DURABLE)
        if self.capacity_bytes < _LEAST_BYTES:
            raise InputError(
                f"a journal of {self.capacity_bytes} bytes",
                remedy=f"give at least {_LEAST_BYTES}",
            )
        if not self.folder.is_absolute() or ":" in str(self.folder):
            raise InputError("not an absolute path", where=str(self.folder))
        for rule in self.rules:
            if ":" in rule or not rule.removeprefix("-"):
                raise InputError(f"{rule!r} is no rule", remedy="write [-]PATTERN")
        for text in (str(self.folder), ":".join(self.rules)):
            if len(os.fsencode(text)) >= _TEXT_BYTES:
                raise InputError(f"more than {_TEXT_BYTES} bytes", where=text[:40])

    def prepare(self) -> None:
        """Make the folder, for this user alone, and refuse one that cannot serve."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.folder.stat()
        except OSError as error:
            raise InputError(
                f"no folder for journals: {error.strerror}", where=str(self.folder)
            ) from error
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise InputError(
                "others can write this folder: a journal says what is written where",
                where=str(self.folder),
                remedy="give a folder of yours, or chmod 700 it",
            )
        if self.durable == "journal" and _file_system(self.folder) in _IN_MEMORY:
            raise InputError(
                "a journal in memory does not survive the machine",
                where=str(self.folder),
                remedy='give a folder on a local disk, or durable = "file"',
            )

    def environment(self) -> dict[str, str]:
        """Return the variables that the library reads."""
        return {
            "PENSTOCK_STAGING": str(self.folder),
            "PENSTOCK_STAGING_SIZE": str(self.capacity_bytes),
            "PENSTOCK_STAGING_WHEN": "always" if self.always else "granted",
            "PENSTOCK_STAGING_DURABLE": self.durable,
            "PENSTOCK_STAGING_RULES": ":".join(self.rules),
        }

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Staging | None:
        """Return what an environment says, or None: nothing is staged."""
        folder = environment.get("PENSTOCK_STAGING")
        if not folder:
            return None
        rules = environment.get("PENSTOCK_STAGING_RULES", "")
        size = environment.get("PENSTOCK_STAGING_SIZE")
        return cls(
            Path(folder),
            _bytes_of(size) if size else cls.capacity_bytes,
            always=environment.get("PENSTOCK_STAGING_WHEN") == "always",
            durable=environment.get("PENSTOCK_STAGING_DURABLE") or "file",
            rules=tuple(filter(None, rules.split(":"))),
        )


def _bytes_of(size: str) -> int:
    try:
        return int(parse_volume(size, bare=True))
    except InputError as error:
        raise error.at("PENSTOCK_STAGING_SIZE: ") from None


def _file_system(folder: Path) -> str:
    """Return the type of the file system that a folder is on; empty: not known."""
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    real = str(folder.resolve())
    for line in lines:
        _, place, name, *_ = line.split(" ")
        inside = real == place or real.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, kind = place, name
    return kind
