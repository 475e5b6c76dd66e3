# SPDX-License-Identifier: MIT
"""Starting programs; `tests/e2e/live/test_serve.py` does it with a daemon."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live import settings
from penstock.live.node.launch import run
from penstock.live.node.launch.run import controlled_environment, start_daemon
from penstock.live.settings import Settings
from penstock.live.wire.folder import locked_folder
from penstock.live.wire.frames import START_S
from support.waiting import until


def test_a_daemon_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a folder that belongs"):
        start_daemon(Settings(folder=str(tmp_path / "file")))
    (tmp_path / "serve.log").mkdir()
    with pytest.raises(InputError, match="cannot start a daemon"):
        start_daemon(Settings(folder=str(tmp_path)))


def test_nothing_is_written_in_a_folder_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="is not a folder that belongs"):
        start_daemon(Settings(folder=str(tmp_path / "link")))
    assert not (tmp_path / "serve.log").exists()


@pytest.mark.parametrize(
    ("program", "limit_s"), [("sleep 1", 0.05), ("false", START_S)]
)
def test_a_daemon_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, limit_s: float
) -> None:
    """The wait ends at the limit, or as soon as the daemon has ended."""
    monkeypatch.setattr(run, "_serve_command", lambda settings: program.split())
    monkeypatch.setattr(run, "START_S", limit_s)
    messages: list[tuple[str, bool]] = []
    with pytest.raises(UnavailableError, match="no penstock answers"):
        controlled_environment(
            Settings(folder=str(tmp_path)),
            "job",
            say=lambda text, *, is_wait: messages.append((text, is_wait)),
        )
    assert messages == [(f"started a private daemon at {tmp_path}", False)]


def test_a_daemon_that_is_slow_is_announced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_serve_command", lambda settings: ["sleep", "2"])
    monkeypatch.setattr(run, "START_S", 0.3)
    monkeypatch.setattr(run, "SILENT_S", 0.0)
    waits: list[str] = []
    with pytest.raises(UnavailableError):
        controlled_environment(
            Settings(folder=str(tmp_path)),
            "job",
            say=lambda text, *, is_wait: waits.extend([text] * is_wait),
        )
    assert waits == ["waiting for a daemon that is starting"]


def test_no_private_daemon_is_started_without_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Path:
        raise UnavailableError("the preload library is not compiled")

    monkeypatch.setattr(run, "shim_path", missing)
    with pytest.raises(UnavailableError, match="not compiled"):
        controlled_environment(Settings(folder=str(tmp_path / "home")), "job")
    assert not (tmp_path / "home").exists()


def test_no_private_daemon_is_started_beside_one_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "START_S", 0.1)
    with locked_folder(tmp_path, temporary=False), pytest.raises(UnavailableError):
        controlled_environment(Settings(folder=str(tmp_path)), "job")
    assert not (tmp_path / "serve.log").exists()


def test_a_dead_socket_of_the_system_does_not_hide_the_private_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's daemon was killed and has left its socket."""
    system, home = tmp_path / "system", tmp_path / "penstock"
    system.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(system / "agent.sock"))
    monkeypatch.setattr(settings, "_SYSTEM", system)
    monkeypatch.setattr(Settings, "home", home)
    with socket.socket(socket.AF_UNIX) as server:

        def start(_: Settings) -> contextlib.nullcontext[None]:
            home.mkdir()
            server.bind(str(home / "agent.sock"))
            server.listen()
            return contextlib.nullcontext()

        monkeypatch.setattr(run, "start_daemon", start)
        monkeypatch.setattr(run, "is_locked", lambda folder: folder.exists())
        with run._connect(Settings(), run._say_nothing):
            server.settimeout(60.0)
            server.accept()[0].close()


def _parents_of(program: str) -> list[str]:
    """Return the parents of all processes of a program, by number."""
    parents = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = status.read_text().partition("(")[2].rpartition(")")
            parents += [rest.split()[1]] if name == program else []
    return parents


def test_the_daemon_is_no_child_and_its_end_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    monkeypatch.setattr(run, "_serve_command", lambda settings: ["cat", str(gate)])
    os.mkfifo(gate)
    with start_daemon(Settings(folder=str(tmp_path / "home"))) as daemon:
        assert not daemon.has_ended()
        assert str(os.getpid()) not in _parents_of("cat")
        gate.write_text("end\n")
        until(daemon.has_ended)
    assert (tmp_path / "home" / "serve.log").read_text() == "end\n"


def test_a_daemon_whose_program_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_serve_command", lambda settings: ["/no/such/program"])
    with pytest.raises(InputError, match="cannot start a daemon: No such file"):
        start_daemon(Settings(folder=str(tmp_path)))
