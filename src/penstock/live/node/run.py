# SPDX-License-Identifier: MIT
"""Start a program under control.

This process asks the agent of the node for a page. If no daemon serves the node, it
starts a private one, which ends by itself some time after its last job. Then this
process executes the program, so exit status, signals and descriptors are the program's
own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from penstock.errors import InputError, UnavailableError
from penstock.live.node.shim import shim_environment
from penstock.live.settings import Settings
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import AttachProcess, PageAssigned

__all__ = ["controlled_environment", "execute_program", "start_daemon"]

#: How long a private daemon may take to answer (s).
_START_S: Final = 20.0
#: How long to wait for the daemon of another process that is starting as well (s).
_OTHER_START_S: Final = 3.0
#: How long a private daemon lives without a job (s).
LINGER_S: Final = 10.0
#: Time between two attempts to connect (s).
_RETRY_S: Final = 0.02
_SHELL: Final = "/bin/sh"


def controlled_environment(
    settings: Settings,
    job_name: str,
    *,
    nodes: int = 0,
    volume_bytes: float = 0.0,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, str]:
    """Return the environment in which this process is controlled as a part of a job.

    A private daemon is started if none answers.

    Parameters
    ----------
    settings
        Where the daemon is.
    job_name
        Name of the job, unique among the jobs of this user.
    nodes
        Number of nodes of the job; 0: unknown.
    volume_bytes
        Volume of each I/O operation of the job; 0: unknown.
    say
        Called with a message if a private daemon is started.

    Raises
    ------
    UnavailableError
        If no daemon answers in time, or the controller is not reachable.
    InputError
        If the agent refuses the job.
    """
    folder = str(Path.cwd())
    with _connect(settings, say) as client:
        reply = client.ask(AttachProcess(job_name, nodes, volume_bytes, folder))
    if not isinstance(reply, PageAssigned):
        raise InputError(
            "the agent gave no page",
            remedy="use the same version of penstock for both",
        )
    return shim_environment(Path(reply.page), [Path(p) for p in reply.prefixes])


def execute_program(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Execute a program in place of this process.

    Exits with 127 if the program does not exist, with 126 if it cannot be executed.
    """
    try:
        _execute(_find(command[0], environment.get("PATH")), command, environment)
    except OSError as error:
        reason = error.strerror or str(error)
        sys.stderr.write(f"penstock: {command[0]}: {reason}\n")
        sys.stderr.flush()
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


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


def _connect(settings: Settings, say: Callable[[str], None]) -> Client:
    with contextlib.suppress(UnavailableError):
        return Client(settings.client_socket)
    daemon = start_daemon(settings)
    say(f"started a private daemon at {settings.home}")
    deadline = time.monotonic() + _START_S
    while True:
        try:
            return Client(settings.socket)
        except UnavailableError:
            if time.monotonic() > deadline:
                raise
        if daemon.poll() is not None:
            # Another daemon has the folder; it may still be starting.
            deadline = min(deadline, time.monotonic() + _OTHER_START_S)
        time.sleep(_RETRY_S)


def start_daemon(settings: Settings) -> subprocess.Popen[bytes]:
    """Start a private daemon in a new session; its output goes to ``serve.log``."""
    home = settings.home
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (home / "serve.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-m", "penstock", "serve", *_flags(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The daemon must not be controlled, even if this process is.
                env={**os.environ, "PENSTOCK_DISABLE": "1"},
                start_new_session=True,
            )
    except OSError as error:
        raise InputError(
            f"cannot start a daemon: {error.strerror}", where=str(home)
        ) from None


def _flags(settings: Settings) -> list[str]:
    """Return the options of the daemon; it reads all others from the environment."""
    linger = settings.linger or LINGER_S
    return ["--folder", str(settings.home), "--linger", f"{linger} s"]
