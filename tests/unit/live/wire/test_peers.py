# SPDX-License-Identifier: MIT
"""Which user has opened a connection, by the tables of the kernel."""

from __future__ import annotations

import os
import socket

import pytest

from penstock.live.wire import peers
from penstock.live.wire.peers import (
    is_loopback,
    is_of_this_machine,
    user_in_table,
    user_of_connection,
)
from support.users import NEEDS_ROOT, NOBODY, as_user

CLIENT, SERVER = ("127.0.0.1", 40000), ("127.0.0.1", 9480)
#: The client of user 1000, as the kernel of a little-endian machine lists it.
LINE = (
    "   1: 0100007F:9C40 0100007F:2508 01 00000000:00000000 00:00000000 00000000"
    "  1000        0 77777 1 0000000000000000 20 4 30 10 -1"
)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_the_line_of_the_client_names_its_user() -> None:
    assert user_in_table(["  sl  local_address ...", LINE], CLIENT, SERVER) == 1000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The socket of the server, which has the addresses the other way round.
        ("0100007F:9C40 0100007F:2508", "0100007F:2508 0100007F:9C40"),
        # Another port.
        ("9C40", "9C41"),
        # No process has the socket open any more.
        ("77777", "0"),
    ],
)
def test_other_lines_do_not(old: str, new: str) -> None:
    assert user_in_table([LINE.replace(old, new)], CLIENT, SERVER) is None


@pytest.mark.parametrize("state", ["FIN_WAIT1 04", "FIN_WAIT2 05", "CLOSE_WAIT 08"])
def test_a_client_that_has_closed_one_direction_is_found(state: str) -> None:
    line = LINE.replace(" 01 ", f" {state.split()[1]} ")
    assert user_in_table([line], CLIENT, SERVER) == 1000


def test_addresses_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("127.0.0.1", "127.0.0.9", "::ffff:127.0.0.1", "::1"):
        assert is_of_this_machine(host)
    for host in ("198.51.100.7", "::ffff:198.51.100.7", "2001:db8::7"):
        assert not is_of_this_machine(host)
    monkeypatch.setattr(peers, "_can_bind", lambda _, host: host == "198.51.100.7")
    assert is_of_this_machine("::ffff:198.51.100.7")
    # Any address can be bound: it does not tell.
    monkeypatch.setattr(peers, "_can_bind", lambda *_: True)
    assert not is_of_this_machine("198.51.100.7")


def test_a_client_that_uses_an_ipv6_socket_for_ipv4() -> None:
    mapped = "0000000000000000FFFF00000100007F"
    line = LINE.replace("0100007F:", f"{mapped}:")
    assert user_in_table([line], CLIENT, SERVER) == 1000


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_real_connection_belongs_to_this_user(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("needs IPv6")
    with listener:
        client = socket.create_connection(listener.getsockname()[:2])
        connection, peer = listener.accept()
        with connection:
            ends = peer[:2], connection.getsockname()[:2]
            assert user_of_connection(*ends) == os.geteuid()
            client.shutdown(socket.SHUT_WR)
            assert user_of_connection(*ends) == os.geteuid()
            client.close()
            assert user_of_connection(*ends) is None


@NEEDS_ROOT
def test_the_connection_of_another_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()

        def connect() -> int | None:
            with socket.create_connection(address) as client:
                return user_of_connection(client.getsockname(), address)

        assert as_user(NOBODY, connect) == NOBODY
