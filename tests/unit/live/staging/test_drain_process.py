# SPDX-License-Identifier: MIT
"""The preload library as a process that drains: how it is started, what it answers."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import signal
import subprocess
import termios
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main as command_line
from penstock.errors import InputError
from penstock.live.staging import drain_process
from penstock.live.staging.drain import drain_folder, list_journals
from penstock.live.staging.drain_process import NamedDrain, start_drainer
from penstock.live.wire.identity import KnownUser
from penstock.native import files
from support.journals import HandMadeJournal
from support.waiting import LIMIT_S, until


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the list of the options with which processes would be started."""
    noted: list[dict[str, Any]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda _, **rest: noted.append(rest))
    return noted


@pytest.fixture
def made(tmp_path: Path) -> HandMadeJournal:
    journal = HandMadeJournal(tmp_path)
    journal.append(0, b"data")
    return journal


# --- Started by the agent -------------------------------------------------------------


def test_a_drainer_has_nothing_of_the_agents_environment(
    started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of root")
    start_drainer(Path("/j"), os.geteuid(), None, {"PENSTOCK_PAGE": "/page"})
    (options,) = started
    assert options["pass_fds"] == (
        int(options["env"]["LD_PRELOAD"].rpartition("/")[2]),
    )
    assert options["env"].pop("LD_PRELOAD").startswith("/proc/self/fd/")
    assert options["env"] == {
        "PENSTOCK_PAGE": "/page",
        "PENSTOCK_STAGING": "/j",
        "PENSTOCK_DRAIN": "5000",
    }


def test_a_drainer_has_the_groups_of_its_user_and_no_others(
    started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pwd.getpwnam("daemon" if os.geteuid() != 1 else "bin")
    known = KnownUser(other.pw_name, other.pw_gid, (other.pw_gid, 4711))
    monkeypatch.setattr(drain_process, "known_user", lambda _: known)
    start_drainer(Path("/j"), other.pw_uid, 7)
    start_drainer(Path("/j"), other.pw_uid)
    with_group, without = started
    assert (with_group["group"], without["group"]) == (7, other.pw_gid)
    for options in started:
        assert options["extra_groups"] == [other.pw_gid, 4711]


def test_a_drainer_becomes_its_user_when_no_debugger_can_attach_any_more(
    started: list[dict[str, Any]],
) -> None:
    start_drainer(Path("/j"), 3_999_999_999, 7, {}, [11, 12])
    start_drainer(Path("/j"), os.geteuid())
    other, own = started
    # The library changes the user, not the process that executes the program.
    assert "user" not in other
    assert other["env"]["PENSTOCK_DRAIN_USER"] == "3999999999"
    assert other["env"]["PENSTOCK_DRAIN_CGROUPS"] == "11,12"
    assert other["pass_fds"][1:] == (11, 12)
    assert not {"PENSTOCK_DRAIN_USER", "PENSTOCK_DRAIN_CGROUPS"} & own["env"].keys()


def test_an_unknown_user_needs_a_group(
    started: list[dict[str, Any]],
) -> None:
    stranger = 3_999_999_999
    with pytest.raises(InputError, match="is not known"):
        start_drainer(Path("/j"), stranger)
    start_drainer(Path("/j"), stranger, 7)
    assert started[0]["extra_groups"] == []


# --- Asked by a person ----------------------------------------------------------------


def test_a_named_drain_is_charged_to_the_job_that_it_runs_in(
    started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    monkeypatch.delenv("PENSTOCK_PAGE", raising=False)
    NamedDrain(Path("j"))
    monkeypatch.setenv("PENSTOCK_PAGE", "/page")
    NamedDrain(Path("/j"))
    outside, inside = (options["env"] for options in started)
    assert "PENSTOCK_PAGE" not in outside
    assert inside["PENSTOCK_PAGE"] == "/page"
    for environment in (outside, inside):
        assert environment["PENSTOCK_STAGING"] == "/j"
        assert environment["PENSTOCK_DRAIN_NAMED"] == "1"
        assert environment["PENSTOCK_DRAIN"] == "30000"


def test_one_process_answers_for_every_journal(made: HandMadeJournal) -> None:
    with NamedDrain(made.folder) as process:
        assert process.drain("none.journal") == 0  # Another process was faster.
        assert process.drain("x" * 5000) == errno.ENAMETOOLONG
        assert process.drain(made.path.name) == 0
        assert process.drain(made.path.name) == 0
        number = process._process.pid
        assert Path(f"/proc/{number}/comm").read_text() == "penstock-drain\n"
    assert made.file.read_bytes() == b"data"
    assert not Path(f"/proc/{number}").exists()


def test_a_process_that_was_killed_is_started_again(made: HandMadeJournal) -> None:
    with NamedDrain(made.folder) as process:
        process._process.kill()
        process._process.wait(LIMIT_S)
        assert process.drain(made.path.name) == 0
    assert made.file.read_bytes() == b"data"


def test_a_process_that_dies_at_work_is_an_error(made: HandMadeJournal) -> None:
    with NamedDrain(made.folder) as process:
        child, pipe = process._process, process._process.stdin
        assert pipe is not None
        child.send_signal(signal.SIGSTOP)

        def kill_when_asked() -> None:
            words = bytearray(4)
            until(lambda: any(fcntl.ioctl(pipe, termios.FIONREAD, words) or words))
            child.kill()

        killer = threading.Thread(target=kill_when_asked)
        killer.start()
        assert process.drain(made.path.name) == errno.EINTR
        killer.join(LIMIT_S)
    assert made.path.exists()
    assert made.file.read_bytes() == b""


# --- Without the library --------------------------------------------------------------


@pytest.fixture
def no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a checkout in which nothing is compiled."""
    monkeypatch.setattr(files, "BUILT", tmp_path / "absent")


@pytest.mark.usefixtures("no_library")
def test_without_a_library_journals_are_shown_and_kept(
    made: HandMadeJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    content = made.path.read_bytes()
    assert command_line(["drain", str(made.folder)]) == 2
    message = capsys.readouterr().err
    assert "nothing can be drained without the preload library" in message
    assert "make native" in message
    assert "all journals are kept" in message
    assert made.path.read_bytes() == content
    assert command_line(["drain", "--show", str(made.folder)]) == 0
    assert "4 bytes not in the file yet" in capsys.readouterr().out


@pytest.mark.usefixtures("no_library")
def test_without_a_library_and_without_journals_there_is_no_error(
    made: HandMadeJournal,
) -> None:
    made.path.unlink()
    assert drain_folder(made.folder) == []


def test_a_program_that_does_not_load_the_library_is_an_error(
    made: HandMadeJournal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As if it were linked statically: it ends at once, and has drained nothing."""
    library = tmp_path / "empty"
    library.touch()
    monkeypatch.setattr(drain_process, "shim_path", lambda: library)
    with (
        NamedDrain(made.folder) as process,
        pytest.raises(InputError, match="did not load the preload library"),
    ):
        process.drain(made.path.name)
    (report,) = list_journals(made.folder)
    assert report.pending_bytes == 4
