# SPDX-License-Identifier: MIT
"""Limits of jobs, saved in a JSON file for the next start of the controller.

After a restart, a job that comes back within `_RETURN_S` gets its limit again: agents
announce the jobs on their nodes as soon as they have found the controller. The limit of
a job that has left is dropped: a job that comes later is another program with the same
name.

If the file cannot be used, control goes on without it, and the problem is logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Final

import msgspec

from penstock.live.daemon.kept_file import KeptContent, KeptFile

__all__ = ["SavedLimits"]

_LOG: Final = logging.getLogger("penstock.limits")
_VERSION: Final = 1
#: How long after a restart limits wait for their jobs (s).
_RETURN_S: Final = 60.0


class _LimitsFile(KeptContent, frozen=True):
    limits: dict[str, Annotated[float, msgspec.Meta(gt=0.0)]]
    """Job key -> limit (bytes/s)."""


class SavedLimits:
    """The limits of jobs in a file.

    After the constructor only `save` uses the file; it may run in another thread.

    Parameters
    ----------
    now
        The controller's clock (s).
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._opened_s = now()
        self._file = KeptFile(
            *(path, _LimitsFile, _VERSION, _LOG),
            consequence="limits hold, but not after a restart",
        )
        kept = self._file.read()
        #: Limits of before the restart whose jobs have not come back.
        self._waiting = kept.limits if kept else {}
        self._saved = dict(self._waiting)

    def recall(self, job_key: str) -> float:
        """Return the limit that a job had before the restart; inf: none."""
        limit = self._waiting.pop(job_key, inf)
        return limit if self._is_early else inf

    @property
    def _is_early(self) -> bool:
        return self._now() - self._opened_s <= _RETURN_S

    def save(self, limits: Mapping[str, float]) -> None:
        """Save the limits of the jobs that run; jobs may still come back."""
        waiting = dict(self._waiting) if self._is_early else {}
        all_limits = {**waiting, **limits}
        if all_limits != self._saved:
            self._saved = all_limits
            self._file.write(_LimitsFile(_VERSION, all_limits))
