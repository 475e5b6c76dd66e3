# SPDX-License-Identifier: MIT
"""Executing programs: they start as if `penstock run` had not been there."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

SCRIPT = (
    "from penstock.live.node.launch.execute import *; "
    "execute_program({}, inherited_environment())"
)


def execute(
    *command: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Return the result of a process that executes a program in its place."""
    script = SCRIPT.format(list(command))
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
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


def test_a_parent_may_have_any_name(tmp_path: Path) -> None:
    """The name is a line of a text that tells which signals the parent ignores."""
    shell = os.fsencode(tmp_path) + b"/\xff\rSigIgn: 0"
    shutil.copy(b"/bin/sh", shell)
    command = [sys.executable, "-c", SCRIPT.format(["sh", "-c", "kill -PIPE $$"])]
    script = f"trap '' PIPE; {shlex.join(command)}; echo $?"
    done = subprocess.run([shell, "-c", script], capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"0\n", b"")


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


#: Everything that a program inherits and can look up in /proc, and its umask.
WITNESS = """
umask; pwd -P; nice; cd /proc/self; read children < task/$$/children; echo "$children"
grep -E '^(Sig(Blk|Ign|Cgt)|Cap...|NoNew|Secc|Groups|Cpus|Mems)' /proc/self/status
cat limits oom_score_adj environ cgroup; ls fd
"""


def bit_of(name: str) -> int:
    """Return the bit of a signal in the masks of /proc."""
    return 1 << (signal.Signals[f"SIG{name}"] - 1)


def _ignored(status: str) -> int:
    """Return the mask of ignored signals in the text of /proc/PID/status."""
    line = next(line for line in status.splitlines() if line.startswith("SigIgn"))
    return int(line.split()[1], 16)


@pytest.mark.parametrize(
    "environment",
    [
        {"PATH": "/usr/bin:/bin"},
        {"PATH": "/usr/bin:/bin", "LANG": "C"},
        {"PATH": "/usr/bin:/bin", "LC_CTYPE": "C.UTF-8", "EMPTY": "", "X": "a=b\n"},
    ],
)
def test_a_program_sees_what_it_sees_without_us(environment: dict[str, str]) -> None:
    """Compare everything a program inherits with that of a plain start."""
    environment = {**environment, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    # An absolute path, as in `execute`: from Python 3.13 on, absolute paths are started
    # by posix_spawn, which leaves signals 32 and 33 (of glibc's threads) ignored.
    directly = subprocess.run(
        ["/bin/sh", "-c", WITNESS],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    within = execute("/bin/sh", "-c", WITNESS, environment=environment)
    assert within.stdout == directly.stdout
    assert not _ignored(within.stdout) & (bit_of("PIPE") | bit_of("XFSZ"))


@pytest.mark.parametrize("ignored", ["PIPE", "XFSZ"])
def test_a_signal_that_the_shell_ignores_stays_ignored(ignored: str) -> None:
    script = SCRIPT.format(["grep", "SigIgn", "/proc/self/status"])
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        ["sh", "-c", f"trap '' {ignored}; \"$@\"; exit 0", "sh", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    assert _ignored(done.stdout) & bit_of(ignored)
