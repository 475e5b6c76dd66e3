# SPDX-License-Identifier: MIT
"""`main`: closed and full output streams, and one line for every kind of error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.simulation import policies
from penstock.errors import PolicyError
from support.launchers import BACKGROUND, FOREGROUND

PENSTOCK = [sys.executable, "-m", "penstock"]


def shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which ``"$@"`` is the command penstock."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *PENSTOCK],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "<&- --json - >&-"]
)
def test_closed_streams_are_not_an_error(closed: str) -> None:
    done = shell(f'"$@" policies {closed}')
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_a_file_does_not_take_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    path = tmp_path / "policies.json"
    assert shell(f'"$@" policies --json {path} <&- >&- 2>&-').returncode == 0
    assert path.read_bytes().startswith(b"{")
    assert b"policies: who gets" not in path.read_bytes()


def test_a_started_program_still_has_its_stream_closed() -> None:
    done = shell(
        '"$@" run --quiet --folder /dev/null/x -- sh -c "echo started >&2; echo x" >&-'
    )
    assert done.returncode != 0
    assert done.stderr.startswith("started\n")


def test_a_reader_that_closes_the_pipe_is_not_an_error() -> None:
    done = shell('{ "$@" policies; echo $? >&2; } | head -1')
    assert done.stderr == "0\n"
    assert done.stdout.count("\n") == 1


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="needs /dev/full")
def test_a_full_disk_is_reported() -> None:
    done = shell('"$@" policies > /dev/full')
    assert done.returncode == 2
    assert done.stderr == (
        "penstock: cannot write the output: No space left on device\n"
    )


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["--help", "--version", "compare --help"])
@pytest.mark.parametrize("buffered", ["", "PYTHONUNBUFFERED=1"])
def test_a_full_disk_is_reported_by_the_help_too(option: str, buffered: str) -> None:
    done = shell(f'env -u PYTHONUNBUFFERED {buffered} "$@" {option} > /dev/full')
    assert done.returncode == 2
    assert done.stderr == (
        "penstock: cannot write the output: No space left on device\n"
    )


def raising(error: BaseException) -> Callable[..., int]:
    """Return a command that raises `error`."""

    def act(_: object) -> int:
        raise error

    return act


UNEXPECTED = {
    "memory": (MemoryError(), 70, "not enough memory (give smaller numbers"),
    "array": (MemoryError("Unable to\nallocate"), 70, "memory: Unable to allocate ("),
    "recursion": (RecursionError("too deep"), 70, "internal error: RecursionError"),
    "ours": (ZeroDivisionError("x / 0"), 70, "internal error: ZeroDivisionError: x /"),
    "file": (PermissionError(13, "not allowed", "a/b"), 2, "penstock: a/b: not allo"),
    "socket": (BrokenPipeError(32, "Broken pipe"), 2, "Broken pipe"),
    "policy": (PolicyError("too much"), 2, "penstock: too much"),
}


@pytest.mark.parametrize("case", UNEXPECTED)
def test_every_error_is_reported_in_one_line(
    case: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    error, status, words = UNEXPECTED[case]
    monkeypatch.setattr(policies, "main", raising(error))
    monkeypatch.delenv("PENSTOCK_TRACEBACK", raising=False)
    with os.fdopen(os.dup(1), "w") as stream:
        # A duplicate: `main` may redirect the descriptor of standard output.
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["policies"]) == status
        monkeypatch.undo()
    message = capfd.readouterr().err
    assert words in message
    assert message.startswith("penstock: ")
    assert message.count("\n") == 1


def test_the_traceback_of_a_bug_is_shown_on_request(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(policies, "main", raising(ZeroDivisionError("x / 0")))
    monkeypatch.setenv("PENSTOCK_TRACEBACK", "1")
    assert main(["policies"]) == 70
    message = capfd.readouterr().err
    assert message.startswith("Traceback")
    assert message.endswith("PENSTOCK_TRACEBACK=1 shows where)\n")


def test_an_unknown_option_names_the_help_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--frobnicate"])
    assert capsys.readouterr().err == (
        "penstock compare: unrecognized arguments: --frobnicate "
        "(see penstock compare --help)\n"
    )


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["compair"], "compare"),
        (["ctl", "statsu"], "status"),
        (["status"], "ctl status"),
        (["compare", "--polcy=fcfs"], "--policy"),
    ],
)
def test_a_misspelt_word_gets_the_nearest_one_as_a_hint(
    words: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert f"; did you mean {nearest}? (see penstock" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("module", ["asyncio", "importlib.metadata", "numpy"])
def test_a_start_imports_only_what_its_sub_command_needs(
    module: str, tmp_path: Path
) -> None:
    """Every start of a program under ``penstock run`` waits for these imports."""
    script = (
        "import sys\n"
        "from penstock.cli import main\n"
        "from penstock.live.node.launch import execute, run\n"
        "execute.execute_program = lambda *_: sys.exit(repr(sorted(sys.modules)))\n"
        "main(['run', '--quiet', '--folder', '/dev/null', '--', 'true'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "'penstock.cli.live.run'" in done.stderr
    assert "'penstock.cli.live.bench'" not in done.stderr
    assert f"'{module}'" not in done.stderr


#: Prints the signals that the process ignores, after Polars was imported.
_IGNORED_AFTER = """
import sys
from penstock.cli import main
status = main(sys.argv[1:])
import polars
print(next(line for line in open("/proc/self/status") if line.startswith("SigIgn")))
"""


@pytest.mark.parametrize("launcher", [BACKGROUND, FOREGROUND])
def test_ctrl_c_stays_ignored_in_a_background_job(launcher: tuple[str, ...]) -> None:
    """Polars installs a handler for SIGINT: a background job was stopped by Ctrl-C."""
    pytest.importorskip("polars")
    done = subprocess.run(
        [*launcher, sys.executable, "-c", _IGNORED_AFTER, "policies"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    mask = int(done.stdout.split()[-1], 16)
    assert bool(mask & 1 << (signal.SIGINT - 1)) == (launcher is BACKGROUND)
