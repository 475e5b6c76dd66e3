# SPDX-License-Identifier: MIT
"""Storage targets for jobs that penstock has not started.

A folder that appears where the setting `job_folder` expects one is the arrival of a job
of this name and of the user who owns it, unless such a job has joined or the daemon has
made the folder for one. It gets targets like any other. It has ended when its folder is
removed, or when no file was made in it for `IDLE_S`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.live.control.names import name_of
from penstock.live.staging.folder_watch import (
    FolderChanges,
    FolderWatch,
    UserFolderWatch,
)
from penstock.live.wire.messages import TextAnswer

if TYPE_CHECKING:
    from penstock.live.control.placing import JobPlacer
    from penstock.live.control.rates.jobs import JobHistory
    from penstock.live.staging.partitioner import Partitioner

__all__ = ["JobFolders"]

_LOG: Final = logging.getLogger("penstock.serve")
#: How often folders are looked for (s).
_LOOK_S: Final = 2.0


class JobFolders:
    """Places jobs whose folders appear.

    Parameters
    ----------
    recall
        Returns the saved history of a job key, or None.
    is_here
        Returns True if the job of this key has joined.
    """

    def __init__(
        self,
        watch: FolderWatch | UserFolderWatch,
        placer: JobPlacer,
        partitioner: Partitioner,
        recall: Callable[[str], JobHistory | None],
        is_here: Callable[[str], bool],
    ) -> None:
        self._watch, self._placer, self._partitioner = watch, placer, partitioner
        self._recall, self._is_here = recall, is_here
        #: Job key -> its targets and the reason.
        self._reasons: dict[str, str] = {}
        self._closed = threading.Event()

    def start(self) -> None:
        """Look for folders in a thread, until `close`; call it in the event loop.

        The thread does not delay the end of the daemon if the file system hangs.
        """
        loop = asyncio.get_running_loop()
        looks = partial(self._look_forever, loop)
        threading.Thread(target=looks, name="job folders", daemon=True).start()

    def close(self) -> None:
        """Look for folders no more."""
        self._closed.set()

    def _look_forever(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._closed.is_set():
            changes = self._watch.look(time.monotonic())
            # The loop may have been closed meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self.apply, changes)
            self._closed.wait(_LOOK_S)

    def apply(self, changes: FolderChanges) -> None:
        """Place jobs that have arrived, and free the targets of those that ended."""
        for job_key in changes.appeared:
            # A job that penstock started may have ended before its folder was seen.
            is_made = self._partitioner.take_made(job_key)
            if not is_made and not self._is_here(job_key):
                self._arrive(job_key)
        for job_key in changes.ended:
            if self._reasons.pop(job_key, None) and not self._is_here(job_key):
                self._placer.leave(job_key)
                self._partitioner.forget(job_key)

    def explanation(self, name: str, user: int | None = None) -> TextAnswer | None:
        """Return which targets a job has and why; None: there is no such folder.

        `name` is that of the job, or its key. Only jobs of `user` count; None: those of
        all users, with a line for each.
        """
        keys = [
            job_key
            for job_key in self._reasons
            if name in (job_key, name_of(job_key))
            and (user is None or job_key.startswith(f"{user}:"))
        ]
        lines = map(self._explained, keys)
        return TextAnswer("\n".join(lines), keys) if keys else None

    def _explained(self, job_key: str) -> str:
        failure = self._partitioner.failures.get(job_key)
        but = f" But its folder is not on these targets: {failure}." if failure else ""
        return self._reasons[job_key] + but

    def _arrive(self, job_key: str) -> None:
        targets, reason = self._placer.join_folder(job_key, self._recall(job_key))
        is_own = job_key.startswith(f"{os.geteuid()}:")
        shown = name_of(job_key) if is_own else job_key
        self._reasons[job_key] = f"{shown} is known by its folder only. {reason}"
        # A user can make many folders: the log of the daemon must not grow by them.
        log = _LOG.info if is_own else _LOG.debug
        log("job folder %r: %s", shown, reason)
        if targets:
            self._partitioner.move({job_key: targets})
