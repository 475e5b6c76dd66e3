# SPDX-License-Identifier: MIT
"""Mounts tell one another how much service each application has had at them.

Start tags count what an application was given everywhere (papers/5 section 3.1), so
that one with many mounts gets no more than its share of all. A mount tells its totals
when they have grown by a threshold, and now and then while they grow at all.

A message carries totals since the mount began, not increments: one that is lost is made
up for by the next, one that comes late or twice says nothing new. Messages are UDP
datagrams, signed with a key that all mounts share; what is not signed is ignored.

Pure; `peers` sends and receives.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Final

import msgspec

from penstock.errors import InputError

__all__ = ["Link", "Totals", "decode", "encode", "read_key"]

#: Version of the message.
_VERSION: Final = 1
_SIGNATURE: Final = 16
#: Fewest bytes of a key.
_KEY: Final = 16


class Totals(msgspec.Struct, frozen=True):
    """What one mount has served."""

    penstock: int
    """Version of the message."""
    run: str
    """Drawn when the mount begins: another run, another count."""
    served: dict[str, float]
    """Application -> bytes since the run began."""


_DECODER: Final[msgspec.json.Decoder[Totals]] = msgspec.json.Decoder(Totals)


def encode(run: str, served: Mapping[str, float], key: bytes) -> bytes:
    """Return a message, signed."""
    data = msgspec.json.encode(Totals(_VERSION, run, dict(served)))
    return _signature(data, key) + data


def decode(datagram: bytes, key: bytes) -> Totals | None:
    """Return the message of a datagram; None if it is not one of ours."""
    signature, data = datagram[:_SIGNATURE], datagram[_SIGNATURE:]
    if not compare_digest(signature, _signature(data, key)):
        return None
    try:
        totals = _DECODER.decode(data)
    except msgspec.MsgspecError:
        return None
    return totals if totals.penstock == _VERSION else None


def _signature(data: bytes, key: bytes) -> bytes:
    return blake2b(data, key=key, digest_size=_SIGNATURE).digest()


@dataclass(frozen=True, slots=True)
class Link:
    """Where a mount listens, whom it tells, and with which key."""

    listen: str
    """``HOST:PORT``."""
    peers: tuple[str, ...]
    key: bytes
    threshold: float
    """Bytes."""

    def address(self) -> tuple[str, int]:
        """Return where to listen."""
        return _resolved(self.listen, "exchange.listen")

    def others(self) -> list[tuple[str, int]]:
        """Return whom to tell."""
        return [
            _resolved(peer, f"exchange.peers[{index}]")
            for index, peer in enumerate(self.peers)
        ]


def read_key(path: str) -> bytes:
    """Return the key in a file; only its owner may read it."""
    try:
        data = Path(path).read_bytes()
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    if mode & 0o077:
        raise InputError(
            "can be read by others", where=path, remedy=f"chmod 600 {path}"
        )
    if not _KEY <= len(data) <= blake2b.MAX_KEY_SIZE:
        raise InputError(
            f"is no key: {len(data)} bytes",
            where=path,
            remedy=f"head -c 32 /dev/urandom > {path}",
        )
    return data


def _resolved(text: str, where: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    try:
        found = socket.getaddrinfo(host, _port(port), socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, ValueError, UnicodeError) as error:
        raise InputError(
            f"{text!r} is no address: {error}",
            where=where,
            remedy="write HOST:PORT, e.g. node2:4713",
        ) from None
    address = found[0][4]
    return str(address[0]), int(address[1])


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise ValueError(f"there is no port {number}")
    return number
