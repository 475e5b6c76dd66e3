# SPDX-License-Identifier: MIT
"""A JSON file in which a daemon keeps something for its next start.

The daemon works without the file. So a file that cannot be read, or that is of another
version, is ignored; one that cannot be written is left as it is. The log says why. The
file is replaced as a whole, so it is never half written.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from penstock.errors import InputError
from penstock.files import replacing

__all__ = ["KeptContent", "KeptFile"]


class KeptContent(msgspec.Struct, frozen=True):
    """What is in such a file; subclasses add fields."""

    version: int
    """Version of the format; a file of another version is ignored."""


Content = TypeVar("Content", bound=KeptContent)


class KeptFile(Generic[Content]):
    """A file with content of one type; `write` may run in another thread.

    Parameters
    ----------
    content
        The type.
    version
        The version that can be read.
    log
        Where problems are reported.
    consequence
        What follows if the file cannot be written, for the log.
    """

    def __init__(
        self,
        path: Path,
        content: type[Content],
        version: int,
        log: logging.Logger,
        consequence: str,
    ) -> None:
        self._path, self._content, self._version = path, content, version
        self._log, self._consequence = log, consequence
        self._problem = ""

    def read(self) -> Content | None:
        """Return the content of the file; None if there is none that can be used."""
        try:
            content = msgspec.json.decode(self._path.read_bytes(), type=self._content)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._log.warning("%s is ignored: %s", self._path, error)
            return None
        if content.version != self._version:
            self._log.warning("%s is ignored: version %d", self._path, content.version)
            return None
        return content

    def write(self, content: Content) -> None:
        """Replace the file; log a problem unless the last write had the same one."""
        try:
            with replacing(self._path) as stream:
                stream.write(msgspec.json.encode(content))
        except InputError as error:
            if str(error) != self._problem:
                self._log.warning("%s; %s", error, self._consequence)
            self._problem = str(error)
        else:
            self._problem = ""
