# SPDX-License-Identifier: MIT
"""Notice folders of jobs that appear, and those in which no more files are made.

`FolderWatch` watches the folders of one user, `UserFolderWatch` those of all users, as
root. Only folders of that user count. Those that exist at the first look (the first one
at which the file system is mounted) are not noticed. Of many that appear at once, a
look returns a few, and later looks the others.

The folder above all of them is listed only if its time of modification has changed
lately, so that a look costs a few calls plus one for each folder in use. Nothing is
written. Links of users are not followed: they may lead to where no call returns.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from penstock.live.staging.drivers.driver import walk_below
from penstock.live.staging.job_folder import JobFolder
from penstock.live.staging.own_folder import open_below

__all__ = ["IDLE_S", "FolderChanges", "FolderWatch", "UserFolderWatch"]

#: A folder is not in use if no file was made or removed in it and its sub-folders for
#: this long (s).
IDLE_S: Final = 3600.0

#: Times of modification may be this coarse, with a margin (s).
_COARSE_S: Final = 5.0

#: Most folders that one look returns: each is placed while no job is controlled.
_MOST_NEW: Final = 20

#: Of one user among many: most folders that one look returns, that are in use, and that
#: are listed.
_MOST_NEW_OF_USER, _MOST_IN_USE, _MOST_LISTED = 5, 100, 2000

#: Most entries that are read below one folder when it seems to be idle.
_MOST_BELOW: Final = 20_000

#: How a folder is opened to list what is in it.
_READ: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

#: Most entries that one look reads where the folders of users are: any user may be
#: allowed to make many there.
_MOST_ENTRIES: Final = 2000

#: Most users whose folders one look covers.
_MOST_USERS: Final = 200


@dataclass(frozen=True)
class FolderChanges:
    """Keys of jobs whose folders have appeared or are no longer in use."""

    appeared: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Use:
    changed_ns: int
    """Time of modification of the folder, as its file system says."""
    seen_s: float
    """When this time was seen first, or something has changed below it since."""
    below_ns: int = 0
    """Latest time of modification of its sub-folders, when it seemed to be idle; 0: it
    had none, or never seemed so."""


#: A folder that was never listed, and one that was listed and had nothing in it.
_NOT_LISTED, _EMPTY = _Use(-1, 0.0), _Use(0, 0.0)


class FolderWatch:
    """Watches the folders of one pattern.

    Parameters
    ----------
    pattern
        Absolute path of a job's folder, with ``{job}`` for its name.
    user
        Number of the user whose folders count, one of many; None: the user who runs
        this process.
    above
        Part of this path that the operator has chosen: links below it are not followed.
        None: all that is above the folders of jobs.
    """

    def __init__(
        self, pattern: str, user: int | None = None, above: Path | None = None
    ) -> None:
        is_one_of_many = user is not None
        self._user = os.geteuid() if user is None else user
        self._most_new = _MOST_NEW_OF_USER if is_one_of_many else _MOST_NEW
        self._most_in_use = _MOST_IN_USE if is_one_of_many else None
        self._most_listed = _MOST_LISTED if is_one_of_many else None
        before, _, after = pattern.partition("{job}")
        head, _, prefix = before.rpartition("/")
        suffix = after.partition("/")[0]
        parent = Path(head or "/")
        self._chosen = parent if above is None else above
        self._below = parent.relative_to(self._chosen).parts
        self._prefix, self._suffix = prefix, suffix
        # Hidden folders are no jobs.
        self._name = re.compile(
            rf"(?!\.){re.escape(prefix)}(.+){re.escape(suffix)}", re.DOTALL
        )
        #: The folder above, at the last listing.
        self._above = _NOT_LISTED
        self._seen: set[str] = set()
        #: True if the last look has not returned all that it has found.
        self._has_more = False
        self._in_use: dict[str, _Use] = {}

    @property
    def is_used(self) -> bool:
        """True if a folder is in use."""
        return bool(self._in_use)

    def notice_all(self) -> None:
        """Notice folders that exist at the first look, too."""
        self._above = _EMPTY

    def look(self, now_s: float) -> FolderChanges:
        """Return what has changed since the last look."""
        try:
            parent = open_below(self._chosen, self._below)
        except OSError:
            return FolderChanges(ended=self._end(list(self._in_use)))
        try:
            return self._look_into(parent, now_s)
        finally:
            os.close(parent)

    def _look_into(self, parent: int, now_s: float) -> FolderChanges:
        is_first = self._above == _NOT_LISTED
        new_names = self._new_names(parent, now_s)
        appeared = [] if is_first else new_names[: self._most_new]
        later = [] if is_first else new_names[self._most_new :]
        self._seen.difference_update(later)
        self._has_more = bool(later)
        if self._most_in_use is not None:
            # The others are never noticed.
            appeared = appeared[: max(self._most_in_use - len(self._in_use), 0)]
        self._in_use |= {name: _Use(-1, now_s) for name in appeared}
        in_use = list(self._in_use)
        ended = [name for name in in_use if not self._is_used(parent, name, now_s)]
        used = [name for name in appeared if name not in ended]
        return FolderChanges(self._keys(used), self._end(ended))

    def _end(self, names: list[str]) -> list[str]:
        """Return the keys of jobs whose folders are no longer in use."""
        for name in names:
            del self._in_use[name]
        return self._keys(names)

    def _keys(self, names: list[str]) -> list[str]:
        return [f"{self._user}:{name}" for name in names]

    def _new_names(self, parent: int, now_s: float) -> list[str]:
        """Return names that were not there at the last listing, sorted."""
        changed_ns = _changed_ns(".", parent)
        is_same = changed_ns == self._above.changed_ns
        is_old = is_same and now_s - self._above.seen_s > _COARSE_S
        if changed_ns is None or (is_old and not self._has_more):
            return []
        try:
            folders = self._own_folders(parent)
        except OSError:
            return []
        if not is_same:
            self._above = _Use(changed_ns, now_s)
        matches = map(self._name.fullmatch, folders)
        present = {match[1] for match in matches if match}
        new_names = sorted(present - self._seen)
        self._seen = present
        return new_names

    def _own_folders(self, parent: int) -> list[str]:
        """Return the names of folders of the user."""
        opened = os.open(".", _READ, dir_fd=parent)
        try:
            with os.scandir(opened) as entries:
                listed = islice(entries, self._most_listed)
                return [each.name for each in listed if _owner(each) == self._user]
        finally:
            os.close(opened)

    def _is_used(self, parent: int, name: str, now_s: float) -> bool:
        """Return True if the folder of a job is there and was changed lately."""
        folder = f"{self._prefix}{name}{self._suffix}"
        changed_ns, use = _changed_ns(folder, parent), self._in_use[name]
        if changed_ns is None:
            return False
        if changed_ns != use.changed_ns:
            self._in_use[name] = _Use(changed_ns, now_s, use.below_ns)
            return True
        if now_s - use.seen_s < IDLE_S:
            return True
        # Files may be made in its sub-folders only.
        below_ns = _changed_below_ns(folder, parent)
        if below_ns in (0, use.below_ns):
            return False
        later_s = (below_ns - max(changed_ns, use.below_ns)) * 1e-9
        # Users can set any time of modification.
        last_s = min(use.seen_s + max(later_s, 0.0), now_s)
        self._in_use[name] = _Use(changed_ns, last_s, below_ns)
        return now_s - last_s < IDLE_S


class _UserListing:
    """A listing of the folders of users, of which each look reads a part."""

    def __init__(self, folders: JobFolder) -> None:
        self.users: set[int] = set()
        """Users who have a folder under their name, as far as it was read."""
        self._folders = folders
        self._entries = os.scandir(folders.above)
        #: Owner of an entry -> name of its folder. The user database may be slow.
        self._names: dict[int, str] = {}

    def read_on(self) -> bool:
        """Read a part; return True if it was the last one."""
        part = list(islice(self._entries, _MOST_ENTRIES))
        for entry in part:
            user = _owner(entry)
            if user is not None and entry.name == self._name_of(user):
                self.users.add(user)
        return len(part) < _MOST_ENTRIES

    def _name_of(self, user: int) -> str:
        if user not in self._names:
            self._names[user] = self._folders.top_of_user(user).name
        return self._names[user]


class UserFolderWatch:
    """Watches the folders of all users: each has one above those of its jobs."""

    def __init__(self, folders: JobFolder) -> None:
        self._folders = folders
        #: The folder above all of them, at the last listing, and when that began (s).
        self._listed, self._begun_s = _NOT_LISTED, 0.0
        self._listing: _UserListing | None = None
        self._is_first = True
        #: User -> watch of its folders.
        self._watches: dict[int, FolderWatch] = {}
        #: Users in the order of the next looks.
        self._turns: deque[int] = deque()

    def look(self, now_s: float) -> FolderChanges:
        """Return what has changed since the last look, of some of the users."""
        self._find_users(now_s)
        changes = FolderChanges()
        for _ in range(min(len(self._turns), _MOST_USERS)):
            if len(changes.appeared) >= _MOST_NEW:
                break
            user = self._turns[0]
            self._turns.rotate(-1)
            seen = self._watches[user].look(now_s)
            changes.appeared.extend(seen.appeared)
            changes.ended.extend(seen.ended)
        return changes

    def _find_users(self, now_s: float) -> None:
        """Begin to watch users whose folders have appeared; forget those that left."""
        try:
            if self._listing is None and self._is_changed(now_s):
                self._listing = _UserListing(self._folders)
                self._begun_s = now_s
            if self._listing is None:
                return
            is_over = self._listing.read_on()
        except OSError:
            self._listing, self._listed = None, _NOT_LISTED
            return
        self._watch_new(self._listing.users)
        if is_over:
            self._forget_others(self._listing.users)
            self._listing, self._is_first = None, False

    def _is_changed(self, now_s: float) -> bool:
        """Return True unless the last listing began long after the last change."""
        changed_ns = self._folders.above.stat().st_mtime_ns
        if changed_ns == self._listed.changed_ns:
            return self._begun_s - self._listed.seen_s <= _COARSE_S
        self._listed = _Use(changed_ns, now_s)
        return True

    def _watch_new(self, users: set[int]) -> None:
        for user in sorted(users - self._watches.keys()):
            pattern = self._folders.of_user(user)
            watch = FolderWatch(pattern, user, self._folders.above)
            if not self._is_first:
                watch.notice_all()
            self._watches[user] = watch
            self._turns.append(user)

    def _forget_others(self, users: set[int]) -> None:
        for user in self._watches.keys() - users:
            if not self._watches[user].is_used:
                del self._watches[user]
                self._turns.remove(user)


def _owner(entry: os.DirEntry[str]) -> int | None:
    """Return the owner of a folder; None: the entry is a link or another file."""
    try:
        # In most file systems, the first one costs no call.
        if not entry.is_dir(follow_symlinks=False):
            return None
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return status.st_uid if stat.S_ISDIR(status.st_mode) else None


def _changed_below_ns(name: str, parent: int) -> int:
    """Return when files were last made or removed in sub-folders; 0: there are none.

    `parent` is a descriptor of the folder above.
    """
    try:
        opened = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return 0
    try:
        below = walk_below(opened, _MOST_BELOW)
        return max((state.st_mtime_ns for _, state in below), default=0)
    finally:
        os.close(opened)


def _changed_ns(name: str, parent: int) -> int | None:
    """Return when files were made or removed in a folder; None: there is no folder.

    `parent` is a descriptor of the folder above.
    """
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    return status.st_mtime_ns if stat.S_ISDIR(status.st_mode) else None
