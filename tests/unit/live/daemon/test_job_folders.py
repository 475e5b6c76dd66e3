# SPDX-License-Identifier: MIT
"""A folder that appears is the arrival of a job, which gets storage targets."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from penstock.live.control.placing import JobPlacer
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.daemon.job_folders import JobFolders
from penstock.live.staging.folder_watch import FolderChanges, FolderWatch
from penstock.live.staging.partitioner import Partitioner
from penstock.placement import get_allocation, get_placement
from penstock.placement.online import OnlinePlacement
from support.waiting import until

NAMES = ("x", "y", "z")
KEY = f"{os.geteuid()}:a"


class Site:
    """Three targets, of which a job gets one at first, and two by its history."""

    def __init__(self, tmp_path: Path) -> None:
        for name in NAMES:
            (tmp_path / "targets" / name).mkdir(parents=True)
        self.jobs = tmp_path / "jobs"
        self.jobs.mkdir()
        targets = f"directories:{tmp_path}/targets:{','.join(NAMES)}"
        pattern = f"{self.jobs}/{{job}}"
        self.partitioner = Partitioner(targets, pattern, logging.getLogger("test"))
        self.online = OnlinePlacement(
            *(3, 1, get_allocation("n-sys"), get_placement("greedy-non-clairvoyant"))
        )
        self.here: set[str] = set()
        self.histories: dict[str, JobHistory] = {}
        self.folders = JobFolders(
            FolderWatch(pattern),
            JobPlacer(self.online, NAMES, (100.0, 250.0, 240.0)),
            self.partitioner,
            self.histories.get,
            self.here.__contains__,
        )


def _explained(site: Site, name: str, user: int | None = None) -> str:
    """Return what is said about the job of a folder; "" if nothing is."""
    answer = site.folders.explanation(name, user)
    return answer.text if answer else ""


def test_a_folder_gets_targets_and_frees_them(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.folders.apply(FolderChanges([KEY], []))
    until((site.jobs / "a" / "0").is_symlink)
    text = _explained(site, "a")
    assert text.startswith("a is known by its folder only. Its files go to the storage")
    assert "best-bandwidth gives it 2 of 3 targets" in text
    assert site.folders.explanation("b") is None
    site.folders.apply(FolderChanges([], [KEY]))
    assert site.online.get(f"{os.geteuid()}:a") is None
    assert site.folders.explanation("a") is None
    site.partitioner.close()


def test_what_the_job_did_before_is_known(tmp_path: Path) -> None:
    site = Site(tmp_path)
    key = f"{os.geteuid()}:a"
    site.histories[key] = JobHistory(0.0, 0.0, 2, 20.0, (500.0, 500.0))
    site.folders.apply(FolderChanges([KEY], []))
    placed = site.online.get(key)
    assert placed is not None
    assert placed.application.phases() == [("work", 8.0), ("io", 500.0)]
    assert "n-sys gives it" in placed.reason
    site.partitioner.close()


def test_the_folder_of_a_job_that_has_joined_is_left_to_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.here.add(f"{os.geteuid()}:a")
    site.folders.apply(FolderChanges([KEY], []))
    site.folders.apply(FolderChanges([], [KEY]))
    assert site.folders.explanation("a") is None
    assert list(site.jobs.iterdir()) == []
    site.partitioner.close()


def test_a_target_that_is_gone_is_named(tmp_path: Path) -> None:
    site = Site(tmp_path)
    (tmp_path / "targets" / "x").rmdir()
    site.folders.apply(FolderChanges([KEY], []))
    until(lambda: "unknown target 'x'" in _explained(site, "a"))
    site.partitioner.close()


def test_folders_are_found_by_the_thread(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async def find() -> None:
        site.folders._watch.look(0.0)
        (site.jobs / "a").mkdir()
        os.utime(site.jobs, ns=(1, 1))
        site.folders.start()
        async with asyncio.timeout(30.0):
            while site.folders.explanation("a") is None:
                await asyncio.sleep(0.01)
        site.folders.close()

    asyncio.run(find())
    site.partitioner.close()


def test_a_folder_made_for_a_job_that_has_ended_is_no_new_job(tmp_path: Path) -> None:
    site = Site(tmp_path)
    key = f"{os.geteuid()}:a"
    site.folders._watch.look(0.0)
    site.partitioner.move({key: (0,)})
    until((site.jobs / "a" / "0").is_symlink)
    changes = site.folders._watch.look(1.0)
    assert changes.appeared == [KEY]
    site.folders.apply(changes)
    assert site.online.get(key) is None
    # The user may make a folder of the same name later.
    site.folders.apply(FolderChanges([KEY], []))
    assert site.online.get(key) is not None
    site.partitioner.close()


def test_users_see_the_targets_of_their_own_folders(tmp_path: Path) -> None:
    site = Site(tmp_path)
    user = os.geteuid()
    site.folders.apply(FolderChanges([KEY, f"{user + 1}:a"], []))
    both = _explained(site, "a").splitlines()
    assert len(both) == 2
    assert _explained(site, KEY, user) == both[0]
    others = site.folders.explanation("a", user + 1)
    assert others is not None
    assert others.text.startswith(f"{user + 1}:a is known by its folder only")
    assert others.words(lambda key: f"<{key}>").startswith(f"<{user + 1}:a> is known")
    assert site.folders.explanation("a", user + 2) is None
    assert site.folders.explanation(KEY, user + 1) is None
    site.partitioner.close()
