# SPDX-License-Identifier: MIT
"""Notice folders of jobs that appear, and those in which no more files are made.

Only folders of the user who runs this process count. Those that exist at the first look
(the first one at which the file system is mounted) are not noticed. Of many that appear
at once, a look returns a few, and later looks the others.

The folder above all of them is listed only if its time of modification has changed
lately, so that a look costs one call plus one for each folder in use.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["IDLE_S", "FolderChanges", "FolderWatch"]

#: A folder in which no file was made or removed for this long is not in use (s).
IDLE_S: Final = 3600.0

#: Times of modification may be this coarse, with a margin (s).
_COARSE_S: Final = 5.0

#: Most folders that one look returns: each is placed while no job is controlled.
_MOST_NEW: Final = 20


@dataclass(frozen=True)
class FolderChanges:
    """Names of jobs whose folders have appeared or are no longer in use."""

    appeared: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)


@dataclass
class _Use:
    changed_ns: int
    """Time of modification of the folder, as its file system says."""
    seen_s: float
    """When this time was seen first."""


class FolderWatch:
    """Watches the folders of one pattern.

    Parameters
    ----------
    pattern
        Absolute path of a job's folder, with ``{job}`` for its name.
    """

    def __init__(self, pattern: str) -> None:
        before, _, after = pattern.partition("{job}")
        head, _, prefix = before.rpartition("/")
        suffix = after.partition("/")[0]
        self._parent = Path(head or "/")
        self._prefix, self._suffix = prefix, suffix
        # Hidden folders are no jobs.
        self._name = re.compile(
            rf"(?!\.){re.escape(prefix)}(.+){re.escape(suffix)}", re.DOTALL
        )
        #: The folder above, at the last listing.
        self._above = _Use(-1, 0.0)
        self._seen: set[str] = set()
        #: True if the last look has not returned all that it has found.
        self._has_more = False
        self._in_use: dict[str, _Use] = {}

    def look(self, now_s: float) -> FolderChanges:
        """Return what has changed since the last look."""
        is_first = self._above.changed_ns < 0
        new_names = self._new_names(now_s)
        appeared = [] if is_first else new_names[:_MOST_NEW]
        later = [] if is_first else new_names[_MOST_NEW:]
        self._seen.difference_update(later)
        self._has_more = bool(later)
        self._in_use |= {name: _Use(-1, now_s) for name in appeared}
        ended = [name for name in self._in_use if not self._is_used(name, now_s)]
        for name in ended:
            del self._in_use[name]
        return FolderChanges([name for name in appeared if name in self._in_use], ended)

    def _new_names(self, now_s: float) -> list[str]:
        """Return names that were not there at the last listing, sorted."""
        changed_ns = _changed_ns(self._parent)
        is_same = changed_ns == self._above.changed_ns
        is_old = is_same and now_s - self._above.seen_s > _COARSE_S
        if changed_ns is None or (is_old and not self._has_more):
            return []
        try:
            with os.scandir(self._parent) as entries:
                folders = [entry.name for entry in entries if _is_own(entry)]
        except OSError:
            return []
        if not is_same:
            self._above = _Use(changed_ns, now_s)
        matches = map(self._name.fullmatch, folders)
        present = {match[1] for match in matches if match}
        new_names = sorted(present - self._seen)
        self._seen = present
        return new_names

    def _is_used(self, name: str, now_s: float) -> bool:
        """Return True if the folder of a job is there and was changed lately."""
        folder = self._parent / f"{self._prefix}{name}{self._suffix}"
        changed_ns, use = _changed_ns(folder), self._in_use[name]
        if changed_ns is None:
            return False
        if changed_ns != use.changed_ns:
            self._in_use[name] = _Use(changed_ns, now_s)
            return True
        return now_s - use.seen_s < IDLE_S


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Return True for a folder, not a link, of the user who runs this process."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _changed_ns(folder: Path) -> int | None:
    """Return when files were made or removed in a folder; None: there is no folder."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None
