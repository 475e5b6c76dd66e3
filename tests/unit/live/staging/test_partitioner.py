# SPDX-License-Identifier: MIT
"""Partitions made real: folders of jobs, in a thread of their own."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging.drivers.directories import Directories
from penstock.live.staging.partitioner import Partitioner
from penstock.live.wire.messages import Partition
from support.waiting import LIMIT_S, until

LOG = logging.getLogger("test")
#: What the keys of jobs of this user begin with.
OWN = f"{os.geteuid()}:"


def _partitioner(tmp_path: Path) -> Partitioner:
    for name in ("x", "y"):
        (tmp_path / "targets" / name).mkdir(parents=True)
    targets = f"directories:{tmp_path}/targets:x,y"
    return Partitioner.of(targets, f"{tmp_path}/jobs/{{job}}", LOG)


def test_folders_go_to_targets(tmp_path: Path) -> None:
    made = _partitioner(tmp_path)
    made.move({f"{OWN}a": (0,), f"{OWN}b": (1,)})
    links = [tmp_path / "jobs" / job / "1" for job in "ab"]
    until(lambda: all(link.is_symlink() for link in links))
    assert [link.resolve().name for link in links] == ["x", "y"]
    made.move({f"{OWN}a": (0, 1)})
    until(lambda: links[0].resolve().name == "y")
    made.close()


def test_the_partition_is_told_when_the_folder_is_there(tmp_path: Path) -> None:
    made = _partitioner(tmp_path)
    told: list[tuple[str, Partition]] = []
    made.on_moved = lambda *what: told.append(what)
    for targets in ((0,), (0, 1), (1, 0), (0,)):
        count = len(told)
        made.move({f"{OWN}a": targets})
        until(lambda: len(told) > count)  # noqa: B023
    made.move({f"{OWN}..": (0,), f"{OWN}b": (0, 1)})
    until(lambda: told[-1][0] == f"{OWN}b")
    # The same number means the same targets, for all jobs.
    numbers = [partition.number for _, partition in told]
    assert numbers == [1, 2, 2, 1, 2]
    assert [job for job, _ in told] == [f"{OWN}a"] * 4 + [f"{OWN}b"]
    roots = tuple(str((tmp_path / "targets" / name).resolve()) for name in "xy")
    assert told[0][1] == Partition(1, f"{tmp_path}/jobs/a", 2, roots)
    made.close()


def test_files_in_a_folder_with_a_colon_are_not_redirected(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    made = _partitioner(tmp_path / "a:b")
    told: list[Partition] = []
    made.on_moved = lambda _, partition: told.append(partition)
    made.move({f"{OWN}a": (0,)})
    until(lambda: told != [])
    assert told[0].number == 0
    made.close()


def test_a_name_does_not_lead_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = _partitioner(tmp_path)
    for name in ("../escaped", "..", ".", "", "a\0b"):
        made.move({f"{OWN}{name}": (0,)})
    made.move({f"{OWN}last": (0,)})
    until((tmp_path / "jobs" / "last" / "1").is_symlink)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["jobs", "targets"]
    assert [p.name for p in (tmp_path / "jobs").iterdir()] == ["last"]
    assert caplog.text.count("cannot be the name of a folder") == 5
    made.close()


def test_a_target_that_vanishes_is_reported_until_the_job_has_others(
    tmp_path: Path,
) -> None:
    made = _partitioner(tmp_path)
    (tmp_path / "targets" / "y").rmdir()
    made.move({f"{OWN}a": (1,), f"{OWN}b": (1,)})
    until(lambda: len(made.failures) == 2)
    assert "unknown target 'y'" in made.failures[f"{OWN}a"]
    made.move({f"{OWN}a": (0,)})
    made.forget(f"{OWN}b")
    until(lambda: not made.failures)
    made.close()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    made = _partitioner(tmp_path)
    (tmp_path / "jobs").write_text("a file")
    made.move({f"{OWN}a": (0,)})
    until(lambda: "cannot make the folder" in made.failures.get(f"{OWN}a", ""))
    made.close()


def test_an_error_of_the_system_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("Stale file handle")

    made = _partitioner(tmp_path)
    monkeypatch.setattr(Directories, "roots", fail)
    made.move({f"{OWN}a": (0,)})
    until(lambda: "Stale file handle" in made.failures.get(f"{OWN}a", ""))
    made.close()


def test_a_job_that_has_left_is_not_moved(tmp_path: Path) -> None:
    made = _partitioner(tmp_path)
    begun, go_on = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        begun.set()
        go_on.wait(LIMIT_S)

    made.on_moved = wait
    made.move({f"{OWN}a": (0,)})
    assert begun.wait(LIMIT_S)
    made.move({f"{OWN}b": (0,), f"{OWN}c": (0,)})
    made.forget(f"{OWN}b")
    go_on.set()
    until((tmp_path / "jobs" / "c" / "1").is_symlink)
    assert not (tmp_path / "jobs" / "b").exists()
    made.close()


def test_jobs_of_other_users_have_no_folders(tmp_path: Path) -> None:
    """Their jobs may have the same names, and come from agents of other nodes."""
    made = _partitioner(tmp_path)
    other = f"{os.geteuid() + 1}:a"
    made.move({other: (0,), f"{OWN}b": (0,)})
    assert "only jobs of the user who runs the controller" in made.failures[other]
    until((tmp_path / "jobs" / "b" / "1").is_symlink)
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["b"]
    made.forget(other)
    assert made.failures == {}
    made.close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    made = _partitioner(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "jobs" / "a").symlink_to(tmp_path / "elsewhere")
    made.move({f"{OWN}a": (0,)})
    until(lambda: made.failures != {})
    assert "is not a folder that belongs to you" in made.failures[f"{OWN}a"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    made.close()


@pytest.mark.parametrize("sticky", [0, stat.S_ISVTX])
def test_others_cannot_replace_the_folder(tmp_path: Path, sticky: int) -> None:
    made = _partitioner(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs").chmod(0o777 | sticky)
    made.move({f"{OWN}a": (0,)})
    if sticky:
        until((tmp_path / "jobs" / "a" / "1").is_symlink)
    else:
        until(lambda: made.failures != {})
        text = made.failures[f"{OWN}a"]
        assert "lets other users replace folders" in text
        assert list((tmp_path / "jobs").iterdir()) == []
    made.close()


@pytest.mark.parametrize(
    ("targets", "folder", "message"),
    [
        ("directories", "/j/{job}", "names no targets"),
        ("directories:relative:a", "/j/{job}", "names no targets"),
        ("directories:/tmp:", "/j/{job}", "names no targets"),
        ("lustre:/fs:0,1", "/j", "is not a pattern of job folders"),
        ("lustre:/fs:0,1", "j/{job}", "is not a pattern of job folders"),
        ("lustres:/fs:0,1", "/j/{job}", "unknown target driver"),
        ("lustre:/fs:0,x", "/j/{job}", "is not the index of an OST"),
        ("moosefs:/fs:A,ab", "/j/{job}", "is not the label of a chunkserver"),
        ("beegfs:/fs:1,pool", "/j/{job}", "is not the identifier of a storage pool"),
    ],
)
def test_bad_settings(targets: str, folder: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Partitioner.of(targets, folder, LOG)
