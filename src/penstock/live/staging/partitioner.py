# SPDX-License-Identifier: MIT
"""Apply the partitions of a strategy: put the folders of jobs on storage targets.

A folder that is missing is made. The tools of a file system may take seconds, so they
run in a thread of their own, one after the other. If several partitions of one job
wait, only the last is applied. When one is applied, `Partitioner.on_moved` is told, so
that files that are open can be redirected to the new targets.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from penstock.errors import InputError, PenstockError
from penstock.live.staging.drivers import Driver, get_driver
from penstock.live.wire.frames import WarningLog
from penstock.live.wire.messages import Partition

__all__ = ["Partitioner", "parsed_targets"]


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
        """Job -> why its folder is not on its targets."""
        self._driver = driver
        self._folder = folder
        self._complaints = WarningLog(log)
        self.on_moved: Callable[[str, Partition], object] | None = None
        """Called in another thread when the folder of a job is on its targets."""
        #: Targets -> number of the partition. All jobs share the numbers.
        self._numbers: dict[frozenset[int], int] = {}
        self._wanted: dict[str, tuple[int, ...]] = {}
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
        """Queue new targets for the folders of these jobs, and return at once."""
        with self._lock:
            self._wanted |= partitions
        for job in partitions:
            self._worker.submit(self._assign, job)

    def forget(self, job: str) -> None:
        """Forget the failure of a job that has left."""
        self.failures.pop(job, None)

    def close(self) -> None:
        """Apply no further partition."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _assign(self, job: str) -> None:
        with self._lock:
            numbers = self._wanted.pop(job, None)
        if numbers is None:
            return
        try:
            targets = [self.names[number] for number in numbers]
            folder = self._folder_of(job)
            _make(folder)
            self._driver.assign(folder, targets)
            partition = self._partition(folder, frozenset(numbers))
            self.failures.pop(job, None)
        except PenstockError as error:
            self.failures[job] = str(error)
            self._complaints.add(f"the folder of job {job} was not moved: {error}")
        else:
            if self.on_moved is not None:
                self.on_moved(job, partition)

    def _partition(self, folder: Path, targets: frozenset[int]) -> Partition:
        """Return what the preload library needs to redirect open files of a job.

        The number is 0, and nothing is redirected, if a path has a colon.
        """
        roots = tuple(map(str, self._driver.roots(folder)))
        number = self._numbers.setdefault(targets, len(self._numbers) + 1)
        if any(":" in root for root in roots):
            number = 0
        return Partition(number, str(folder), self._driver.slots, roots)

    def _folder_of(self, job: str) -> Path:
        if "/" in job or job in (".", ".."):
            raise InputError(f"{job!r} cannot be the name of a folder")
        return Path(self._folder.replace("{job}", job))


def _make(folder: Path) -> None:
    """Make a folder, so that the first file in it is on the right targets."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder: {error.strerror}",
            where=str(folder),
            remedy="check the setting job_folder",
        ) from None
