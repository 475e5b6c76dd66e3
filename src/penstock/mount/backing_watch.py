# SPDX-License-Identifier: MIT
"""Log when the path of the backing folder does not lead to the mounted folder any more.

A mount goes on with the folder that it has opened. If that was removed, renamed or
mounted over, programs work in a folder that nobody finds any more, so the log says it,
once. `BackingWatch` looks in a thread, because the file system may not answer; the end
of the mount does not wait for it.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Final, Self

from penstock.mount.points import why_another

__all__ = ["BackingWatch"]

_LOG: Final = logging.getLogger("penstock.mount")
#: Time between two looks.
_PERIOD_S: Final = 5.0


class BackingWatch:
    """Looks at the path of a backing folder while a mount is served.

    Parameters
    ----------
    backing
        The path.
    mounted_id
        `penstock.mount.points.folder_id` of the mounted folder; "": do not look.
    """

    def __init__(self, backing: str, mounted_id: str) -> None:
        self._backing = backing
        self._mounted_id = mounted_id
        self._problem = ""
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        """Start the thread."""
        if self._mounted_id:
            threading.Thread(target=self._run, name="backing", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread at its next look."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            self._look()

    def _look(self) -> None:
        """Log a change of what is at the path."""
        problem = self._find_problem()
        if problem == self._problem:
            return
        self._problem = problem
        if problem:
            _LOG.warning(
                "%s %s; the mount serves the folder that was there before "
                "(unmount, and mount again)",
                self._backing,
                problem,
            )
        else:
            _LOG.info("%s is the mounted folder again", self._backing)

    def _find_problem(self) -> str:
        try:
            found = Path(self._backing).stat()
        except OSError as error:
            unreachable = f"cannot be reached: {error.strerror}"
            return why_another(error, self._mounted_id) or unreachable
        return why_another(found, self._mounted_id)
