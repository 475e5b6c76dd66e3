# SPDX-License-Identifier: MIT
"""What a target driver does, and how drivers call the tools of a file system."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from penstock.errors import InputError, UnavailableError

__all__ = ["TOOL_TIMEOUT_S", "Driver", "call", "distinct"]

#: A tool that has not answered by then will not: its servers are away.
TOOL_TIMEOUT_S: Final = 30.0


class Driver(Protocol):
    """Decides where the new files of a directory go."""

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Let files that are created in `directory` from now on go to `targets`.

        Doing so again changes nothing. An `InputError` says what stands in the way;
        the directory is then as before.
        """


def call(arguments: Sequence[str], *, where: str) -> str:
    """Run a tool of the file system and return what it printed."""
    try:
        done = subprocess.run(  # noqa: S603 - made by a driver, no shell
            arguments,
            check=True,
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise InputError(
            f"{arguments[0]} is not installed",
            where=where,
            remedy="install the client tools of the file system on this node",
        ) from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(
            f"{arguments[0]} did not answer within {TOOL_TIMEOUT_S:g} s",
            where=where,
            remedy="are the servers of the file system up?",
        ) from None
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        what = said[-1] if said else f"exit status {error.returncode}"
        raise InputError(f"{' '.join(arguments)}: {what}", where=where) from None
    return done.stdout


def distinct(targets: Sequence[str], *, where: str) -> tuple[str, ...]:
    """Return the targets without repetition, in order; there must be one."""
    if not targets:
        raise InputError(
            "no target is left for it",
            where=where,
            remedy="give every application a target, or let it stage",
        )
    return tuple(dict.fromkeys(targets))
