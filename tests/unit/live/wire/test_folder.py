# SPDX-License-Identifier: MIT
"""The folder of a daemon and its lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live.wire import folder
from penstock.live.wire.folder import is_locked, locked_folder, own_folder
from penstock.live.wire.identity import process_start_ticks


def test_a_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    path = own_folder(tmp_path / "a" / "b")
    assert path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o711)  # as a daemon does that serves all users
    assert own_folder(path) == path
    assert path.stat().st_mode & 0o777 == 0o711
    with pytest.raises(InputError, match="cannot be created: No such file"):
        own_folder(tmp_path / "c" / "d", parents=False)


def test_a_link_or_a_file_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    (tmp_path / "file").touch()
    for name in ("link", "dangling", "file"):
        with pytest.raises(InputError, match="is not a folder that belongs to you"):
            own_folder(tmp_path / name)
    assert not (tmp_path / "absent").exists()
    with pytest.raises(InputError, match="cannot be created: Not a directory"):
        own_folder(tmp_path / "file" / "a")


def test_the_folder_must_belong_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(InputError, match="is not a folder that belongs to you"):
        own_folder(tmp_path)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, mode: int
) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(InputError, match="can be written by other users"):
        own_folder(tmp_path)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(InputError), locked_folder(tmp_path, temporary=False):
        pass
    assert (tmp_path / "other").read_text() == "precious"


def test_a_daemon_that_has_ended_is_not_in_the_lock_file(tmp_path: Path) -> None:
    with locked_folder(tmp_path, temporary=True):
        start = process_start_ticks(os.getpid())
        assert (tmp_path / "lock").read_text() == f"{os.getpid()} {start} temporary"
    assert not (tmp_path / "lock").read_text()
    (tmp_path / "lock").write_text("5 7 temporary")  # of one that was killed
    with locked_folder(tmp_path, temporary=False):
        assert "temporary" not in (tmp_path / "lock").read_text()


def signals_to_holder(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the signals are added instead of being sent."""
    signals: list[int] = []
    monkeypatch.setattr(
        signal, "pidfd_send_signal", lambda _, number: signals.append(number)
    )
    monkeypatch.setattr(folder, "_GIVE_WAY_S", 0.1)
    return signals


def test_a_temporary_daemon_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = signals_to_holder(monkeypatch)
    with (
        locked_folder(tmp_path, temporary=True),
        pytest.raises(UnavailableError),
        locked_folder(tmp_path, temporary=False),
    ):
        pass
    assert signals == [signal.SIGTERM]


def test_another_process_with_the_number_of_the_holder_gets_no_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = signals_to_holder(monkeypatch)
    with locked_folder(tmp_path, temporary=True):
        (tmp_path / "lock").write_text(f"{os.getpid()} 7 temporary")
        with pytest.raises(UnavailableError), locked_folder(tmp_path, temporary=False):
            pass
    assert signals == []


def test_one_daemon_per_folder(tmp_path: Path) -> None:
    with locked_folder(tmp_path, temporary=False):
        for temporary in (False, True):
            with (
                pytest.raises(UnavailableError, match="another penstock serve"),
                locked_folder(tmp_path, temporary=temporary),
            ):
                pass
    with locked_folder(tmp_path, temporary=False):
        pass


def test_others_see_the_lock_without_taking_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert not is_locked(home)
    with locked_folder(home, temporary=False):
        assert is_locked(home)
        assert home.stat().st_mode & 0o777 == 0o700
    assert not is_locked(home)


def test_a_lock_of_another_user_or_a_pipe_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user can make the folder of this one first."""
    with locked_folder(tmp_path, temporary=False):
        monkeypatch.setattr(folder, "is_operator", lambda _: False)
        assert not is_locked(tmp_path)
    (tmp_path / "lock").unlink()
    os.mkfifo(tmp_path / "lock")
    assert not is_locked(tmp_path)
    monkeypatch.undo()
    assert not is_locked(tmp_path)


#: Holds the lock as a temporary daemon until it is asked to stop.
TEMPORARY = """
import signal, sys
from pathlib import Path
from penstock.live.wire.folder import locked_folder
with locked_folder(Path(sys.argv[1]), temporary=True):
    print("locked", flush=True)
    signal.pause()
"""


def test_a_temporary_daemon_gives_way(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TEMPORARY, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as temporary:
        assert temporary.stdout is not None
        assert temporary.stdout.readline() == "locked\n"
        with (
            pytest.raises(UnavailableError),
            locked_folder(tmp_path, temporary=True),
        ):
            pass
        assert temporary.poll() is None
        with locked_folder(tmp_path, temporary=False):
            assert temporary.wait(60) == -signal.SIGTERM
