# SPDX-License-Identifier: MIT
"""Completion scripts do in each shell what the parsers accept."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from penstock.cli import COMMANDS, main
from penstock.cli.completion import SHELLS
from penstock.cli.description import describe
from penstock.policies import POLICIES

#: Line that is typed -> some words that must be offered, and one that must not be.
LINES = {
    "penstock ": ({"compare", "serve", "completion"}, "--policy"),
    "penstock co": ({"compare", "completion"}, "serve"),
    "penstock compare --pol": ({"--policy"}, "--plot"),
    "penstock compare --policy ": (set(POLICIES), "compare"),
    "penstock compare x.json --policy f": ({"fair-share", "fcfs"}, "set-10"),
    "penstock serve --mode ": ({"control", "dry-run", "off"}, "--mode"),
    "penstock serve --reads ": ({"yes", "no"}, "on"),
    "penstock serve --bandwidth ": ({"learn", "measure"}, "RATE"),
    "penstock ctl ": ({"status", "policy", "off"}, "compare"),
    "penstock ctl policy gr": ({"greedy-com", "greedy-yield"}, "fcfs"),
    "penstock ctl status --js": ({"--json"}, "--folder"),
    "penstock generate s": ({"synthetic", "striped"}, "apex"),
    "penstock schema ins": ({"instance"}, "import"),
    "penstock import --format d": ({"darshan"}, "csv"),
}


@cache
def script(shell: str) -> str:
    return SHELLS[shell](describe())


def words_of(line: str) -> list[str]:
    """Return the words of a line; the last one, perhaps empty, is to be completed."""
    return line.split(" ")


def run(shell: str, code: str) -> set[str]:
    """Run code after the script; return the first words of the lines it prints."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = subprocess.run(
        [shell, *{"zsh": ["-f"], "fish": ["--no-config"]}.get(shell, ["--norc"])],
        input=f"{script(shell)}\n{code}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return {line.split("\t")[0] for line in done.stdout.splitlines() if line}


def in_bash(line: str) -> str:
    words = " ".join(f"'{word}'" for word in words_of(line))
    return (
        f"COMP_WORDS=({words}); COMP_CWORD={len(words_of(line)) - 1}; _penstock\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )


#: Functions of zsh's completion system, which prints what it is given.
_ZSH = """
_describe() { [[ $1 == -o ]] && shift; print -l -- ${${(P)2}%%:*}; }
_files() { : ; }
"""


def in_zsh(line: str) -> str:
    words = " ".join(f"'{word}'" for word in words_of(line))
    return f"{_ZSH}\nwords=({words}); CURRENT={len(words_of(line))}; _penstock"


@pytest.mark.parametrize("line", LINES)
def test_bash(line: str) -> None:
    offered, not_offered = LINES[line]
    found = run("bash", in_bash(line))
    assert offered <= found
    assert not_offered not in found


def test_zsh() -> None:
    """The script is run as zsh's completion system would; that filters by the word."""
    lines = list(LINES)
    code = "\n".join(
        f"{in_zsh(line)}; print -- --- {n}" for n, line in enumerate(lines)
    )
    if shutil.which("zsh") is None:
        pytest.skip("needs zsh")
    body = script("zsh").removesuffix('_penstock "$@"\n')
    done = subprocess.run(
        ["zsh", "-f"],
        input=f"{body}\n{code}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    rest = done.stdout
    for number, line in enumerate(lines):
        printed, _, rest = rest.partition(f"--- {number}\n")
        assert LINES[line][0] <= set(printed.split()), line


def test_fish() -> None:
    lines = list(LINES)
    code = "\n".join(
        f"complete -C '{line}'; echo --- {n}" for n, line in enumerate(lines)
    )
    if shutil.which("fish") is None:
        pytest.skip("needs fish")
    done = subprocess.run(
        ["fish", "--no-config"],
        input=f"{script('fish')}\n{code}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    rest = done.stdout
    for number, line in enumerate(lines):
        printed, _, rest = rest.partition(f"--- {number}\n")
        found = {each.split("\t")[0] for each in printed.splitlines()}
        offered, not_offered = LINES[line]
        assert offered <= found, line
        assert not_offered not in found, line


def test_names_of_files_are_left_to_the_shell() -> None:
    assert run("bash", in_bash("penstock compare --json ")) == set()
    assert "complete -o default -F _penstock penstock\n" in script("bash")


def test_every_command_and_option_is_in_every_script() -> None:
    commands = list(describe().tree())
    assert {command.path[1] for command in commands if len(command.path) == 2} == set(
        COMMANDS
    )
    for command in commands:
        for option in command.options:
            flag = option.flags[-1]
            assert flag in script("bash")
            assert flag in script("zsh")
            assert f"-l {flag[2:]} " in script("fish")


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == script("bash")
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "powershell"])
    assert "invalid choice: 'powershell'" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_reads_the_script_without_complaint(tmp_path: Path) -> None:
    file = tmp_path / "penstock.bash"
    file.write_text(script("bash"))
    subprocess.run(["bash", "-n", str(file)], check=True)
