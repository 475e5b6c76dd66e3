# SPDX-License-Identifier: MIT
"""Start a program under control, or without it if anything is amiss.

The agent is asked for a page; if nobody serves, a private daemon is started, which
ends by itself some time after the last job. Then this process becomes the program: its
exit status, its signals and its descriptors are its own.
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

__all__ = ["become", "controlled_environment", "start_daemon"]

#: How long a private daemon may take to answer (s).
_START_S: Final = 20.0
#: How long to wait for the one that kept it from starting (s).
_OTHER_S: Final = 3.0
#: How long it stays when there is no job (s).
LINGER_S: Final = 10.0
_LOOK_S: Final = 0.02
_SHELL: Final = "/bin/sh"


def controlled_environment(
    settings: Settings,
    job: str,
    *,
    nodes: int = 0,
    volume: float = 0.0,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, str]:
    """Return the environment that puts this process under control, as part of a job.

    Start a private daemon if none answers, and report that with `say`.

    Raises
    ------
    UnavailableError
        If no daemon answers in time, or the controller is not reachable.
    InputError
        If the agent refuses the job.
    """
    folder = str(Path.cwd())
    with _connected(settings, say) as client:
        reply = client.ask(AttachProcess(job, nodes, volume, folder))
    if not isinstance(reply, PageAssigned):
        raise InputError("the agent gave no page", remedy="check its version")
    return shim_environment(Path(reply.page), [Path(p) for p in reply.prefixes])


def become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Become the program; exit with 127 or 126 if it is not there or no program."""
    try:
        _execute(_found(command[0], environment.get("PATH")), command, environment)
    except OSError as error:
        reason = error.strerror or str(error)
        sys.stderr.write(f"penstock: {command[0]}: {reason}\n")
        sys.stderr.flush()
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _found(name: str, path: str | None) -> str:
    """Return the file of a program; parts of PATH that cannot be searched are none."""
    if "/" in name:
        return name
    found = shutil.which(name, path=path) or shutil.which(name, os.F_OK, path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return found


def _execute(
    program: str, command: Sequence[str], environment: Mapping[str, str]
) -> NoReturn:
    """Become the program; the shell runs a script that names no interpreter."""
    try:
        os.execve(program, list(command), dict(environment))  # noqa: S606
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        words = [_SHELL, program, *command[1:]]
        os.execve(_SHELL, words, dict(environment))  # noqa: S606


def _connected(settings: Settings, say: Callable[[str], None]) -> Client:
    with contextlib.suppress(UnavailableError):
        return Client(settings.found_socket)
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
            # Somebody else serves, who may be starting, too.
            deadline = min(deadline, time.monotonic() + _OTHER_S)
        time.sleep(_LOOK_S)


def start_daemon(settings: Settings) -> subprocess.Popen[bytes]:
    """Start a private daemon in a session of its own, which writes only to a log."""
    home = settings.home
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (home / "serve.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-m", "penstock", "serve", *_flags(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # It must not be controlled itself, if its starter is.
                env={**os.environ, "PENSTOCK_DISABLE": "1"},
                start_new_session=True,
            )
    except OSError as error:
        raise InputError(
            f"no daemon can be started: {error.strerror}", where=str(home)
        ) from None


def _flags(settings: Settings) -> list[str]:
    """Return flags for what the environment and the file do not say."""
    linger = settings.linger or LINGER_S
    return ["--folder", str(settings.home), "--linger", f"{linger} s"]
