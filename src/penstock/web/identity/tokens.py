# SPDX-License-Identifier: MIT
"""The file with the tokens of those who may look at the page.

Each line names a user and the SHA-256 of the user's token::

    operator 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
    ann      2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae

A token is 32 random bytes. The file does not contain it: `make_token` returns it once.
``operator``, or ``operator:NAME`` with any name for the log, sees and does everything;
other users see their own jobs. A changed file is read again, so that removing a line
ends the access of a user at once.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from hashlib import sha256
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.files import replacing
from penstock.web.identity.readers import Reader, reader_named

__all__ = ["TokenFile", "make_token", "token_digest"]

_TOKEN_BYTES: Final = 32
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_OTHERS: Final = 0o077
_DENIED: Final = "start penstock as the user who owns it, or name a file of yours"
_REMEDY: Final = "make one with penstock serve --web-token FILE --make-web-token USER"


def token_digest(token: str) -> str:
    """Return what the file contains of a token."""
    return sha256(token.encode(errors="replace")).hexdigest()


def make_token(path: Path, user_name: str) -> str:
    """Write a new token of a user to the file; return the token.

    An earlier token of the user is no longer valid.

    Raises
    ------
    InputError
        If there is no such user, or the file is not a file of tokens.
    """
    reader_named(user_name)
    lines = _lines(path) if _may_exist(path) else []
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    kept = [line for line in lines if line[0] != user_name]
    text = "".join(f"{name} {digest}\n" for name, digest in kept)
    text += f"{user_name} {token_digest(token)}\n"
    earlier = os.umask(_OTHERS)
    try:
        with replacing(path) as stream:
            stream.write(text.encode())
    finally:
        os.umask(earlier)
    return token


def _may_exist(path: Path) -> bool:
    """Return True if a file is there, or if nobody may see whether it is."""
    try:
        return path.exists()
    except OSError:
        return True


class TokenFile:
    """The tokens of a file, read again when the file changes.

    Raises
    ------
    InputError
        If the file cannot be used, at the first reading. A file that becomes unusable
        later has no tokens.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = _version(path)
        self._readers = _read(path)

    def reader(self, digest: str) -> Reader | None:
        """Return who has the token with this digest; None if nobody has."""
        self._refresh()
        found = None
        # All entries are compared: the time does not tell which one is nearly equal.
        for known, reader in self._readers.items():
            if hmac.compare_digest(known, digest):
                found = reader
        return found

    def _refresh(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            self._readers = _read(self._path)
        except InputError:
            self._readers = {}


def _version(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file changes; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read(path: Path) -> dict[str, Reader]:
    """Return the readers by the digests of their tokens."""
    readers = {
        digest: reader_named(name, f"{path}: line {number}")
        for number, (name, digest) in enumerate(_lines(path), 1)
    }
    if not readers:
        raise InputError("has no tokens", where=str(path), remedy=_REMEDY)
    return readers


def _lines(path: Path) -> list[tuple[str, str]]:
    """Return names and digests of a file that only this user can read."""
    try:
        with path.open() as stream:
            status = os.fstat(stream.fileno())
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        is_denied = isinstance(error, PermissionError)
        raise InputError(
            f"cannot be read: {reason}",
            where=str(path),
            remedy=_DENIED if is_denied else _REMEDY,
        ) from None
    if not stat.S_ISREG(status.st_mode) or status.st_uid not in (0, os.geteuid()):
        raise InputError("is not a file of yours", where=str(path), remedy=_REMEDY)
    if status.st_mode & _OTHERS:
        raise InputError(
            "can be read by others", where=str(path), remedy=f"chmod 600 {path}"
        )
    return [_line(line, path, at) for at, line in enumerate(text.splitlines(), 1)]


def _line(line: str, path: Path, number: int) -> tuple[str, str]:
    words = line.split()
    if len(words) != 2 or not _DIGEST.fullmatch(words[1]):
        raise InputError(
            "is not a user and a SHA-256",
            where=f"{path}: line {number}",
            remedy=_REMEDY,
        )
    return words[0], words[1]
