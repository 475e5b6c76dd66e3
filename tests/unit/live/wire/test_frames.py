# SPDX-License-Identifier: MIT
"""Frames, and the user at the other end of a socket."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from penstock.errors import InputError, PenstockError, UnavailableError
from penstock.live import settings as settings_module
from penstock.live.settings import Settings
from penstock.live.wire import frames
from penstock.live.wire.folder import locked_folder
from penstock.live.wire.frames import (
    ENDED,
    OPERATOR_SOCKET,
    Client,
    Peer,
    WarningLog,
    connect,
    frame,
    read_frame,
)
from penstock.live.wire.messages import (
    GetStatus,
    MessageError,
    Refused,
    TextAnswer,
    encode,
)


def read(data: bytes, largest: int = 100) -> bytes | None:
    """Return the first frame of a stream that then ends."""

    async def reading() -> bytes | None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_frame(reader, largest)

    return asyncio.run(reading())


def test_a_frame_is_length_and_message() -> None:
    data = encode(GetStatus())
    assert frame(GetStatus()) == struct.pack(">I", len(data)) + data
    assert read(frame(GetStatus()) + b"more") == data
    assert read(b"") is None


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x00", "is incomplete"),
        (frame(GetStatus())[:-1], "is incomplete"),
        (struct.pack(">I", 101) + bytes(101), "101 bytes is too long"),
    ],
)
def test_broken_frames(data: bytes, complaint: str) -> None:
    with pytest.raises(MessageError, match=complaint):
        read(data)


def test_the_peer_is_identified_by_the_kernel() -> None:
    client_end, server_end = socket.socketpair(socket.AF_UNIX)
    with client_end, server_end:
        peer = Peer.of(client_end)
    assert peer == Peer(os.getpid(), os.geteuid(), os.getegid())
    assert peer.is_trusted
    assert Peer(1, 0, 0).is_trusted
    assert not Peer(1, os.geteuid() + 1, 0).is_trusted


def test_a_peer_that_has_ended_is_no_later_process() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert Peer(process.pid, 0, 0).identified().start == ENDED
    assert Peer(os.getpid(), 0, 0).identified().start != ENDED


class Daemon:
    """Answers every connection with the same bytes, then closes it."""

    def __init__(self, path: Path, answer: bytes) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._answer = answer
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(self._answer)

    def close(self) -> None:
        self._thread.join()
        self._listener.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a daemon listens."""
    return tmp_path / "socket"


def ask(path: Path, answer: bytes) -> object:
    """Return the reply that a client decodes from an answer."""
    daemon = Daemon(path, answer)
    try:
        with Client(path) as client:
            return client.ask(GetStatus())
    finally:
        daemon.close()


def test_an_answer(path: Path) -> None:
    assert ask(path, frame(TextAnswer("yes"))) == TextAnswer("yes")


@pytest.mark.parametrize(
    ("answer", "kind", "complaint"),
    [
        (frame(Refused("not you")), InputError, "^not you$"),
        (frame(Refused("not today", retry=True)), UnavailableError, "^not today$"),
        (b"", UnavailableError, "penstock does not answer: the connection was closed"),
        (frame(TextAnswer("yes"))[:-1], UnavailableError, "penstock does not answer"),
        (struct.pack(">I", 0xFFFFFFFF), MessageError, "4294967295 bytes is too long"),
        (struct.pack(">I", 2) + b"\x07x", MessageError, "is of version 7"),
    ],
)
def test_no_answer(
    path: Path, answer: bytes, kind: type[PenstockError], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint) as caught:
        ask(path, answer)
    assert type(caught.value) is kind


def test_no_daemon_at_the_socket(path: Path) -> None:
    with pytest.raises(UnavailableError, match="no penstock answers: No such file"):
        Client(path)
    with pytest.raises(
        UnavailableError, match="no penstock answers: AF_UNIX path too long"
    ):
        Client(path / ("x" * 200))


def test_a_daemon_that_is_silent(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with (
            Client(path, limit_s=0.05) as client,
            pytest.raises(
                UnavailableError, match="penstock does not answer: timed out"
            ),
        ):
            client.ask(GetStatus())


def test_a_daemon_that_is_starting_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, notices = Settings(folder=str(tmp_path)), list[str]()
    monkeypatch.setattr(frames, "SILENT_S", 0.0)
    with locked_folder(tmp_path, temporary=False), socket.socket(socket.AF_UNIX) as one:

        def listen() -> None:
            notices.append("waits")
            one.bind(str(settings.socket))
            one.listen()

        connect(settings, say_waiting=listen).close()
    assert notices == ["waits"]


@pytest.mark.parametrize("user", [0, 54321, 54322])
def test_a_stranger_cannot_serve_the_own_folder_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    path = tmp_path / "agent.sock"
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr(Peer, "of", lambda _: Peer(1, user, user))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        Client(path).close()  # of a folder that was given
        monkeypatch.setattr(Settings, "home", tmp_path)
        if user in (0, 54321):
            Client(path).close()
        else:
            with pytest.raises(UnavailableError, match="belongs to another user"):
                Client(path)


def test_a_lock_is_looked_for_beside_the_socket_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private daemon is no reason to wait for the system's, which was killed."""
    system, home = tmp_path / "system", tmp_path / "home"
    system.mkdir()
    (system / "agent.sock").touch()
    monkeypatch.setattr(settings_module, "_SYSTEM", system)
    monkeypatch.setattr(Settings, "home", home)
    with (
        locked_folder(home, temporary=True),
        pytest.raises(UnavailableError, match="no penstock answers"),
    ):
        connect(Settings())


def test_a_daemon_that_never_starts_is_not_waited_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(folder=str(tmp_path))
    with pytest.raises(UnavailableError, match="no penstock answers"):
        connect(settings)
    monkeypatch.setattr(frames, "START_S", 0.1)
    with (
        locked_folder(tmp_path, temporary=False),
        pytest.raises(UnavailableError, match="still starting"),
    ):
        connect(settings)


def test_an_operator_takes_the_socket_that_no_other_user_can_occupy(
    tmp_path: Path,
) -> None:
    with (
        socket.socket(socket.AF_UNIX) as shared,
        socket.socket(socket.AF_UNIX) as operators,
    ):
        for listener, name in ((shared, "agent.sock"), (operators, OPERATOR_SOCKET)):
            listener.bind(str(tmp_path / name))
            listener.listen(1)
            listener.settimeout(10.0)
        with Client(tmp_path / "agent.sock"):
            operators.accept()[0].close()
        # A socket that a former daemon has left is no obstacle.
        operators.close()
        with Client(tmp_path / "agent.sock"):
            shared.accept()[0].close()


def test_a_client_waits_while_too_many_others_connect(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        first = Client(path)
        with pytest.raises(UnavailableError, match="no penstock answers"):
            Client(path, limit_s=0.1)

        def accept() -> None:
            listener.accept()[0].close()

        accepting = threading.Timer(0.2, accept)
        accepting.start()
        Client(path, limit_s=30.0).close()
        accepting.join()
        first.close()


def test_ids_of_containers_share_the_warnings_of_their_owner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = logging.getLogger("penstock.test")
    warnings = WarningLog(log, owner_of=lambda user: 65_001 if user > 100_000 else user)
    for number in range(30):
        warnings.add(f"complaint {number}", 200_000 + number)
    warnings.add("of the owner", 65_001)
    assert len(caplog.records) == 20
    warnings.add("of another user", 65_002)
    assert len(caplog.records) == 21


def test_one_user_cannot_silence_the_log_for_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warnings = WarningLog(logging.getLogger("penstock.test"))
    for number in range(500):
        warnings.add(f"complaint {number}", 65_001)
    warnings.add("complaint 1", 65_001)
    assert len(caplog.records) == 20
    warnings.add("another user", 65_002)
    for number in range(500):
        warnings.add(f"of nobody {number}")
    assert len(caplog.records) == 121
