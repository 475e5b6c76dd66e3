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

from penstock.errors import InputError
from penstock.files import replacing

__all__ = ["SavedLimits"]

_LOG: Final = logging.getLogger("penstock.limits")
_VERSION: Final = 1
#: How long after a restart limits wait for their jobs (s).
_RETURN_S: Final = 60.0


class _LimitsFile(msgspec.Struct, frozen=True):
    version: int
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
        self._path, self._now = path, now
        self._opened_s = now()
        #: Limits of before the restart whose jobs have not come back.
        self._waiting = _read(path)
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
            _write(self._path, all_limits)


def _read(path: Path) -> dict[str, float]:
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_LimitsFile)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        _LOG.warning("%s is ignored: %s", path, error)
        return {}
    if file.version != _VERSION:
        _LOG.warning("%s is ignored: version %d", path, file.version)
        return {}
    return file.limits


def _write(path: Path, limits: Mapping[str, float]) -> None:
    try:
        with replacing(path) as stream:
            stream.write(msgspec.json.encode(_LimitsFile(_VERSION, dict(limits))))
    except InputError as error:
        _LOG.warning("%s; limits hold, but not after a restart", error)
