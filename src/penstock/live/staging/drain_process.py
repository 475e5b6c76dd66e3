# SPDX-License-Identifier: MIT
"""Start the preload library as a process that drains journals.

There is one implementation of draining: ``native/stage`` in the preload library.
``native/stage/stage_drainer.c`` makes a process of it: a small program that every
system has (``true``) is started with the library and with ``PENSTOCK_DRAIN`` in its
environment; the library drains, and the program itself never begins. The process may be
killed at any time: the next drain continues.

`start_drainer` starts it for any user, as the agent does. `NamedDrain` has it drain one
journal after the other and tell what became of each, as ``penstock drain`` does.

A process for another user begins as root. The library has it join the cgroups of the
job and become that user before it looks at anything that belongs to the user. A
debugger of the user can never attach to it: if it became the user before the program is
executed, the kernel would allow a debugger until the library is loaded.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from penstock.errors import InputError, UnavailableError
from penstock.live.ending import KILL_S, end_process
from penstock.live.wire.identity import known_user
from penstock.native.files import shim_path

__all__ = ["NamedDrain", "start_drainer"]

#: A drainer beside a job ends when it has drained nothing for this long (s).
LINGER_S: Final = 5.0
#: `NamedDrain` gives a journal up that another process holds and does not drain (s).
PATIENCE_S: Final = 30.0
#: The program that loads the library, and the name that it is shown by.
_PROGRAM: Final = "true"
_NAME: Final = "penstock-drain"


def start_drainer(
    folder: Path,
    user: int,
    group: int | None = None,
    variables: Mapping[str, str] | None = None,
    cgroups: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start to drain the journals in `folder`, as a process of a user.

    Parameters
    ----------
    user, group
        Numbers of the user who owns the journals and of its group; None: the group
        that the system's table of users says.
    variables
        Environment variables that say what is drained: see ``stage_drainer.c``.
    cgroups
        Descriptors of the cgroups that the process joins: see `open_cgroups`.
    """
    described = {"PENSTOCK_DRAIN": _milliseconds(LINGER_S)} | dict(variables or {})
    options: dict[str, Any] = {}
    if user != os.geteuid():
        described["PENSTOCK_DRAIN_USER"] = str(user)
        options = _groups(user, group)
    if cgroups:
        described["PENSTOCK_DRAIN_CGROUPS"] = ",".join(map(str, cgroups))
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    return _start(folder, described, cgroups, **quiet, **options)


class NamedDrain:
    """Drains journals one after the other, as ``penstock drain`` does.

    The process draws on the job's page if this one belongs to a job. It is killed when
    the object is closed, which does no harm.

    Parameters
    ----------
    folder
        The folder of the journals.

    Raises
    ------
    InputError
        If the library cannot be had or loaded. No journal was touched.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = _start_named(folder)

    def drain(self, name: str) -> int:
        """Drain the journal of this name, and wait until that is done.

        Returns
        -------
        int
            0 or the number of an error: see ``foreign_drain`` in
            ``native/stage/stage.h``. `errno.EINTR` if the process died: the journal is
            kept.
        """
        if self._process.poll() is not None:
            self.close()
            self._process = _start_named(self._folder)
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(os.fsencode(name) + b"\0")
        answer = self._process.stdout.readline()
        if answer:
            return int(answer)
        try:
            status = self._process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            return errno.EINTR
        if status == 0:
            raise InputError(
                f"`{_PROGRAM}` did not load the preload library",
                where=str(self._folder),
                remedy=f"check that {shutil.which(_PROGRAM)} is dynamically linked",
            )
        return errno.EINTR

    def close(self) -> None:
        """End the process."""
        end_process(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _start_named(folder: Path) -> subprocess.Popen[bytes]:
    variables = {
        "PENSTOCK_DRAIN": _milliseconds(PATIENCE_S),
        "PENSTOCK_DRAIN_NAMED": "1",
    }
    page = os.environ.get("PENSTOCK_PAGE")
    if page:
        variables["PENSTOCK_PAGE"] = page
    pipe = subprocess.PIPE
    pipes: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "bufsize": 0}
    try:
        return _start(folder, variables, **pipes)
    except InputError as error:
        raise InputError(
            f"nothing can be drained without the preload library: {error.what}",
            where=error.where or str(folder),
            remedy=f"{error.remedy}; all journals are kept",
        ) from error
    except OSError as error:
        raise UnavailableError(
            f"the process that drains cannot be started: {error.strerror}",
            where=str(folder),
            remedy="try again; all journals are kept",
        ) from error


def _start(
    folder: Path,
    variables: Mapping[str, str],
    inherited: Sequence[int] = (),
    **options: Any,
) -> subprocess.Popen[bytes]:
    program = shutil.which(_PROGRAM)
    if program is None:
        raise InputError(f"there is no program `{_PROGRAM}`", remedy="check PATH")
    # By its descriptor: other users may not enter the folder that the library is in.
    library = os.open(shim_path(), os.O_RDONLY | os.O_CLOEXEC)
    environment = {
        "LD_PRELOAD": f"/proc/self/fd/{library}",
        "PENSTOCK_STAGING": str(folder.absolute()),
    }
    try:
        return subprocess.Popen(  # noqa: S603 - a fixed program, which never begins
            [_NAME],
            executable=program,
            stderr=subprocess.DEVNULL,
            # Nothing of our own environment: the user can read it.
            env={**environment, **variables},
            cwd="/",
            pass_fds=(library, *inherited),
            start_new_session=True,
            **options,
        )
    finally:
        os.close(library)


def _milliseconds(duration_s: float) -> str:
    return f"{duration_s * 1e3:.0f}"


def _groups(user: int, group: int | None) -> dict[str, Any]:
    """Return the options of `subprocess.Popen` that give a process a user's groups.

    The process has all groups of that user, and never the group of a folder, which may
    be anybody's.
    """
    known = known_user(user)
    if known is None:
        if group is None:
            raise InputError(
                f"user {user} is not known", remedy="drain as root or as that user"
            )
        return {"group": group, "extra_groups": []}
    main = known.group if group is None else group
    return {"group": main, "extra_groups": list(known.groups)}
