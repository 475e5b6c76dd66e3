# SPDX-License-Identifier: MIT
"""Reports between mounts: the service of each application at one mount.

Start tags count the service of an application at all mounts (two-level scheduling,
section 3.1), so that an application with files on many mounts gets no more than its
share of the total. A mount sends a report when a total has grown by a threshold, and
after a while if a total has grown at all.

A report carries totals since the mount started, not increments: the next report makes
up for a lost one, and a late or repeated report changes nothing. Reports are UDP
datagrams, signed with a key that all mounts share; other datagrams are ignored.

This module encodes and decodes; `peers` sends and receives.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Final

import msgspec

from penstock.errors import InputError

__all__ = [
    "ExchangeSettings",
    "ServiceReport",
    "decode_report",
    "encode_report",
    "read_key",
]

#: Version of the report format.
_VERSION: Final = 1
_SIGNATURE_BYTES: Final = 16
_MIN_KEY_BYTES: Final = 16


class ServiceReport(msgspec.Struct, frozen=True):
    """The totals of one mount."""

    penstock: int
    """Version of the report format."""
    run: str
    """Random name of the run of the mount; its totals start at 0."""
    served: dict[str, float]
    """Application -> bytes served since the run started."""
    wanting: list[str] = []
    """Applications that could use more service at this mount."""


_DECODER: Final[msgspec.json.Decoder[ServiceReport]] = msgspec.json.Decoder(
    ServiceReport
)


def encode_report(
    run: str,
    served_bytes: Mapping[str, float],
    key: bytes,
    wanting: Iterable[str] = (),
) -> bytes:
    """Return a signed report as a datagram."""
    report = ServiceReport(_VERSION, run, dict(served_bytes), list(wanting))
    data = msgspec.json.encode(report)
    return _signature(data, key) + data


def decode_report(datagram: bytes, key: bytes) -> ServiceReport | None:
    """Return the report in a datagram; None if the signature or format is wrong."""
    signature, data = datagram[:_SIGNATURE_BYTES], datagram[_SIGNATURE_BYTES:]
    if not compare_digest(signature, _signature(data, key)):
        return None
    try:
        report = _DECODER.decode(data)
    except msgspec.MsgspecError:
        return None
    return report if report.penstock == _VERSION else None


def _signature(data: bytes, key: bytes) -> bytes:
    return blake2b(data, key=key, digest_size=_SIGNATURE_BYTES).digest()


@dataclass(frozen=True, slots=True)
class ExchangeSettings:
    """The addresses of a mount and its peers, and their common key."""

    listen: str
    """``HOST:PORT`` of this mount."""
    peers: tuple[str, ...]
    """``HOST:PORT`` of each other mount."""
    key: bytes
    threshold_bytes: float
    """Send a report after this much service of an application."""

    def listen_address(self) -> tuple[str, int]:
        """Return the resolved address of this mount."""
        return _resolve(self.listen, "exchange.listen")

    def peer_addresses(self) -> list[tuple[str, int]]:
        """Return the resolved addresses of the other mounts."""
        return [
            _resolve(peer, f"exchange.peers[{index}]")
            for index, peer in enumerate(self.peers)
        ]


def read_key(path: str) -> bytes:
    """Return the key in a file, which only its owner may be able to read."""
    try:
        data = Path(path).read_bytes()
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    if mode & 0o077:
        raise InputError(
            "other users can read this key file", where=path, remedy=f"chmod 600 {path}"
        )
    if not _MIN_KEY_BYTES <= len(data) <= blake2b.MAX_KEY_SIZE:
        raise InputError(
            f"is not a valid key file: {len(data)} bytes, "
            f"not {_MIN_KEY_BYTES} to {blake2b.MAX_KEY_SIZE}",
            where=path,
            remedy=f"create one with head -c 32 /dev/urandom > {path}",
        )
    return data


def _resolve(text: str, where: str) -> tuple[str, int]:
    """Return the IPv4 address and port of ``HOST:PORT``."""
    host, _, port = text.rpartition(":")
    try:
        addresses = socket.getaddrinfo(
            host, _port(port), socket.AF_INET, socket.SOCK_DGRAM
        )
    except (OSError, ValueError, UnicodeError) as error:
        raise InputError(
            f"{text!r} is not a valid address: {error}",
            where=where,
            remedy="write HOST:PORT, e.g. node2:4713",
        ) from None
    address = addresses[0][4]
    return str(address[0]), int(address[1])


def _port(text: str) -> int:
    """Return a port number; raise ValueError if the text is not one."""
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise ValueError(f"port {number} is not between 0 and 65535")
    return number
