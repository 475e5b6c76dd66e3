# SPDX-License-Identifier: MIT
"""Starting programs; `tests/e2e/live/test_serve.py` does it with a daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live.node import run
from penstock.live.node.run import controlled_environment, start_daemon
from penstock.live.settings import Settings

SCRIPT = (
    "import os; from penstock.live.node.run import execute_program;"
    "execute_program({}, os.environ)"
)


def execute(*command: str) -> subprocess.CompletedProcess[str]:
    """Return the result of a process that executes a program in its place."""
    script = SCRIPT.format(list(command))
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_arguments_and_exit_status_are_those_of_the_program() -> None:
    done = execute("sh", "-c", "echo $0 $1; exit 5", "a b", "c")
    assert (done.returncode, done.stdout, done.stderr) == (5, "a b c\n", "")


@pytest.mark.parametrize("command", ["{}/a-script", "a-script"])
def test_a_script_that_names_no_interpreter_is_the_shells(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "a-script"
    script.write_text('echo "$0" "$1"; exit 5\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    done = execute(command.format(tmp_path), "a b")
    assert (done.returncode, done.stdout, done.stderr) == (5, f"{script} a b\n", "")


@pytest.mark.parametrize(
    ("command", "status"), [("no-such-program", 127), ("/etc", 126), ("/dev/null", 126)]
)
def test_no_program(command: str, status: int) -> None:
    done = execute(command)
    assert done.returncode == status
    assert done.stderr.startswith(f"penstock: {command}: ")
    assert done.stderr.count("\n") == 1


def test_a_program_that_no_readable_folder_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    # Parts of PATH that are not folders, or cannot be searched, are skipped.
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}/file")
    test_no_program("no-such-program", 127)


def test_a_daemon_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot start a daemon"):
        start_daemon(Settings(folder=str(tmp_path / "file")))


@pytest.mark.parametrize(
    ("program", "limit"), [("sleep 60", "_START_S"), ("false", "_OTHER_START_S")]
)
def test_a_daemon_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, limit: str
) -> None:
    with subprocess.Popen(program.split()) as daemon:
        monkeypatch.setattr(run, "start_daemon", lambda settings: daemon)
        monkeypatch.setattr(run, limit, 0.05)
        messages: list[str] = []
        with pytest.raises(UnavailableError, match="no penstock answers"):
            controlled_environment(
                Settings(folder=str(tmp_path)), "job", say=messages.append
            )
        assert messages == [f"started a private daemon at {tmp_path}"]
        daemon.kill()
