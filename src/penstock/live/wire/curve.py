# SPDX-License-Identifier: MIT
"""CURVE keys and ZeroMQ sockets, as the controller, agents and mounts use them.

``penstock serve --make-keys FOLDER`` creates four files: ``controller.key_secret`` and
``agent.key`` for the controller, ``agent.key_secret`` and ``controller.key`` for the
nodes. The controller accepts only agents and mounts that hold the agents' secret key;
these accept only the controller that holds the controller's. Only their owner may read
the secret keys. Every connection has keys of its own, so that a message cannot be
replayed on another one.

A node can have keys of its own (``--node NAME``): the controller keeps ``NAME.key``,
and the node has ``NAME.key_secret`` as its ``agent.key_secret``. Then no other node can
speak for it (`TrustedKeys`).

Keys can be replaced while daemons run: `KeyWatch` notices new files. Connections are
then made anew, because a connection keeps the keys that it began with.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any, Final

import zmq
import zmq.auth

from penstock.errors import InputError
from penstock.live.wire.messages import LARGEST_BYTES

__all__ = [
    "KEYS_S",
    "KeyWatch",
    "TrustedKeys",
    "attach",
    "check_client",
    "make_keys",
    "prepare_client",
    "prepare_server",
    "renew_client",
]

#: Time between two looks at the files of keys (s).
KEYS_S: Final = 5.0

_HEARTBEAT_MS: Final = 1000
_CONNECT_MS: Final = 1000
_SILENCE_MS: Final = 5000
#: Names of the keys that are not those of one node.
_SHARED: Final = ("controller", "agent")
_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAKE_KEYS: Final = "create keys with penstock serve --make-keys FOLDER"


def make_keys(folder: str, node: str = "") -> None:
    """Create keys in a folder: of a controller and all its agents, or of one node."""
    path = Path(folder)
    if node and (not _NODE.fullmatch(node) or node in _SHARED):
        raise InputError(
            f"{node!r} cannot be the name of a key file",
            where="--node",
            remedy="give letters, digits, dots, hyphens and underscores",
        )
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (node,) if node else _SHARED:
            if (path / f"{name}.key_secret").exists():
                raise InputError(
                    "already contains keys",
                    where=str(path),
                    remedy="remove them first, or give another folder",
                )
            old = os.umask(0o077)
            try:
                zmq.auth.create_certificates(path, name)
            finally:
                os.umask(old)
    except OSError as error:
        raise InputError(
            f"keys cannot be created: {error.strerror}",
            where=folder,
            remedy="choose a folder in which you can create files",
        ) from None


class TrustedKeys:
    """The public keys of agents and mounts in the folder of the controller.

    Raise `InputError` if one cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.load()

    def load(self) -> None:
        """Read the keys again; if one cannot be read, those read before hold."""
        paths = sorted(self._folder.glob("*.key"))
        #: Public key -> the name of its file: that of a node, or "agent".
        self._names = {
            _key(path)[0]: path.stem for path in paths if path.stem != "controller"
        }

    def callback(self, domain: str, key: bytes) -> bool:
        """Return True if a peer with this key may connect (called by pyzmq)."""
        del domain
        return key in self._names

    def may_speak_for(self, key: str, node: str) -> bool:
        """Return True if a peer with this key may speak for a node.

        Only its own key may, if it has one; otherwise the key of all agents.
        """
        has_own = node in self._names.values()
        return self._names.get(key.encode()) == (node if has_own else "agent")


class KeyWatch:
    """Notices that the files of keys in a folder were replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._used = self._seen = self._look()

    def has_changed(self) -> bool:
        """Return True once after a change, when two looks have seen the same files.

        Until then files may still be copied.
        """
        seen, self._seen = self._seen, self._look()
        if self._seen in (self._used, ()) or self._seen != seen:
            return False
        self._used = self._seen
        return True

    def _look(self) -> tuple[tuple[str, int, int, int], ...]:
        """Return what a new file changes; nothing if there are no files to read."""
        try:
            states = [
                (path.name, path.stat()) for path in sorted(self._folder.glob("*.key*"))
            ]
        except OSError:
            return ()
        return tuple(
            (name, status.st_ino, status.st_mtime_ns, status.st_mode)
            for name, status in states
        )


def prepare_server(socket: Any, keys: Path) -> None:
    """Give a socket the keys of the controller."""
    _prepare(socket, *_secret_key(keys / "controller.key_secret"))
    socket.curve_server = True


def prepare_client(socket: Any, keys: Path) -> None:
    """Give a socket the keys of an agent, and the public key of the controller."""
    _prepare(socket, *_secret_key(keys / "agent.key_secret"))
    socket.curve_serverkey = _key(keys / "controller.key")[0]
    # Messages wait for a connection at the sender, where they become old.
    socket.immediate = True
    # The kernel alone would try again after 1, 3, 7, 15, ... seconds.
    socket.connect_timeout = _CONNECT_MS


def renew_client(socket: Any, keys: Path, address: str) -> None:
    """Connect a socket to the same address again, with the keys in the folder now.

    Raise `InputError` if the keys cannot be used; the connection stays as it is.
    """
    check_client(keys, address)
    socket.disconnect(address)
    prepare_client(socket, keys)
    attach(socket.connect, address)


def _prepare(socket: Any, public: bytes, secret: bytes) -> None:
    socket.linger = 0
    socket.maxmsgsize = LARGEST_BYTES
    socket.heartbeat_ivl = _HEARTBEAT_MS
    socket.heartbeat_timeout = _SILENCE_MS
    socket.curve_publickey = public
    socket.curve_secretkey = secret


def check_client(keys: Path, address: str) -> None:
    """Raise `InputError` if a key of an agent or an address cannot be used."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        prepare_client(socket, keys)
        attach(socket.connect, address)


def attach(attach: Any, address: str) -> None:
    """Bind or connect a socket; raise `InputError` if the address is wrong."""
    try:
        attach(address)
    except zmq.ZMQError as error:
        raise InputError(
            f"cannot be used: {error.strerror}",
            where=address,
            remedy="write tcp://HOST:PORT",
        ) from None


def _secret_key(path: Path) -> tuple[bytes, bytes]:
    """Return the public and secret key of a file; raise if others can read it."""
    public, secret = _key(path)
    if secret is None:
        raise InputError("contains no secret key", where=str(path), remedy=_MAKE_KEYS)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            "other users can read this secret key",
            where=str(path),
            remedy=f"chmod 600 {path}",
        )
    return public, secret


def _key(path: Path) -> tuple[bytes, bytes | None]:
    """Return the public key of a file, and its secret key if it has one."""
    if not path.exists():
        raise InputError(
            "this key file does not exist", where=str(path), remedy=_MAKE_KEYS
        )
    try:
        return zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None)
        problem = f"cannot be read: {reason}" if reason else "is not a valid key file"
        raise InputError(problem, where=str(path), remedy=_MAKE_KEYS) from None
