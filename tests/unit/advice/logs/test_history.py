# SPDX-License-Identifier: MIT
"""Past jobs of penstock serve become jobs with their operations."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from penstock.advice.importing.importer import import_logs
from penstock.advice.logs.history import is_archive_folder, read_history
from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.errors import InputError
from penstock.live.archive.tables import DATABASE
from penstock.sim import simulate
from support.archives import WALL_S, operation, record, run


def _jobs(path: Path) -> list[LoggedJob | Skipped]:
    return list(read_history(path, 0.05))


def test_the_operations_of_a_job(tmp_path: Path) -> None:
    operations = [operation(1.0, 2.0), operation(5.0, 9.0, lost_s=1.5, capacity=inf)]
    record(tmp_path, (run("7:a"), operations))
    (job,) = _jobs(tmp_path)
    assert isinstance(job, LoggedJob)
    assert (job.name, job.user, job.detail) == ("a", "7", "history")
    assert [(b.begin_s, b.end_s) for b in job.bursts] == [(1.0, 2.0), (5.0, 9.0)]
    assert job.log_bytes == 2e9
    assert job.start_s == WALL_S
    assert len(job.shared_rates) == 1


def test_the_file_in_the_folder_stands_for_the_folder(tmp_path: Path) -> None:
    record(tmp_path, (run("7:a"), [operation(1.0, 2.0)]))
    assert is_archive_folder(tmp_path)
    assert _jobs(tmp_path / DATABASE) == _jobs(tmp_path)


def test_a_job_without_operations_is_skipped(tmp_path: Path) -> None:
    record(tmp_path, (run("7:a"), []))
    (item,) = _jobs(tmp_path)
    assert isinstance(item, Skipped)
    assert item.reason == "the job has no I/O"


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.sqlite").touch()
    with pytest.raises(InputError, match="not an archive"):
        _jobs(tmp_path / "other.sqlite")


def test_the_same_policy_gives_the_yields_that_the_jobs_had(tmp_path: Path) -> None:
    """Two jobs post 3 GB at 2 s and 2.01 s on a storage of 1 GB/s, under fcfs.

    The first one moves in [2, 5], the second one waits and moves in [5, 8]; both leave
    after 10 s.
    """
    first = operation(2.0, 5.0, moved_bytes=3e9, capacity=1e9)
    second = operation(2.01, 8.0, moved_bytes=3e9, capacity=1e9, lost_s=2.99)
    jobs = {"left_s": 10.0, "cap": inf}
    record(
        tmp_path,
        (run("7:a", lost_s=0.0, **jobs), [first]),
        (run("7:b", lost_s=2.99, **jobs), [second]),
    )
    imported = import_logs([str(tmp_path)])
    assert imported.instance.platform.bandwidth == 1e9
    assert imported.instance.platform.node_bandwidth == 1e9
    done = simulate(imported.instance, "fcfs", steady=False)
    assert done.yields.tolist() == pytest.approx([1.0, 0.701], abs=1e-3)
