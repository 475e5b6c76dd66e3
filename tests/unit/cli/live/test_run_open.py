# SPDX-License-Identifier: MIT
"""``penstock run`` starts the program, whatever goes wrong before."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.live import run as run_command
from penstock.errors import InputError
from penstock.live.node.launch import execute as execute_module
from penstock.live.node.launch import run, shim
from penstock.live.node.launch.check import Controllability, Finding


class Executed(BaseException):
    """The process would execute another program now."""


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `execute_program` raise `Executed` instead of replacing the process."""

    def execute(command: list[str], environment: dict[str, str]) -> None:
        raise Executed(*command, *(key for key in environment if "STAGING" in key))

    monkeypatch.setattr(execute_module, "execute_program", execute)


@pytest.mark.usefixtures("executed")
@pytest.mark.parametrize(
    "error", [ZeroDivisionError("x"), MemoryError(), OverflowError(), OSError(5, "x")]
)
def test_an_error_of_penstock_does_not_stop_the_program(
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run, "controlled_environment", broken)
    monkeypatch.setattr(shim, "staged_environment", broken)
    with pytest.raises(Executed, match="true"):
        main(["run", "--stage", "/x", "--", "true"])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1] for line in lines] == [
        " without control",
        " without staging",
    ]


def test_a_job_without_a_name_is_named_after_its_program() -> None:
    own = f"-{os.getpid()}-"
    assert run_command._own_name("/usr/bin/python3").startswith(f"python3{own}")
    assert run_command._own_name("./a\nb\udcff").startswith(f"a?b\ufffd{own}")
    assert run_command._own_name("x" * 300).startswith(f"{'x' * 40}{own}")
    assert run_command._own_name("..").startswith("..")
    assert run_command._own_name("/").startswith(f"program{own}")


@pytest.mark.usefixtures("executed")
def test_a_folder_of_journals_that_is_made_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        run, "controlled_environment", lambda *_, **__: dict(os.environ)
    )
    monkeypatch.chdir(tmp_path)
    for options, line in (
        (["--stage", "journls"], "penstock: made the folder journls for journals\n"),
        (["--stage", "journls"], ""),
        (["--quiet", "--stage", "others"], ""),
    ):
        with pytest.raises(Executed):
            main(["run", *options, "--", "true"])
        assert capsys.readouterr().err == line


@pytest.mark.usefixtures("executed")
def test_a_working_directory_that_is_gone_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(Executed):
        main(["run", "--", "true"])
    gone = "the working directory is gone (change to another one with cd)"
    assert capsys.readouterr().err.startswith(f"penstock: without control: {gone}")
    assert main(["compare", "x.json", "--json", "result.json"]) == 2
    assert capsys.readouterr().err == f"penstock: {gone}\n"


@pytest.mark.usefixtures("executed")
@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("PENSTOCK_STAGING_SIZE", "much", "PENSTOCK_STAGING_SIZE: 'much'"),
        ("PENSTOCK_STAGING", "/dev/null", "/dev/null: the folder of the journals"),
        (
            "PENSTOCK_STAGING_WHEN",
            "alwys",
            "PENSTOCK_STAGING_WHEN: unknown value 'alwys' (did you mean 'always'?",
        ),
        ("PENSTOCK_STAGING_DURABLE", "maybe", "unknown durability 'maybe'"),
    ],
)
def test_a_program_that_cannot_be_staged_runs_unstaged(
    variable: str,
    value: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        run, "controlled_environment", lambda *_, **__: dict(os.environ)
    )
    monkeypatch.setenv("PENSTOCK_STAGING", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_STAGING_WHEN", "always")
    monkeypatch.setenv(variable, value)
    with pytest.raises(Executed) as caught:
        main(["run", "--", "true"])
    assert caught.value.args == ("true",)
    assert capsys.readouterr().err.startswith(f"penstock: without staging: {reason}")


@pytest.mark.usefixtures("executed")
@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (Finding(Controllability.NOT, "it is static", "link it"), "it is static"),
        (None, ""),
        (InputError("no such program"), ""),
        (OSError("cannot be mapped"), ""),
    ],
)
def test_a_program_that_loads_no_library_is_reported(
    refused: Finding | Exception | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refusal(program: str) -> Finding | None:
        if isinstance(refused, Exception):
            raise refused
        return refused

    monkeypatch.setattr(
        run, "controlled_environment", lambda *_, **__: dict(os.environ)
    )
    monkeypatch.setattr("penstock.live.node.launch.check.refusal", refusal)
    for option in ([], ["--quiet"]):
        with pytest.raises(Executed, match="program"):
            main(["run", *option, "--", "program"])
        shown = capsys.readouterr().err
        assert shown.startswith(f"penstock: without control: {message}"[: len(shown)])
        assert bool(shown) == bool(message and not option)
    if message:
        assert main(["run", "--require-control", "--", "program"]) == 2
        assert f"cannot be controlled: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [("--nodes", "9" * 30), ("--job", b"\xff"), ("--job", "a" * 5000)]
)
def test_a_program_runs_although_its_options_are_invalid(
    options: tuple[str | bytes, ...], tmp_path: Path
) -> None:
    penstock = [sys.executable, "-m", "penstock", "run", "--folder", str(tmp_path)]
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent.sock"))
        agent.listen()
        done = subprocess.run(
            [*penstock, *options, "--", "sh", "-c", "exit 5"], check=False, timeout=120
        )
    assert done.returncode == 5


@pytest.mark.usefixtures("executed")
@pytest.mark.parametrize(
    ("options", "is_terminal", "lines"),
    [
        ([], True, ["waits"]),
        ([], False, []),
        (["--quiet"], True, []),
        (["--verbose"], False, ["news", "waits"]),
    ],
)
def test_a_user_at_a_terminal_is_told_what_takes_time(
    options: list[str],
    is_terminal: bool,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def controlled(*_: object, say: run.Say, **__: object) -> dict[str, str]:
        say("news", is_wait=False)
        say("waits", is_wait=True)
        return {}

    monkeypatch.setattr(run, "controlled_environment", controlled)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with pytest.raises(Executed):
        main(["run", *options, "--", "true"])
    shown = capsys.readouterr().err.splitlines()
    assert shown == [f"penstock: {line}" for line in lines]
