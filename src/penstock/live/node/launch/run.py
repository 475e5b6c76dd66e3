# SPDX-License-Identifier: MIT
"""Get the environment in which a program is controlled.

This process asks the agent of the node for a page. If no daemon serves the node, it
starts a private one, which ends by itself some time after its last job.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import BinaryIO, Final, Protocol, Self

from penstock.errors import InputError, UnavailableError
from penstock.live.node.launch.shim import shim_environment
from penstock.live.settings import Settings
from penstock.live.wire.folder import is_locked, own_folder
from penstock.live.wire.frames import RETRY_S, SILENT_S, START_S, Client
from penstock.live.wire.messages import AttachProcess, PageAssigned
from penstock.native.files import shim_path

__all__ = [
    "JobClaims",
    "PrivateDaemon",
    "Say",
    "controlled_environment",
    "start_daemon",
]


class Say(Protocol):
    """Reports a message to the user."""

    def __call__(self, text: str, *, is_wait: bool) -> None:
        """Report `text`; `is_wait`: it says what the user has to wait for."""


#: How long a private daemon lives without a job (s).
LINGER_S: Final = 10.0


@dataclass(frozen=True)
class JobClaims:
    """What the caller says about a job."""

    nodes: int = 0
    """Number of its nodes; 0: unknown."""
    volume_bytes: float = 0.0
    """Volume of each of its I/O operations; 0: unknown."""
    priority: float = 0.0
    """Its priority; the agent believes one above 0 only from trusted callers."""
    work_s: float = 0.0
    """Time for which it computes between two operations; 0: unknown."""


def controlled_environment(
    settings: Settings,
    job_name: str,
    claims: JobClaims = JobClaims(),
    *,
    inherited: Mapping[str, str] | None = None,
    say: Say | None = None,
) -> dict[str, str]:
    """Return the environment in which this process is controlled as a part of a job.

    A private daemon is started if none answers.

    Parameters
    ----------
    settings
        Where the daemon is.
    job_name
        Name of the job, unique among the jobs of this user.
    claims
        What is known of the job.
    inherited
        The environment to extend; by default the one of this process.
    say
        Called if a private daemon is started, and before the user has to wait for
        seconds, because the daemon does not answer yet.

    Raises
    ------
    UnavailableError
        If no daemon answers in time, or the controller is not reachable.
    InputError
        If the agent refuses the job.
    """
    say = say or _say_nothing
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:
        raise UnavailableError(
            "the working directory is gone", remedy="change to another one with cd"
        ) from None
    # Before a daemon is started, which could not control anything without it.
    library = shim_path()
    with _connect(settings, say) as client:
        reply = client.ask(
            AttachProcess(
                job_name,
                claims.nodes,
                claims.volume_bytes,
                folder,
                claims.priority,
                claims.work_s,
            )
        )
    if not isinstance(reply, PageAssigned):
        raise InputError(
            "the agent gave no page",
            remedy="use the same version of penstock for both",
        )
    prefixes = [Path(prefix) for prefix in reply.prefixes]
    return shim_environment(Path(reply.page), prefixes, inherited, library=library)


def _say_nothing(text: str, *, is_wait: bool) -> None:
    """Report nothing."""


def _connect(settings: Settings, say: Say) -> Client:
    """Return a connection to the daemon; start a private one if there is none."""
    with contextlib.suppress(UnavailableError):
        return Client(settings.client_socket)
    begun_s = time.monotonic()
    notice_s = begun_s + SILENT_S
    with contextlib.ExitStack() as stack:
        daemon: PrivateDaemon | None = None
        while True:
            # A daemon that has locked the folder and does not answer is starting.
            if not is_locked(settings.home):
                if daemon is None:
                    daemon = stack.enter_context(start_daemon(settings))
                    say(f"started a private daemon at {settings.home}", is_wait=False)
                elif daemon.has_ended():
                    return Client(settings.socket)
            time.sleep(RETRY_S)
            try:
                # Not the socket of the system: a daemon that was killed leaves its own.
                return Client(settings.socket)
            except UnavailableError:
                if time.monotonic() > notice_s:
                    say("waiting for a daemon that is starting", is_wait=True)
                    notice_s = inf
                if time.monotonic() > begun_s + START_S:
                    raise


class PrivateDaemon:
    """A daemon that this process has started, and that is not its child.

    RATIONALE: this process becomes the program of the user. A program that waits for
    all its children would wait for the daemon, and be told of its end by SIGCHLD.
    """

    def __init__(self, alive: int) -> None:
        """Take the read end of a pipe whose other end only the daemon has open."""
        self._alive = alive

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._alive)

    def has_ended(self) -> bool:
        """Return True if the daemon has ended: its end of the pipe is closed."""
        return bool(select.select([self._alive], [], [], 0.0)[0])


def start_daemon(settings: Settings) -> PrivateDaemon:
    """Start a private daemon in a new session; its output goes to ``serve.log``."""
    # The log of a folder that another user has made may be a link.
    home = own_folder(settings.home)
    alive, write_end = os.pipe()
    try:
        with (home / "serve.log").open("ab") as log:
            _start_detached(_serve_command(settings), log, write_end)
    except OSError as error:
        os.close(alive)
        raise InputError(
            f"cannot start a daemon: {error.strerror}", where=str(home)
        ) from None
    finally:
        os.close(write_end)
    return PrivateDaemon(alive)


def _start_detached(command: list[str], log: BinaryIO, inherited: int) -> None:
    """Start a process that is not a child of this one and inherits one descriptor.

    A child starts the process and ends; init then becomes its parent.
    """
    import subprocess  # noqa: PLC0415 - to start fast

    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if code := os.waitstatus_to_exitcode(status):
            raise OSError(code, os.strerror(code))
        return
    code = errno.ECHILD
    try:
        subprocess.Popen(  # noqa: S603 - ourselves
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # The daemon must not be controlled, even if this process is.
            env={**os.environ, "PENSTOCK_DISABLE": "1"},
            pass_fds=[inherited],
            start_new_session=True,
        )
        code = 0
    except OSError as error:
        code = error.errno or code
    finally:
        os._exit(code)


def _serve_command(settings: Settings) -> list[str]:
    """Return the command of the daemon, which finds other settings by itself."""
    linger = settings.linger or LINGER_S
    flags = ["--folder", str(settings.home), "--linger", f"{linger} s"]
    return [sys.executable, "-m", "penstock", "serve", *flags]
