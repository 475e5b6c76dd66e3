# SPDX-License-Identifier: MIT
"""A real listening socket that ignores new connections for a while."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.live.wire.syn_filter import SynFilter

#: Shorter than the time after which the kernel sends a SYN packet again (s).
SHORT_S = 0.2


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_new_connections_wait_and_old_ones_do_not(listener: socket.socket) -> None:
    address = listener.getsockname()
    syn_filter = SynFilter.of_address(*address)
    assert syn_filter is not None
    with socket.create_connection(address) as old, listener.accept()[0] as accepted:
        syn_filter.attach()
        with pytest.raises(TimeoutError):
            socket.create_connection(address, SHORT_S)
        old.sendall(b"x")
        assert accepted.recv(1) == b"x"
        syn_filter.close()
        socket.create_connection(address, 10.0).close()


def test_an_address_where_nobody_listens(listener: socket.socket) -> None:
    host, port = listener.getsockname()
    listener.close()
    assert SynFilter.of_address(host, port) is None


def test_a_filter_that_is_not_attached_is_detached(listener: socket.socket) -> None:
    syn_filter = SynFilter.of_address(*listener.getsockname())
    assert syn_filter is not None
    syn_filter.detach()
    syn_filter.close()


def test_a_search_leaves_no_descriptor_open(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w"), socket.create_server(("127.0.0.1", 0)) as last:
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for _ in range(3):
            syn_filter = SynFilter.of_address(*last.getsockname())
            assert syn_filter is not None
            syn_filter.close()
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
