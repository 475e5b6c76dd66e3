# SPDX-License-Identifier: MIT
"""Histories of penstock serve become jobs with equal iterations."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from penstock.advice.logs.history import read_history
from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.errors import InputError
from penstock.live.control.jobs import JobHistory
from penstock.live.daemon.history import History


def _saved(path: Path, **histories: JobHistory) -> Path:
    """Save histories as the daemon does, at 1000 s on its clock."""
    history = History(path, now=lambda: 1000.0, wall=lambda: 1_700_000_000.0)
    history.save({f"1000:{name}": entry for name, entry in histories.items()})
    history.close()
    return path


def test_iterations_have_the_mean_length_and_the_known_volumes(tmp_path: Path) -> None:
    past = JobHistory(900.0, 10.0, 4, 80.0, (100.0, 300.0))
    (job,) = read_history(_saved(tmp_path / "h.sqlite", climate=past), 0.05)
    assert isinstance(job, LoggedJob)
    assert (job.name, job.user, job.detail) == ("climate", "1000", "history")
    # Age 100 s, of which 10 s are lost; 4 iterations of 20 s.
    assert (job.run_s, job.period_s) == (90.0, 20.0)
    assert [b.volume_bytes for b in job.bursts] == [200.0, 200.0, 100.0, 300.0]
    assert job.start_s == 1_700_000_000.0 - 100.0


def test_a_job_without_operations_is_skipped(tmp_path: Path) -> None:
    (item,) = read_history(_saved(tmp_path / "h.sqlite", idle=JobHistory(0.0)), 0.05)
    assert isinstance(item, Skipped)


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE other (x)")
    database.close()
    with pytest.raises(InputError, match="not a history of penstock serve"):
        list(read_history(path, 0.05))


def test_the_file_is_not_changed(tmp_path: Path) -> None:
    past = JobHistory(900.0, 0.0, 1, 5.0, (1.0,))
    path = _saved(tmp_path / "h.sqlite", a=past)
    before = path.read_bytes()
    list(read_history(path, 0.05))
    assert path.read_bytes() == before
