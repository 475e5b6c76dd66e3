# SPDX-License-Identifier: MIT
"""Makes the partitions of a strategy real: folders of jobs go to storage targets.

Tools of a file system may take seconds: they run in a thread of their own, one after
the other, and of several partitions for one job that wait only the last is made.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from penstock.errors import InputError, PenstockError
from penstock.live.staging.drivers import Driver, get_driver
from penstock.live.wire.frames import WarningLog

__all__ = ["Partitioner"]


class Partitioner:
    """Puts the folders of jobs on targets.

    Parameters
    ----------
    names
        What the driver calls the targets.
    folder
        The folder of a job, with ``{job}`` for its name.
    """

    def __init__(
        self, driver: Driver, names: tuple[str, ...], folder: str, log: logging.Logger
    ) -> None:
        self.names = names
        self._driver = driver
        self._folder = folder
        self._complaints = WarningLog(log)
        self._wanted: dict[str, tuple[int, ...]] = {}
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "partitions")

    @classmethod
    def of(cls, targets: str, folder: str, log: logging.Logger) -> Self:
        """Return what the settings ``targets`` and ``job_folder`` mean."""
        driver, _, rest = targets.partition(":")
        root, _, listed = rest.rpartition(":")
        names = tuple(filter(None, listed.split(",")))
        if not Path(root).is_absolute() or not names:
            raise InputError(
                f"{targets!r} names no targets",
                where="targets",
                remedy='write DRIVER:ROOT:TARGET,... e.g. "moosefs:/mnt/mfs:A,B"',
            )
        if not Path(folder).is_absolute() or "{job}" not in folder:
            raise InputError(
                f"{folder!r} is no folder of a job",
                where="job_folder",
                remedy='write an absolute path with {job}, e.g. "/mnt/mfs/{job}"',
            )
        return cls(get_driver(driver, Path(root)), names, folder, log)

    def move(self, partitions: Mapping[str, tuple[int, ...]]) -> None:
        """Put the folders of these jobs on these targets, by and by."""
        with self._lock:
            self._wanted |= partitions
        for job in partitions:
            self._worker.submit(self._assign, job)

    def close(self) -> None:
        """Make no further partition."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _assign(self, job: str) -> None:
        with self._lock:
            numbers = self._wanted.pop(job, None)
        if numbers is None:
            return
        try:
            targets = [self.names[number] for number in numbers]
            self._driver.assign(self._folder_of(job), targets)
        except PenstockError as error:
            self._complaints.add(f"job {job} stays where it is: {error}")

    def _folder_of(self, job: str) -> Path:
        if "/" in job or job in (".", ".."):
            raise InputError(f"{job!r} is no name of a folder")
        return Path(self._folder.replace("{job}", job))
