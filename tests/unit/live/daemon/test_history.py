# SPDX-License-Identifier: MIT
"""Histories survive the controller; problems with the file are harmless."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.live.control.jobs import JobHistory
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
    # Another controller, whose clock began anew; 50 s have passed.
    second = open_history(path, now=5.0, wall=1e9 + 50.0)
    assert second.recall("0:a") == JobHistory(-105.0, 7.0, 3, 20.0)
    assert second.recall("0:b") == JobHistory(-46.0)
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


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = open_history(path)
    first.save({"0:a": JobHistory(40.0, lost_s=50.0)})
    first.close()
    second = open_history(path, now=100.0, wall=1e9 - 1e6)
    assert second.recall("0:a") == JobHistory(100.0, lost_s=0.0)
    second.close()


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


def test_the_controller_forgets_while_it_runs(tmp_path: Path) -> None:
    wall = Clock(1e9)
    history = History(tmp_path / "h.sqlite", lambda: wall.now - 1e9, wall)
    for hour in range(48):
        wall.now = 1e9 + 3600.0 * hour
        history.save(
            {"0:stays": JobHistory(0.0), f"0:{hour}": JobHistory(wall.now - 1e9)}
        )
    assert history.recall("0:stays") == JobHistory(0.0)
    assert len(history._rows) <= 3
    wall.now += 20 * 86400.0
    assert history.recall("0:stays") is None
    history.close()


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


def test_a_full_disk(caplog: pytest.LogCaptureFixture) -> None:
    history = open_history(Path("/dev/full"))
    history.save({"0:a": JobHistory(1.0)})
    assert history.recall("0:a") == JobHistory(1.0)
    history.close()
    assert len(caplog.records) == 1
