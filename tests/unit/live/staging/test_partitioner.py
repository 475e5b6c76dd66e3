# SPDX-License-Identifier: MIT
"""Partitions made real: folders of jobs, in a thread of their own."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging import partitioner
from penstock.live.staging.assigner import (
    AssignedFolder,
    FolderAssigner,
    FolderOrder,
)
from penstock.live.staging.drivers.directories import Directories
from penstock.live.staging.partitioner import FIRST_RETRY_S, Partitioner
from penstock.live.wire.messages import Partition
from support.waiting import LIMIT_S, until

LOG = logging.getLogger("test")
#: What the keys of jobs of this user begin with.
OWN = f"{os.geteuid()}:"


def _partitioner(tmp_path: Path) -> Partitioner:
    for name in ("x", "y"):
        (tmp_path / "targets" / name).mkdir(parents=True)
    targets = f"directories:{tmp_path}/targets:x,y"
    folder = f"{tmp_path}/jobs/{{job}}"
    return Partitioner(targets, folder, LOG, redirect_age_s=2.5)


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
    # The same number means the same targets, for all jobs and all daemons.
    numbers = [partition.number for _, partition in told]
    one, both = numbers[:2]
    assert numbers == [one, both, both, one, both]
    assert 0 < one != both > 0
    later = Partitioner(f"directories:{tmp_path}/targets:x,y", "/{job}", LOG)
    assert [later._number_of(names) for names in ("x", "yx")] == [one, both]
    later.close()
    assert [job for job, _ in told] == [f"{OWN}a"] * 4 + [f"{OWN}b"]
    roots = tuple(str((tmp_path / "targets" / name).resolve()) for name in "xy")
    place = f"{tmp_path}/jobs/a"
    assert told[0][1] == Partition(numbers[0], place, 2, roots, ("x",), 2.5)
    made.close()


def test_no_two_sets_of_targets_have_the_same_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change between them would redirect nothing."""
    monkeypatch.setattr(partitioner, "crc32", lambda _: 2**32 - 3)
    made = _partitioner(tmp_path)
    sets = ("x", "y", "xy", "yx", "x")
    assert [made._number_of(names) for names in sets] == [2**32 - 2, 1, 2, 2, 2**32 - 2]
    made.close()


def test_targets_of_the_same_names_on_another_storage_have_another_number(
    tmp_path: Path,
) -> None:
    first, second = (_partitioner(tmp_path / name) for name in ("first", "second"))
    assert first._number_of(["x"]) != second._number_of(["x"])
    first.close()
    second.close()


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
        Partitioner(targets, folder, LOG)


class Served:
    """A partitioner for all users, whose processes are replaced by a function."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _partitioner(tmp_path).close()
        self.batches: list[tuple[int, list[str]]] = []
        self.held = threading.Event()
        self.fails = False
        monkeypatch.setattr(partitioner, "assign_as", self._assign)
        targets = f"directories:{tmp_path}/targets:x,y"
        pattern = f"{tmp_path}/jobs/{{user}}/{{job}}"
        self.partitioner = Partitioner(
            targets, pattern, LOG, all_users=True, owner_of=lambda user: user % 1000
        )

    def _assign(
        self,
        user: int,
        assigner: FolderAssigner,
        orders: Sequence[FolderOrder],
        stop: threading.Event,
    ) -> list[AssignedFolder]:
        assert assigner.names == ("x", "y")
        assert not stop.is_set()
        self.batches.append((user, [order.job_name for order in orders]))
        if user == 7:
            assert self.held.wait(LIMIT_S)
        failure = "refused" if self.fails else ""
        return [AssignedFolder("/f", ("/r",), failure) for _ in orders]


def test_one_user_does_not_wait_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(tmp_path, monkeypatch)
    served.partitioner.move({"7:a": (0,)})
    until(lambda: served.batches == [(7, ["a"])])
    # What waits is done by one process, with the last targets of each job.
    many = {f"7:{number}": (0,) for number in range(25)}
    served.partitioner.move(many)
    served.partitioner.move({"7:3": (1,), "1007:c": (0,)})
    served.partitioner.move({"8:b": (0,)})
    until(lambda: (8, ["b"]) in served.batches)
    assert len(served.batches) == 2
    served.partitioner.forget("7:24")
    served.held.set()
    until(lambda: len(served.batches) == 5)
    _, _, *rest = served.batches
    assert [(user, len(jobs)) for user, jobs in rest] == [(7, 20), (7, 4), (1007, 1)]
    assert served.partitioner.failures == {}
    served.partitioner.close()


def test_a_key_without_a_user_is_refused(tmp_path: Path) -> None:
    """An agent of another node could send one."""
    made = _partitioner(tmp_path)
    made.move({"root:a": (0,), "b": (0,)})
    assert made.failures.keys() == {"root:a", "b"}
    made.close()


def test_nothing_is_kept_of_jobs_that_left_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a user could fill the memory of the daemon with short jobs."""
    served = Served(tmp_path, monkeypatch)
    monkeypatch.setattr(partitioner, "_MOST_MADE", 2)
    served.fails = True
    served.partitioner.move({"7:a": (0,)})
    until(lambda: served.batches == [(7, ["a"])])
    served.partitioner.move({"7:b": (0,)})
    served.partitioner.forget("7:a")
    served.held.set()
    until(lambda: "7:b" in served.partitioner.failures)
    assert served.partitioner.failures.keys() == {"7:b"}
    assert served.partitioner._made == {}
    served.fails = False
    served.partitioner.move({f"8:{number}": (0,) for number in range(5)})
    until(lambda: [*served.partitioner._made] == ["8:3", "8:4"])
    served.partitioner.close()


# Python reports the error that ends a thread.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [UnicodeError("no text"), LookupError("a bug")])
def test_an_unexpected_error_costs_no_other_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    made = _partitioner(tmp_path)
    assign = Directories.assign

    def fail(driver: Directories, folder: Path, targets: Sequence[str]) -> None:
        if folder.name == "bad":
            raise error
        assign(driver, folder, targets)

    monkeypatch.setattr(Directories, "assign", fail)
    made.move({f"{OWN}bad": (0,), f"{OWN}next": (0,)})
    until((tmp_path / "jobs" / "next" / "1").is_symlink)
    # Later ones are served, too.
    made.move({f"{OWN}last": (0,)})
    until((tmp_path / "jobs" / "last" / "1").is_symlink)
    assert made.failures.keys() == {f"{OWN}bad"}
    until(lambda: str(error) in caplog.text)
    made.close()
    # pytest must see the error here, not in the next test.
    until(lambda: all(each.name != "users" for each in threading.enumerate()))


def test_a_name_that_is_no_text_is_assigned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lfs").write_text('#!/bin/sh\necho "$*"\n')
    (tmp_path / "bin" / "lfs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    made = Partitioner(f"lustre:{tmp_path}:0,1", f"{tmp_path}/jobs/{{job}}", LOG)
    moved: list[str] = []
    made.on_moved = lambda key, _: moved.append(key)
    job = OWN + os.fsdecode(b"a\xff")
    made.move({job: (0,)})
    until(lambda: moved == [job])
    assert made.failures == {}
    made.close()


# --- Folders that could not be assigned -----------------------------------------------


def test_a_folder_is_assigned_when_its_target_is_back(tmp_path: Path) -> None:
    made = _partitioner(tmp_path)
    (tmp_path / "targets" / "y").rmdir()
    made.move({f"{OWN}a": (1,)})
    until(lambda: len(made.failures) == 1)
    assert "tried again, in 5 minutes at the latest" in made.failures[f"{OWN}a"]
    (tmp_path / "targets" / "y").mkdir()
    soon_s = time.monotonic()
    made.retry(soon_s)
    assert made.failures
    made.retry(soon_s + 2.0 * FIRST_RETRY_S)
    until(lambda: not made.failures)
    assert (tmp_path / "jobs" / "a" / "0").resolve().name == "y"
    # It is not assigned again.
    (tmp_path / "jobs" / "a" / "0").unlink()
    made.retry(inf)
    made.move({f"{OWN}b": (0,)})
    until((tmp_path / "jobs" / "b" / "1").is_symlink)
    assert not (tmp_path / "jobs" / "a" / "0").exists()
    made.close()


def test_attempts_become_rarer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(tmp_path, monkeypatch)
    served.fails = True
    served.partitioner.move({"8:a": (0,)})
    pauses_s = []
    for number in range(1, 10):
        until(lambda: len(served.batches) == number)  # noqa: B023
        until(lambda: served.partitioner._retries["8:a"].due_s < inf)
        pauses_s.append(served.partitioner._retries["8:a"].pause_s)
        served.partitioner.retry(time.monotonic() + pauses_s[-1])
        # One attempt at a time.
        served.partitioner.retry(inf)
    assert pauses_s == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    until(lambda: len(served.batches) == 10)
    served.partitioner.close()


def test_only_the_last_targets_of_a_job_that_is_here_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(tmp_path, monkeypatch)
    served.fails = True
    served.partitioner.move({"7:a": (0,), "7:b": (0,)})
    until(lambda: len(served.batches) == 1)
    # Others are ordered while the first attempt goes on, and one job leaves.
    served.partitioner.move({"7:a": (1,)})
    served.partitioner.forget("7:b")
    served.held.set()
    until(lambda: len(served.batches) == 2)
    until(lambda: "7:a" in served.partitioner._retries)
    assert served.partitioner._retries["7:a"].numbers == (1,)
    assert served.partitioner._retries.keys() == {"7:a"}
    served.partitioner.forget("7:a")
    assert served.partitioner._retries == {}
    served.partitioner.close()
