# SPDX-License-Identifier: MIT
"""Histories survive the controller; problems with the file are harmless."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.live.control.rates.jobs import JobHistory
from penstock.live.daemon import history as history_module
from penstock.live.daemon.history import History


class Clock:
    """A clock that shows `now` until the test changes it."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def open_history(path: Path, now: float = 100.0, wall: float = 1e9) -> History:
    """Return a history whose clocks stand still."""
    return History(path, Clock(now), Clock(wall))


def test_saved_and_recalled(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    assert first.recall("0:a") is None
    first.save({"0:a": JobHistory(40.0, 7.0, 3, 20.0), "0:b": JobHistory(99.0)})
    assert first.recall("0:a") == JobHistory(40.0, 7.0, 3, 20.0)
    first.close()
    # Another controller, whose clock began anew, 50 s later: ages are as before.
    second = open_history(path, now=5.0, wall=1e9 + 50.0)
    assert second.recall("0:a") == JobHistory(5.0 - 60.0, 7.0, 3, 20.0)
    assert second.recall("0:b") == JobHistory(5.0 - 1.0)
    second.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    first.save({"0:a": JobHistory(40.0, 7.0)})
    first.save({"0:a": JobHistory(40.0, 8.0)})
    first.save({})
    first.close()
    again = open_history(path)
    assert again.recall("0:a") == JobHistory(40.0, 8.0)
    again.close()


def test_volumes_processes_and_requests_are_saved(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    past = JobHistory(
        40.0,
        past_bytes=(1e9 / 3.0, 7.0),
        processes=12,
        round_bytes=4e6,
        pause_s=0.3,
    )
    first.save({"0:a": past})
    first.close()
    again = open_history(path)
    assert again.recall("0:a") == past
    again.close()


def test_the_time_without_a_controller_is_neither_work_nor_loss(
    tmp_path: Path,
) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path, now=100.0)
    first.save({"0:a": JobHistory(40.0, lost_s=30.0)})
    first.close()
    clock, wall = Clock(7.0), Clock(1e9 + 120.0)
    second = History(path, clock, wall)
    for late in (0.0, 0.5, 30.0):
        # The job joins again when its agent has reconnected.
        clock.now, wall.now = 7.0 + late, 1e9 + 120.0 + late
        past = second.recall("0:a")
        assert past is not None
        assert clock.now - past.release_s == pytest.approx(60.0)
        assert 1.0 - past.lost_s / (clock.now - past.release_s) == pytest.approx(0.5)
    second.close()


def test_the_time_between_two_programs_is_work(tmp_path: Path) -> None:
    clock = Clock(100.0)
    history = History(tmp_path / "h.sqlite", clock, Clock(1e9))
    history.save({"0:a": JobHistory(40.0, lost_s=30.0)})
    clock.now = 160.0
    assert history.recall("0:a") == JobHistory(40.0, lost_s=30.0)
    history.close()


@pytest.mark.parametrize("jump_s", [-1e6, -1.0, 1.0, 1800.0])
def test_a_wall_clock_that_jumps_between_two_controllers(
    tmp_path: Path, jump_s: float
) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    first.save({"0:a": JobHistory(40.0, lost_s=50.0)})
    first.close()
    second = open_history(path, now=100.0, wall=1e9 + jump_s)
    assert second.recall("0:a") == JobHistory(40.0, lost_s=50.0)
    second.close()


@pytest.mark.parametrize("jump_s", [-1e6, 1e6])
def test_a_wall_clock_that_jumps_while_the_controller_runs(
    tmp_path: Path, jump_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "h.sqlite"
    clock, wall = Clock(100.0), Clock(1e9)
    history = History(path, clock, wall)
    history.save({"0:a": JobHistory(40.0, 7.0), "0:b": JobHistory(50.0, 8.0)})
    clock.now, wall.now = 105.0, 1e9 + jump_s
    history.save({"0:a": JobHistory(40.0, 9.0)})
    assert history.recall("0:a") == JobHistory(40.0, 9.0)
    assert history.recall("0:b") == JobHistory(50.0, 8.0)
    history.close()
    assert not caplog.records
    again = History(path, clock, wall)
    assert again.recall("0:a") == JobHistory(40.0, 9.0)
    again.close()


def test_a_name_that_was_away_for_long_is_another_job(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    first.save({"0:old": JobHistory(0.0)})
    first.close()
    # The next step of a job, and the next day's job of the same name.
    for wall, knows in ((1e9 + 60.0, True), (1e9 + 86400.0, False)):
        second = open_history(path, wall=wall)
        assert (second.recall("0:old") is not None) is knows
        second.close()
    second = open_history(path, wall=1e9 + 86400.0)
    second.save({"0:new": JobHistory(0.0)})
    second.close()
    # It is not in the file any more, either.
    third = open_history(path)
    assert third.recall("0:old") is None
    assert third.recall("0:new") is not None
    third.close()


def test_what_was_learnt_of_a_job_outlives_its_run(tmp_path: Path) -> None:
    """The next day it has lost nothing, but its volumes and times are known."""
    past = JobHistory(40.0, 7.0, 3, 20.0, (5.0, 6.0), 4.0, 12)
    clock, wall = Clock(100.0), Clock(1e9)
    history = History(tmp_path / "h.sqlite", clock, wall, kept_s=10 * 86400.0)
    history.save({"0:a": past, "0:empty": JobHistory(40.0, 7.0)})
    for days, is_known in ((1, True), (9, True), (11, False)):
        clock.now, wall.now = 100.0 + 86400.0 * days, 1e9 + 86400.0 * days
        expected = JobHistory(clock.now, 0.0, 3, 20.0, (5.0, 6.0), 0.0, 12)
        assert history.recall("0:a") == (expected if is_known else None)
        assert history.recall("0:empty") is None
    history.close()
    wall.now = 1e9 + 86400.0
    again = History(tmp_path / "h.sqlite", clock, wall, kept_s=10 * 86400.0)
    expected = JobHistory(clock.now, 0.0, 3, 20.0, (5.0, 6.0), 0.0, 12)
    assert again.recall("0:a") == expected
    again.close()


def test_the_oldest_of_too_many_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "_MOST_OF_USER", 2)
    clock = Clock(100.0)
    history = History(tmp_path / "h.sqlite", clock, Clock(1e9), kept_s=86400.0)
    for job in ("7:a", "7/b", "7:c", "8:a"):
        clock.now += 1.0
        history.save({job: JobHistory(0.0, processes=1)})
    assert history._entries.keys() == {"7/b", "7:c", "8:a"}
    history.close()


def test_a_user_with_many_jobs_pushes_out_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "_MOST_OF_USER", 3)
    monkeypatch.setattr(history_module, "_MOST_KEPT", 4)
    clock = Clock(100.0)
    history = History(tmp_path / "h.sqlite", clock, Clock(1e9), kept_s=86400.0)
    for number, job in enumerate(("9:a", "8:a", "8:b", *(f"7:{n}" for n in range(9)))):
        clock.now = 100.0 + number
        history.save({job: JobHistory(0.0, processes=1)})
    # Of all users the latest ones, in turn.
    assert history._entries.keys() == {"9:a", "8:b", "7:8", "7:7"}
    history.close()


def test_numbers_of_a_batch_system_are_kept_for_the_same_run_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "_MOST_OF_USER", 3)
    path, clock, wall = tmp_path / "h.sqlite", Clock(100.0), Clock(1e9)
    history = History(path, clock, wall, kept_s=10 * 86400.0)
    past = JobHistory(40.0, 7.0, past_bytes=(5.0,))
    history.save({"7/weekly": past})
    for number in range(9):
        clock.now += 1.0
        numbered = replace(past, is_lasting=False)
        history.save({f"7:{number}": numbered, "7/daily": past})
    assert history.recall("7:8") == numbered
    # They have not replaced a name.
    assert history._entries.keys() == {"7/weekly", "7/daily", "7:6", "7:7", "7:8"}
    history.close()
    clock.now, wall.now = clock.now + 7200.0, wall.now + 7200.0
    again = History(path, clock, wall, kept_s=10 * 86400.0)
    assert again.recall("7:8") is None
    assert again.recall("7/weekly") is not None
    again.save({"7:9": numbered})
    assert again._entries.keys() == {"7/weekly", "7/daily", "7:9"}
    again.close()


def test_the_controller_forgets_while_it_runs(tmp_path: Path) -> None:
    path, clock, wall = tmp_path / "h.sqlite", Clock(0.0), Clock(1e9)
    history = History(path, clock, wall)
    for hour in range(48):
        clock.now, wall.now = 3600.0 * hour, 1e9 + 3600.0 * hour
        history.save({"0:stays": JobHistory(0.0), f"0:{hour}": JobHistory(clock.now)})
    assert history.recall("0:stays") == JobHistory(0.0)
    assert len(history._entries) <= 3
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM past").fetchone()[0] <= 3
    database.close()
    clock.now += 20 * 86400.0
    assert history.recall("0:stays") is None
    history.close()


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5, 7])
def test_a_history_of_another_version(
    tmp_path: Path, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "h.sqlite"
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE past (job TEXT PRIMARY KEY, release REAL)")
        database.execute("INSERT INTO past VALUES ('0:a', 1.0)")
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    history = open_history(path)
    assert history.recall("0:a") is None
    for _ in range(3):
        history.save({"0:a": JobHistory(2.0)})
    history.close()
    assert len(caplog.records) == 1
    assert f"version {version or 1}" in caplog.text
    # The old file is kept beside the new one.
    old = sqlite3.connect(path.with_suffix(".other-version"))
    assert old.execute("SELECT * FROM past").fetchall() == [("0:a", 1.0)]
    old.close()
    again = open_history(path)
    assert again.recall("0:a") == JobHistory(2.0)
    again.close()


def test_some_other_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "accounts.sqlite"
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE accounts (name TEXT)")
    database.close()
    before = path.read_bytes()
    history = open_history(path)
    for _ in range(3):
        history.save({"0:a": JobHistory(1.0)})
    assert history.recall("0:a") == JobHistory(1.0)
    history.close()
    assert len(caplog.records) == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("volumes", ["", "{", '["x"]', "7"])
def test_a_row_that_makes_no_sense(
    tmp_path: Path, volumes: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    first.save({"0:a": JobHistory(40.0)})
    first.close()
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE past SET volumes = ?", (volumes,))
    database.close()
    history = open_history(path)
    history.save({"0:b": JobHistory(1.0)})
    assert history.recall("0:b") == JobHistory(1.0)
    history.close()
    assert len(caplog.records) == 1


def test_some_other_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    history = open_history(path)
    assert history.recall("0:a") is None
    history.save({"0:a": JobHistory(1.0)})
    assert history.recall("0:a") == JobHistory(1.0)
    history.close()
    assert len(caplog.records) == 1
    assert path.read_text() == "Dear reader, " * 100


def test_a_file_that_is_damaged_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    first.save({f"0:{n}": JobHistory(1.0) for n in range(5000)})
    first.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    caplog.set_level(logging.WARNING)
    history = open_history(path)
    history.save({"0:a": JobHistory(2.0)})
    assert history.recall("0:a") == JobHistory(2.0)
    history.close()
    assert "control goes on" in caplog.text
    assert path.with_suffix(".damaged").exists()
    again = open_history(path)
    assert again.recall("0:a") == JobHistory(2.0)
    again.close()


def test_no_place_for_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = open_history(tmp_path / "missing" / "h.sqlite")
    for _ in range(3):
        history.save({"0:a": JobHistory(1.0)})
    assert history.recall("0:a") == JobHistory(1.0)
    history.close()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    # As soon as there is a place it is used.
    (tmp_path / "missing").mkdir()
    history.save({"0:a": JobHistory(1.0)})
    history.close()
    assert (tmp_path / "missing" / "h.sqlite").exists()


def test_a_device_that_is_full(caplog: pytest.LogCaptureFixture) -> None:
    history = open_history(Path("/dev/full"))
    history.save({"0:a": JobHistory(1.0)})
    assert history.recall("0:a") == JobHistory(1.0)
    history.close()
    assert len(caplog.records) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts a file system")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "small", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, ballast = small_disk / "h.sqlite", small_disk / "ballast"
    history = open_history(path)
    history.save({"0:a": JobHistory(40.0, 1.0)})
    with suppress(OSError), ballast.open("wb", buffering=0) as stream:
        while stream.write(bytes(1024)):
            pass
    many = {f"0:{n}": JobHistory(40.0) for n in range(1500)}
    for lost_s in (2.0, 3.0, 4.0):
        history.save({**many, "0:a": JobHistory(40.0, lost_s)})
        # Control goes on with what is in memory.
        assert history.recall("0:a") == JobHistory(40.0, lost_s)
    assert len(caplog.records) == 1, caplog.text
    assert "control goes on" in caplog.text
    # As soon as there is room the file is used again; what it held is intact.
    ballast.unlink()
    history.save({"0:b": JobHistory(50.0)})
    history.close()
    again = open_history(path)
    assert again.recall("0:a") == JobHistory(40.0, 1.0)
    assert again.recall("0:b") == JobHistory(50.0)
    again.close()


def test_a_disk_that_is_full_from_the_start(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as stream:
        while stream.write(bytes(1024)):
            pass
    history = open_history(small_disk / "h.sqlite")
    for _ in range(3):
        history.save({"0:a": JobHistory(1.0)})
    assert history.recall("0:a") == JobHistory(1.0)
    history.close()
    assert len(caplog.records) == 1, caplog.text
