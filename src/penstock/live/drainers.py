# SPDX-License-Identifier: MIT
"""Processes that drain journals, started by the agent; nobody waits for them.

Beside a job that stages runs a `Drainer`, which draws on the job's page. What jobs have
left behind is drained without a page, and nobody holds that up. Both are the preload
library (``native/stage_drainer.c``) in a small program that every system has and that
never begins; and both run as the user whose journals they drain: a journal says which
file is written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
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
    return _started(folder, user, group, {"PENSTOCK_PAGE": str(page)})


def drain_after(folder: Path, user: int, group: int) -> None:
    """Start to drain what programs of a user that have ended have left in a folder."""

    def run() -> None:
        with contextlib.suppress(InputError, OSError, subprocess.SubprocessError):
            _started(folder, user, group, {}).wait()

    # A library that is not there yet is compiled, which takes seconds.
    threading.Thread(target=run, daemon=True).start()


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
    folder: Path, user: int, group: int, variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the library in a process of a user, with nothing of our own control."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise InputError(f"there is no program `{_PROGRAM}`", remedy="check PATH")
    other: dict[str, Any] = {}
    if user != os.geteuid():
        other = {"user": user, "group": group, "extra_groups": []}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    # By its descriptor: the cache of who owns it is closed to other users.
    library = os.open(shim_path(), os.O_RDONLY | os.O_CLOEXEC)
    ours = {
        "LD_PRELOAD": f"/proc/self/fd/{library}",
        "PENSTOCK_STAGING": str(folder),
        "PENSTOCK_DRAIN": f"{LINGER_S * 1e3:.0f}",
    }
    try:
        return subprocess.Popen(  # noqa: S603 - it never begins
            [_NAME],
            executable=program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**inherited, **ours, **variables},
            cwd="/",
            pass_fds=(library,),
            start_new_session=True,
            **other,
        )
    finally:
        os.close(library)
