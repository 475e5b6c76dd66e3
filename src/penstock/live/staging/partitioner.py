# SPDX-License-Identifier: MIT
"""Apply the partitions of a strategy: put the folders of jobs on storage targets.

Only jobs of the user who runs this process have such folders: it may be root, and must
not change what others can replace. A folder that is missing is made. One that exists is
refused unless it belongs to this user, and nobody else can put another in its place.

The tools of a file system may take seconds, so they run in a thread of their own, one
after the other. If several partitions of one job wait, only the last is applied. When
one is applied, `Partitioner.on_moved` is told, so that files that are open can be
redirected to the new targets.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from penstock.errors import InputError, PenstockError
from penstock.live.staging.drivers import Driver, get_driver
from penstock.live.wire.frames import WarningLog
from penstock.live.wire.messages import Partition

__all__ = ["Partitioner", "parsed_targets"]

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_NOT_OWN: Final = (
    "only jobs of the user who runs the controller have folders on storage targets"
)


def parsed_targets(text: str) -> tuple[Driver, Path, tuple[str, ...]]:
    """Return driver, root and names of the targets in ``DRIVER:ROOT:TARGET,...``."""
    driver, _, rest = text.partition(":")
    root, _, listed = rest.rpartition(":")
    names = tuple(filter(None, listed.split(",")))
    if not Path(root).is_absolute() or not names:
        raise InputError(
            f"{text!r} names no targets",
            where="targets",
            remedy='write DRIVER:ROOT:TARGET,... e.g. "moosefs:/mnt/mfs:A,B"',
        )
    made = get_driver(driver, Path(root))
    made.check(names)
    return made, Path(root), names


class Partitioner:
    """Puts the folders of jobs on storage targets, in the background.

    Parameters
    ----------
    names
        Names of the targets, as the driver knows them.
    folder
        The folder of a job, with ``{job}`` for its name.
    """

    def __init__(
        self, driver: Driver, names: tuple[str, ...], folder: str, log: logging.Logger
    ) -> None:
        self.names = names
        self.failures: dict[str, str] = {}
        """Job key -> why its folder is not on its targets."""
        self._driver = driver
        self._folder = folder
        self._complaints = WarningLog(log)
        self.on_moved: Callable[[str, Partition], object] | None = None
        """Called in another thread when the folder of a job is on its targets."""
        #: Targets -> number of the partition. All jobs share the numbers.
        self._numbers: dict[frozenset[int], int] = {}
        self._wanted: dict[str, tuple[int, ...]] = {}
        #: Keys of jobs whose folders this object has made.
        self._made: set[str] = set()
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "partitions")

    @classmethod
    def of(cls, targets: str, folder: str, log: logging.Logger) -> Self:
        """Return the partitioner for the settings ``targets`` and ``job_folder``."""
        driver, _, names = parsed_targets(targets)
        if not Path(folder).is_absolute() or "{job}" not in folder:
            raise InputError(
                f"{folder!r} is not a pattern of job folders",
                where="job_folder",
                remedy='write an absolute path with {job}, e.g. "/mnt/mfs/{job}"',
            )
        return cls(driver, names, folder, log)

    def move(self, partitions: Mapping[str, tuple[int, ...]]) -> None:
        """Queue new targets for the folders of these jobs, and return at once.

        Jobs are named by their keys. Those of other users are refused.
        """
        own = {key: given for key, given in partitions.items() if _is_own(key)}
        self.failures |= dict.fromkeys(partitions.keys() - own.keys(), _NOT_OWN)
        with self._lock:
            self._wanted |= own
        for job_key in own:
            self._worker.submit(self._assign, job_key)

    def forget(self, job_key: str) -> None:
        """Forget the failure of a job that has left, and the targets it waits for."""
        self.failures.pop(job_key, None)
        with self._lock:
            self._wanted.pop(job_key, None)

    def take_made(self, job_key: str) -> bool:
        """Return True, once, if this object has made the folder of a job."""
        with self._lock:
            is_made = job_key in self._made
            self._made.discard(job_key)
        return is_made

    def close(self) -> None:
        """Apply no further partition."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _assign(self, job_key: str) -> None:
        with self._lock:
            numbers = self._wanted.pop(job_key, None)
        if numbers is None:
            return
        try:
            targets = [self.names[number] for number in numbers]
            folder = self._make_folder(job_key)
            self._driver.assign(folder, targets)
            partition = self._partition(folder, frozenset(numbers))
            self.failures.pop(job_key, None)
        except (PenstockError, OSError) as error:
            self.failures[job_key] = str(error)
            self._complaints.add(
                f"the folder of job {job_key!r} was not moved: {error}"
            )
        else:
            if self.on_moved is not None:
                self.on_moved(job_key, partition)

    def _partition(self, folder: Path, targets: frozenset[int]) -> Partition:
        """Return what the preload library needs to redirect open files of a job.

        The number is 0, and nothing is redirected, if a path has a colon.
        """
        roots = tuple(map(str, self._driver.roots(folder)))
        number = self._numbers.setdefault(targets, len(self._numbers) + 1)
        if any(":" in root for root in roots):
            number = 0
        return Partition(number, str(folder), self._driver.slots, roots)

    def _make_folder(self, job_key: str) -> Path:
        """Make the folder of a job, so that its first file is on the right targets."""
        name = job_key.partition(":")[2]
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            raise InputError(f"{name!r} cannot be the name of a folder")
        folder = Path(self._folder.replace("{job}", name))
        above = Path(self._folder.partition("{job}")[0].rpartition("/")[0] or "/")
        try:
            above.mkdir(parents=True, exist_ok=True)
            if not (above / folder.relative_to(above).parts[0]).exists():
                with self._lock:
                    self._made.add(job_key)
            _make_below(above, folder)
        except OSError as error:
            raise InputError(
                f"cannot make the folder: {error.strerror}",
                where=str(folder),
                remedy="check the setting job_folder",
            ) from None
        return folder


def _is_own(job_key: str) -> bool:
    """Return True for a job of the user who runs this process."""
    return job_key.partition(":")[0] == str(os.geteuid())


def _make_below(above: Path, folder: Path) -> None:
    """Make `folder`, and those between it and `above`, for this user.

    Raises `InputError` if another user has made one of them, or could put a folder or a
    link of its own in the place of one. What is above them was chosen by the operator.
    """
    own = os.geteuid()
    if above.lstat().st_uid not in (0, own) or above.stat().st_uid not in (0, own):
        raise _refused(above, "belongs neither to root nor to you")
    place = above
    for part in folder.relative_to(above).parts:
        mode = place.stat().st_mode
        if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
            raise _refused(place, "lets other users replace folders", "chmod +t it")
        place /= part
        with suppress(FileExistsError):
            place.mkdir(mode=0o755)
        status = place.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != own:
            raise _refused(place, "is not a folder that belongs to you")


def _refused(
    place: Path, what: str, remedy: str = "choose another job_folder"
) -> InputError:
    return InputError(what, where=str(place), remedy=remedy)
