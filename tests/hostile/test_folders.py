# SPDX-License-Identifier: MIT
"""A user makes a folder of another one first, in a place that all users share."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.errors import InputError, PenstockError
from penstock.live import settings
from penstock.live.settings import Settings
from penstock.live.staging.rules import Staging
from penstock.live.wire import frames
from penstock.live.wire.folder import _lock_of, is_locked, own_folder
from penstock.live.wire.frames import Client
from penstock.native.files import shim_path
from support.users import as_user, open_for_all, strangers

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to act as two other users"
)

ATTACKER, VICTIM = strangers(2)
#: Where the preload library and the daemon of B make folders.
_PLACES = (Path(f"/dev/shm/penstock-{VICTIM}"), Path(f"/tmp/penstock-{VICTIM}"))  # noqa: S108

#: Becomes a user, begins to stage, into memory or a folder, and prints the answer.
_STAGES = """
import ctypes, os, sys
user = int(sys.argv[1])
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
library = ctypes.CDLL(None, use_errno=True)
folder = sys.argv[2].encode() or None
answer = library.penstock_bbio_init(folder, ctypes.c_size_t(1 << 20))
print(answer, ctypes.get_errno() if answer else 0)
"""


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        if path.is_symlink() or path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path)


@pytest.fixture(autouse=True)
def places() -> Iterator[None]:
    """Leave nothing in the shared places."""
    for path in _PLACES:
        _remove(path)
    yield
    for path in _PLACES:
        _remove(path)


def _make(path: Path, kind: str) -> None:
    """Make what B will find, as A or by an accident of B."""

    def act() -> None:
        if kind == "link":
            path.symlink_to("/tmp")  # noqa: S108
        elif kind == "file":
            path.touch()
        else:
            path.mkdir()
            path.chmod(0o770 if kind == "own" else 0o777)

    as_user(VICTIM if kind == "own" else ATTACKER, act)


def _stage(folder: Path | str = "") -> list[int]:
    """Let B stage, into memory without a folder; return answer and number of error."""
    done = subprocess.run(
        [sys.executable, "-c", _STAGES, str(VICTIM), str(folder)],
        env={**os.environ, "LD_PRELOAD": str(shim_path())},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("folder", errno.EACCES),
        ("own", errno.EACCES),
        ("link", errno.ENOTDIR),
        ("file", errno.ENOTDIR),
    ],
)
def test_the_library_stages_into_no_folder_that_others_can_change(
    kind: str, error: int
) -> None:
    """Who can change the folder can remove journals, and the data in them."""
    memory = _PLACES[0]
    _make(memory, kind)
    assert _stage() == [-1, error]
    _remove(memory)
    assert _stage() == [0, 0]
    status = memory.lstat()
    assert (status.st_uid, status.st_mode & 0o7777) == (VICTIM, 0o700)


@pytest.mark.parametrize("kind", ["folder", "own", "link"])
def test_a_folder_that_the_program_names_is_looked_at_too(kind: str) -> None:
    place = _PLACES[1]
    _make(place, kind)
    assert _stage(place) == [-1, errno.EACCES]
    _remove(place)
    as_user(VICTIM, lambda: place.mkdir(mode=0o700))
    assert _stage(place) == [0, 0]


@pytest.mark.parametrize("kind", ["folder", "own", "link", "file"])
def test_python_has_the_same_rule(kind: str) -> None:
    def refused() -> list[str]:
        names = []
        for name, use in (
            ("own_folder", lambda: own_folder(_PLACES[0])),
            ("prepare", Staging(_PLACES[0]).prepare),
        ):
            try:
                use()
            except InputError:
                names.append(name)
        return names

    _make(_PLACES[0], kind)
    assert as_user(VICTIM, refused) == ["own_folder", "prepare"]
    _remove(_PLACES[0])
    assert as_user(VICTIM, refused) == []


def test_a_folder_of_root_that_is_closed_is_no_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root runs a daemon for itself alone; B starts one of its own."""
    open_for_all(tmp_path)
    (closed := tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setattr(settings, "_SYSTEM", closed)
    assert as_user(VICTIM, lambda: Settings().client_socket == Settings().socket)


#: Becomes a user and waits for clients at a socket, until its input ends.
_LISTENS = """
import os, socket, sys
user = int(sys.argv[1])
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[2])
    os.chmod(sys.argv[2], 0o777)
    listener.listen()
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_a_program_does_not_obey_the_daemon_of_another_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A waits in the folder where B starts a private daemon."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    home, pipe = _PLACES[1], subprocess.PIPE
    _make(home, "folder")
    words = [sys.executable, "-c", _LISTENS, str(ATTACKER), str(home / "agent.sock")]

    def connect() -> str:
        try:
            Client(Settings().socket).close()
        except PenstockError as error:
            return str(error)
        return "connected"

    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "ready\n"
        assert "belongs to another user" in as_user(VICTIM, connect)
        # Even if A gets in between the look at the folder and the connection.
        monkeypatch.setattr(frames, "_is_of_stranger", lambda _: False)
        assert "belongs to another user" in as_user(VICTIM, connect)


def test_a_program_does_not_wait_for_the_daemon_of_another_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A locks the folder, or puts a pipe there, which nobody writes to."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    home = _PLACES[1]
    _make(home, "folder")
    lock = home / "lock"

    def is_waited_for() -> bool:
        return is_locked(Settings().home)

    as_user(ATTACKER, lambda: os.mkfifo(lock))
    assert not as_user(VICTIM, is_waited_for)
    lock.unlink()
    as_user(ATTACKER, lambda: lock.touch(0o666))
    with lock.open("r+") as stream:
        fcntl.fcntl(stream, fcntl.F_OFD_SETLK, _lock_of(fcntl.F_WRLCK))
        assert not as_user(VICTIM, is_waited_for)
