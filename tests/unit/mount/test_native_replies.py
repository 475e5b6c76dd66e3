# SPDX-License-Identifier: MIT
"""Late answers reach the kernel after libfuse has closed its descriptors."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.native_mount import driver, set_time
from support.waiting import LIMIT_S

#: A request for attributes: its header in the order of ``struct fuse_in_header``.
NUMBER = 7
REQUEST = struct.pack("=IIQQIIII", 40, 3, NUMBER, 1, 0, 0, 0, 0)
ANSWER = struct.pack("=IiQ", 16, 0, NUMBER)


@pytest.fixture
def kernel() -> Iterator[tuple[socket.socket, int]]:
    """Return the kernel's end of a connection, and the descriptor of libfuse."""
    assert driver().driver_io_begin() == 0
    end, own = socket.socketpair()
    end.settimeout(LIMIT_S)
    with end, own:
        end.send(REQUEST)
        yield end, own.fileno()


def test_a_late_answer_does_not_go_to_a_file_with_the_same_number(
    kernel: tuple[socket.socket, int], tmp_path: Path
) -> None:
    end, own = kernel
    set_time(0.0)
    due_s = time.monotonic() + 0.05
    driver().driver_read_request(own)
    driver().driver_answer_at(own, NUMBER, due_s)
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), own)
        set_time(due_s)
        assert end.recv(1000) == ANSWER
    assert (tmp_path / "other").read_bytes() == b""


def test_the_descriptor_of_a_waiting_request_lasts_until_the_mount_has_ended(
    kernel: tuple[socket.socket, int], tmp_path: Path
) -> None:
    end, own = kernel
    lasting = driver().driver_read_request(own)
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), own)
        os.write(lasting, ANSWER)
        assert end.recv(1000) == ANSWER
    assert driver().driver_io_begin() == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lasting)
