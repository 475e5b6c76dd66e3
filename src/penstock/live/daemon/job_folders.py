# SPDX-License-Identifier: MIT
"""Storage targets for jobs that penstock has not started.

A folder of the user who runs the daemon that appears where the setting `job_folder`
expects one is the arrival of a job of this name, unless such a job has joined or the
daemon has made the folder for one. It gets targets like any other. It has ended when
its folder is removed, or when no file was made in it for `IDLE_S`.
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

from penstock.live.staging.folder_watch import FolderChanges, FolderWatch

if TYPE_CHECKING:
    from penstock.live.control.jobs import JobHistory
    from penstock.live.control.placing import JobPlacer
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
        watch: FolderWatch,
        placer: JobPlacer,
        partitioner: Partitioner,
        recall: Callable[[str], JobHistory | None],
        is_here: Callable[[str], bool],
    ) -> None:
        self._watch, self._placer, self._partitioner = watch, placer, partitioner
        self._recall, self._is_here = recall, is_here
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
        for name in changes.appeared:
            # A job that penstock started may have ended before its folder was seen.
            is_made = self._partitioner.take_made(_key(name))
            if not is_made and not self._is_here(_key(name)):
                self._arrive(name)
        for name in changes.ended:
            key = _key(name)
            if self._reasons.pop(name, None) and not self._is_here(key):
                self._placer.leave(key)
                self._partitioner.forget(key)

    def explanation(self, name: str) -> str | None:
        """Return which targets a job has and why; None: there is no such folder."""
        reason = self._reasons.get(name)
        if reason and (failure := self._partitioner.failures.get(_key(name))):
            reason += f" But its folder is not on these targets: {failure}."
        return reason

    def _arrive(self, name: str) -> None:
        key = _key(name)
        targets, reason = self._placer.join_folder(key, self._recall(key))
        self._reasons[name] = f"{name} is known by its folder only. {reason}"
        _LOG.info("job folder %r: %s", name, reason)
        if targets:
            self._partitioner.move({key: targets})


def _key(name: str) -> str:
    return f"{os.geteuid()}:{name}"
