# SPDX-License-Identifier: MIT
"""Which user is at the other end of a connection on this machine.

A Unix socket says it itself; `serving` gives such a client the host `UNIX_HOST` and its
user id as the port. For TCP, the kernel lists the sockets of this machine with their
users in ``/proc/net/tcp`` and ``/proc/net/tcp6``. The socket of the client is the one
whose local address is the client's and whose remote address is the server's.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

__all__ = [
    "CONNECTION",
    "UNIX_HOST",
    "TcpAddress",
    "is_loopback",
    "is_of_this_machine",
    "names_loopback",
    "user_in_table",
    "user_of_connection",
]

#: Host and port.
TcpAddress = tuple[str, int]

#: In place of the host of a client that has connected to a Unix socket.
UNIX_HOST: Final = "unix"
#: Key in the scope of a request: what is remembered about its connection, a dict.
CONNECTION: Final = "penstock.connection"
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
#: Addresses for documentation, which no machine has.
_NOBODYS: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
_WORD_BYTES: Final = 4


def is_loopback(host: str) -> bool:
    """Return True if a host, by name or address, is this machine itself."""
    if host == "localhost":
        return True
    try:
        return _unmapped(host).is_loopback
    except ValueError:
        return False


def is_of_this_machine(host: str) -> bool:
    """Return True if an address is one of this machine: sockets can be bound to it.

    False where the system lets sockets be bound to any address; True for loopback.
    """
    if is_loopback(host):
        return True
    own = _unmapped(host)
    family = socket.AF_INET if isinstance(own, IPv4Address) else socket.AF_INET6
    return _can_bind(family, str(own)) and not _can_bind(family, _NOBODYS[family])


def _can_bind(family: socket.AddressFamily, host: str) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((host, 0))
        except OSError:
            return False
    return True


def _unmapped(host: str) -> IPv4Address | IPv6Address:
    """Return an address; an IPv4 address that is written as IPv6 as what it is."""
    address = ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def names_loopback(host_header: str) -> bool:
    """Return True if a request was sent to a name of this machine itself.

    `host_header` is the header ``Host``. Otherwise a foreign page in a browser, whose
    name suddenly points to this machine, has sent it.
    """
    if host_header.startswith("["):
        host = host_header[1:].partition("]")[0]
    else:
        host = host_header.partition(":")[0]
    return is_loopback(host)


def user_of_connection(client: TcpAddress, server: TcpAddress) -> int | None:
    """Return the user id of a client on this machine; None if it is not known."""
    if client[0] == UNIX_HOST:
        return client[1]
    for path in _TABLES:
        try:
            with path.open() as lines:
                user = user_in_table(lines, client, server)
        except OSError:  # no IPv6
            continue
        if user is not None:
            return user
    return None


def user_in_table(
    lines: Iterable[str], client: TcpAddress, server: TcpAddress
) -> int | None:
    """Return the user id of a client in a table of the kernel; None: not listed."""
    pairs = {
        (_in_table(client, mapped=mapped), _in_table(server, mapped=mapped))
        for mapped in (False, True)
    }
    for line in lines:
        fields = line.split()
        if len(fields) < 10 or (fields[1], fields[2]) not in pairs:
            continue
        # A socket that no process has open any more has the inode 0, and perhaps the
        # user 0. Its state does not tell: a client may close one direction only.
        if fields[9] != "0":
            return int(fields[7])
    return None


def _in_table(address: TcpAddress, *, mapped: bool) -> str:
    """Return an address as the kernel prints it, an IPv4 address also as IPv6."""
    host = _unmapped(address[0])
    if isinstance(host, IPv4Address) and mapped:
        host = IPv6Address(f"::ffff:{host}")
    packed = host.packed
    words = [
        int.from_bytes(packed[at : at + _WORD_BYTES], sys.byteorder)
        for at in range(0, len(packed), _WORD_BYTES)
    ]
    return "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"
