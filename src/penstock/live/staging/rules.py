# SPDX-License-Identifier: MIT
"""Settings of staging, for the preload library.

The library reads them from the environment (``native/stage/stage_settings.c``), so that
staging works with any program and without a controller.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.errors import InputError, UnknownNameError
from penstock.kernel_text import MOUNT_TABLE, mount_table
from penstock.live.wire.folder import own_folder
from penstock.units import parse_volume

__all__ = ["Staging"]

#: Room that the library has for a folder, or for all rules.
_TEXT_BYTES: Final = 1024
_LEAST_BYTES: Final = 64 << 10
#: When writes are staged. The library takes any other word for `_GRANTED`.
_ALWAYS: Final = "always"
_GRANTED: Final = "granted"
_DURABLE: Final = ("file", "journal")
_IN_MEMORY: Final = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Staging:
    """How writes are staged.

    Parameters
    ----------
    folder
        Folder of the journals, in memory or on a local disk; made if it does not exist
        (but not the folders above it).
    capacity_bytes
        Capacity of the journal of one file. A write that does not fit drains first.
    always
        True: stage at any time. False: only while the page of the job says so.
    durable
        When fsync and close return: ``"file"``: all data are in the file.
        ``"journal"``: all data are in the journal, on storage that survives the
        machine.
    rules
        Patterns of paths, with ``*`` and ``?``. The first that matches decides: the
        file is staged, or not if the pattern begins with ``-``. A file that matches
        none is staged. A pattern without a slash is compared with the last part of the
        path.
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
            raise InputError(
                "not an absolute path",
                where=str(self.folder),
                remedy="begin the path with /, and use no colon in it",
            )
        for rule in self.rules:
            if ":" in rule or not rule.removeprefix("-"):
                raise InputError(f"{rule!r} is not a rule", remedy="write [-]PATTERN")
        for text in (str(self.folder), ":".join(self.rules)):
            if len(os.fsencode(text)) >= _TEXT_BYTES:
                raise InputError(
                    f"more than {_TEXT_BYTES} bytes",
                    where=text[:40],
                    remedy="give a shorter path or fewer rules",
                )

    def prepare(self) -> None:
        """Make the folder, for this user alone.

        Raises `InputError` if the folder cannot be used for journals.
        """
        try:
            # Not the folders above: they would hide a mistake in the path.
            own_folder(self.folder, parents=False)
        except InputError as error:
            raise InputError(
                f"the folder of the journals {error.what}",
                where=error.where,
                remedy="give a folder of yours, or chmod 700 it",
            ) from None
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
            "PENSTOCK_STAGING_WHEN": _ALWAYS if self.always else _GRANTED,
            "PENSTOCK_STAGING_DURABLE": self.durable,
            "PENSTOCK_STAGING_RULES": ":".join(self.rules),
        }

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Staging | None:
        """Return the settings in an environment; None if nothing is staged."""
        folder = environment.get("PENSTOCK_STAGING")
        if not folder:
            return None
        rules = environment.get("PENSTOCK_STAGING_RULES", "")
        size = environment.get("PENSTOCK_STAGING_SIZE")
        return cls(
            Path(folder),
            _bytes_of(size) if size else cls.capacity_bytes,
            always=_is_always(environment.get("PENSTOCK_STAGING_WHEN") or _GRANTED),
            durable=environment.get("PENSTOCK_STAGING_DURABLE") or "file",
            rules=tuple(filter(None, rules.split(":"))),
        )


def _is_always(when: str) -> bool:
    if when not in (_ALWAYS, _GRANTED):
        known = (_ALWAYS, _GRANTED)
        raise UnknownNameError("value", when, known, where="PENSTOCK_STAGING_WHEN")
    return when == _ALWAYS


def _bytes_of(size: str) -> int:
    try:
        return int(parse_volume(size, bare=True))
    except InputError as error:
        raise error.at("PENSTOCK_STAGING_SIZE: ") from None


def _file_system(folder: Path, mounts: Path = MOUNT_TABLE) -> str:
    """Return the type of the file system of a folder; empty if it is not known."""
    best, kind = "", ""
    real = str(folder.resolve())
    with suppress(OSError):
        for mount in mount_table(mounts):
            place = mount.point
            inside = real == place or real.startswith(place.rstrip("/") + "/")
            if inside and len(place) >= len(best):
                best, kind = place, mount.kind
    return kind
