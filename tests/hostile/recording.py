# SPDX-License-Identifier: MIT
"""Record what a node sends to a controller, as somebody in the network could."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import zmq

from penstock.live.wire.curve import prepare_client
from penstock.live.wire.messages import MountReport, MountUse, encode

__all__ = ["free_port", "record_node"]

#: Longest wait (s).
LIMIT_S = 30.0


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def record_node(port: int, keys: Path) -> bytes:
    """Return all that a mount sends until the controller has answered its report."""
    recorded = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LIMIT_S)
        forwards = threading.Thread(target=_forward, args=(listener, port, recorded))
        forwards.start()
        _report(listener.getsockname()[1], keys)
        forwards.join(LIMIT_S)
    return bytes(recorded)


def _report(port: int, keys: Path) -> None:
    """Send a report of a mount, and wait for the answer."""
    use = MountUse(1e12, 1e12, 1e3, 0)
    report = MountReport("storage", "run", 1, {"a": 1e6}, {"a": use})
    with zmq.Context() as context, context.socket(zmq.DEALER) as node:
        prepare_client(node, keys)
        node.identity = b"mount:elsewhere:run"
        node.rcvtimeo = node.sndtimeo = int(1e3 * LIMIT_S)
        node.connect(f"tcp://127.0.0.1:{port}")
        node.send(encode(report))
        node.recv()


def _forward(listener: socket.socket, port: int, recorded: bytearray) -> None:
    """Forward one connection to a port, and record what its client sends."""
    client, _ = listener.accept()
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        back = threading.Thread(target=_copy, args=(server, client, bytearray()))
        back.start()
        _copy(client, server, recorded)
        back.join(LIMIT_S)


def _copy(source: socket.socket, target: socket.socket, copied: bytearray) -> None:
    """Copy bytes until the source is closed; close the target."""
    source.settimeout(LIMIT_S)
    while data := source.recv(1 << 16):
        copied += data
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)
