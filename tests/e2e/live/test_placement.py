# SPDX-License-Identifier: MIT
"""A daemon that gives jobs their storage targets when they join."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from support.daemons import Daemon
from support.waiting import LIMIT_S, until

NAMES = ("left", "mid", "right")


def _targets_of(folder: Path) -> set[str]:
    """Return the targets to which the slots of a job's folder lead."""
    return {link.resolve().name for link in folder.glob("[0-9]")}


def test_jobs_are_placed_as_they_come_and_go(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / "targets" / name).mkdir(parents=True)
    jobs = tmp_path / "jobs"
    daemon = Daemon(
        tmp_path / "daemon",
        targets=f"directories:{tmp_path}/targets:{','.join(NAMES)}",
        job_folder=f"{jobs}/{{job}}",
        placement="best-bandwidth+greedy-non-clairvoyant",
        target_bandwidths="50 MB/s,80 MB/s,70 MB/s",
    )
    with closing(daemon):
        daemon.start()
        first = daemon.run("cat", job="first")
        until(lambda: _targets_of(jobs / "first") == {"left", "mid"})
        assert (
            "Its files go to the storage targets left, mid: best-bandwidth gives it 2 "
            "of 3 targets" in daemon.ctl("explain", "first")
        )
        daemon.run("cat", job="second")
        until(lambda: _targets_of(jobs / "second") == {"right", "left"})
        first.communicate(timeout=LIMIT_S)
        until(lambda: not daemon.job("first"))
        # Of the first one's targets, one is used by nobody else.
        daemon.run("cat", job="third")
        until(lambda: len(_targets_of(jobs / "third")) == 2)
        assert "mid" in _targets_of(jobs / "third")
        assert daemon.stop() == 0


def test_a_folder_gets_its_targets_when_they_are_back(tmp_path: Path) -> None:
    (tmp_path / "targets" / "left").mkdir(parents=True)
    jobs = tmp_path / "jobs"
    daemon = Daemon(
        tmp_path / "daemon",
        targets=f"directories:{tmp_path}/targets:left",
        job_folder=f"{jobs}/{{job}}",
        placement="static+greedy-non-clairvoyant",
    )
    with closing(daemon):
        daemon.start()
        (tmp_path / "targets" / "left").rmdir()
        daemon.run("cat", job="first")
        until(lambda: "tried again" in daemon.ctl("explain", "first"))
        (fault,) = daemon.status()["faults"]
        assert "first is not on its storage targets: " in fault
        (tmp_path / "targets" / "left").mkdir()
        until(lambda: _targets_of(jobs / "first") == {"left"})
        until(lambda: not daemon.status()["faults"])
        assert daemon.stop() == 0
