# SPDX-License-Identifier: MIT
"""Processes that drain journals, started by the agent; nobody waits for them.

Beside a job that stages runs a `Drainer`: the preload library in a process of its own
(``native/stage_drainer.c``), which draws on the job's page. It is a small program that
every system has and that never begins: whoever owns the job can run it. What jobs have
left behind is drained by ``penstock drain --orphans``, which nobody holds up.

Both are processes of the user whose journals they drain: a journal says which file is
written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError
from penstock.live.shim import shim_path

__all__ = ["MEMORY", "Drainer", "drain_after", "drain_beside", "drain_left_behind"]

#: Before the number of a user: the folder of its journals in memory.
MEMORY: Final = "/dev/shm/penstock-"  # noqa: S108
#: A drainer ends when nothing was staged for this long (s).
LINGER_S: Final = 5.0
#: No two starts for one job are closer (s).
_RETRY_S: Final = 2.0
#: The program that loads the library, and the name that it goes by.
_PROGRAM: Final = "true"
_NAME: Final = "penstock-drain"


class Drainer:
    """Drains the journals of one job beside its programs, at the job's rate.

    Parameters
    ----------
    page
        The page of the job.
    user, group
        Numbers of the user who owns the job, and of its group.
    """

    def __init__(self, page: Path, user: int, group: int) -> None:
        self._page = page
        self._user, self._group = user, group
        self._started = -inf
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether it is there, or is being started."""
        return self._thread is not None and self._thread.is_alive()

    def keep(self, folder: Path) -> None:
        """See to it that it runs, or is started soon, for the journals in `folder`."""
        now = time.monotonic()
        if self.is_running or now - self._started < _RETRY_S:
            return
        self._started = now
        # A library that is not there yet is compiled, which takes seconds.
        self._thread = threading.Thread(target=self._run, args=(folder,), daemon=True)
        self._thread.start()

    def _run(self, folder: Path) -> None:
        with contextlib.suppress(InputError, OSError, subprocess.SubprocessError):
            drain_beside(self._page, folder, self._user, self._group).wait()


def drain_beside(
    page: Path, folder: Path, user: int, group: int
) -> subprocess.Popen[bytes]:
    """Start to drain the journals of the job that has this page."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise InputError(f"there is no program `{_PROGRAM}`", remedy="check PATH")
    # By its descriptor: the owner's cache is closed to other users.
    library = os.open(shim_path(), os.O_RDONLY | os.O_CLOEXEC)
    variables = {
        "LD_PRELOAD": f"/proc/self/fd/{library}",
        "PENSTOCK_PAGE": str(page),
        "PENSTOCK_STAGING": str(folder),
        "PENSTOCK_DRAIN": f"{LINGER_S * 1e3:.0f}",
    }
    try:
        return _started(
            [_NAME], user, group, variables, executable=program, pass_fds=(library,)
        )
    finally:
        os.close(library)


def drain_after(folder: Path, user: int, group: int) -> None:
    """Drain what programs of a user have left behind in a folder."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "penstock",
        "drain",
        "--orphans",
        str(folder),
    ]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        process = _started(command, user, group, {"PENSTOCK_DISABLE": "1"})
        threading.Thread(target=process.wait, daemon=True).start()


def drain_left_behind(patterns: Iterable[str]) -> None:
    """Drain what is left behind in memory, and in the folders that match patterns.

    For every user whose files this process may write.
    """
    for place in (f"{MEMORY}*", *patterns):
        for folder in Path("/").glob(place.lstrip("/")):
            with contextlib.suppress(OSError):
                status = folder.lstat()
                ours = os.geteuid() in (0, status.st_uid)
                if ours and stat.S_ISDIR(status.st_mode) and _has_journals(folder):
                    drain_after(folder, status.st_uid, status.st_gid)


def _has_journals(folder: Path) -> bool:
    return any(folder.glob("*.journal"))


def _started(
    command: Sequence[str],
    user: int,
    group: int,
    variables: Mapping[str, str],
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program as a user, with nothing of this process's own control."""
    if user != os.geteuid():
        options |= {"user": user, "group": group, "extra_groups": []}
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("PENSTOCK_")
    }
    return subprocess.Popen(  # noqa: S603 - ourselves
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**inherited, **variables},
        cwd="/",
        start_new_session=True,
        **options,
    )
