# SPDX-License-Identifier: MIT
"""Execute a program in place of this process, as if it had been started directly.

The Python interpreter changes three things when it starts, and a program would inherit
them. `execute_program` and `inherited_environment` undo them:

- It ignores SIGPIPE and SIGXFSZ. Without SIGPIPE, ``yes | head -1`` never ends.
- If no locale is set, it sets LC_CTYPE to a UTF-8 locale (PEP 538).

Everything else (mask of blocked signals, limits, priority, descriptors, working folder,
umask) is untouched.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from penstock.kernel_text import kernel_lines

__all__ = ["execute_program", "inherited_environment"]

_SHELL: Final = "/bin/sh"
#: Signals that the interpreter ignores.
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
#: Programs that ignore SIGPIPE themselves and restore it in the processes they start.
_RESTORING_PARENTS: Final = ("python", "node")


def inherited_environment() -> dict[str, str]:
    """Return the environment with which this process was started.

    The kernel keeps it as it was; `os.environ` includes what the interpreter changed.
    """
    try:
        block = Path("/proc/self/environ").read_bytes()
    except OSError:  # no /proc
        return dict(os.environ)
    pairs = (entry.partition(b"=") for entry in block.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, eq, value in pairs if eq}


def execute_program(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Execute a program in place of this process.

    Exits with 127 if the program does not exist, with 126 if it cannot be executed.
    """
    for number in _IGNORED_BY_PYTHON:
        if not _parent_hands_on_ignored(number):
            signal.signal(number, signal.SIG_DFL)
    try:
        _execute(_find(command[0], environment.get("PATH")), command, environment)
    except OSError as error:
        reason = error.strerror or str(error)
        sys.stderr.write(f"penstock: {command[0]}: {reason}\n")
        sys.stderr.flush()
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _parent_hands_on_ignored(number: signal.Signals) -> bool:
    """Return True if the parent ignores a signal and its children inherit that.

    RATIONALE: the interpreter does not tell whether a signal was ignored before it
    started. A shell after ``trap '' PIPE`` and the service manager hand an ignored
    SIGPIPE on, and their programs expect EPIPE instead of death.
    """
    folder = Path("/proc") / str(os.getppid())
    try:
        name = _program_name(folder)
        lines = kernel_lines((folder / "status").read_bytes())
        mask = next(line.split()[1] for line in lines if line.startswith("SigIgn:"))
    except (OSError, StopIteration):  # no /proc, or the parent has ended
        return False
    ignored = bool(int(mask, 16) >> (number - 1) & 1)
    return ignored and not name.startswith(_RESTORING_PARENTS)


def _program_name(folder: Path) -> str:
    """Return the name of a process's program, given its folder in /proc."""
    try:
        return (folder / "exe").readlink().name
    except OSError:  # a process of another user
        return os.fsdecode((folder / "comm").read_bytes()).removesuffix("\n")


def _find(name: str, path: str | None) -> str:
    """Return the file of a program, searched in `path` as a shell does."""
    if "/" in name:
        return name
    file = shutil.which(name, path=path) or shutil.which(name, os.F_OK, path)
    if file is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return file


def _execute(
    program: str, command: Sequence[str], environment: Mapping[str, str]
) -> NoReturn:
    """Execute a program; a script without ``#!`` line is run by the shell."""
    try:
        os.execve(program, list(command), dict(environment))  # noqa: S606
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        words = [_SHELL, program, *command[1:]]
        os.execve(_SHELL, words, dict(environment))  # noqa: S606
