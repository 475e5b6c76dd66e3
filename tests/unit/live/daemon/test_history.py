# SPDX-License-Identifier: MIT
"""What jobs have done outlives the controller; trouble with the file is harmless."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.live.control.jobs import JobHistory
from penstock.live.daemon.history import History


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def history(path: Path, now: float = 100.0, wall: float = 1e9) -> History:
    """Return a history whose clocks stand still."""
    return History(path, Clock(now), Clock(wall))


def test_saved_and_recalled(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = history(path)
    assert first.recall("0:a") is None
    first.save({"0:a": JobHistory(40.0, 7.0, 3, 20.0), "0:b": JobHistory(99.0)})
    assert first.recall("0:a") == JobHistory(40.0, 7.0, 3, 20.0)
    first.close()
    # Another controller, whose clock began anew; 50 s have passed.
    second = history(path, now=5.0, wall=1e9 + 50.0)
    assert second.recall("0:a") == JobHistory(-105.0, 7.0, 3, 20.0)
    assert second.recall("0:b") == JobHistory(-46.0)
    second.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = history(path)
    first.save({"0:a": JobHistory(40.0, 7.0)})
    first.save({"0:a": JobHistory(40.0, 8.0)})
    first.save({})
    first.close()
    again = history(path)
    assert again.recall("0:a") == JobHistory(40.0, 8.0)
    again.close()


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = history(path)
    first.save({"0:a": JobHistory(40.0, lost_s=50.0)})
    first.close()
    second = history(path, now=100.0, wall=1e9 - 1e6)
    assert second.recall("0:a") == JobHistory(100.0, lost_s=0.0)
    second.close()


def test_a_name_that_was_away_for_long_is_another_job(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    first = history(path)
    first.save({"0:old": JobHistory(0.0)})
    first.close()
    # The next step of a job, and the next day's job of the same name.
    for wall, knows in ((1e9 + 60.0, True), (1e9 + 86400.0, False)):
        second = history(path, wall=wall)
        assert (second.recall("0:old") is not None) is knows
        second.close()
    second = history(path, wall=1e9 + 86400.0)
    second.save({"0:new": JobHistory(0.0)})
    second.close()
    # It is not in the file any more, either.
    third = history(path)
    assert third.recall("0:old") is None
    assert third.recall("0:new") is not None
    third.close()


def test_the_controller_forgets_while_it_runs(tmp_path: Path) -> None:
    wall = Clock(1e9)
    it = History(tmp_path / "h.sqlite", lambda: wall.now - 1e9, wall)
    for hour in range(48):
        wall.now = 1e9 + 3600.0 * hour
        it.save({"0:stays": JobHistory(0.0), f"0:{hour}": JobHistory(wall.now - 1e9)})
    assert it.recall("0:stays") == JobHistory(0.0)
    assert len(it._rows) <= 3
    wall.now += 20 * 86400.0
    assert it.recall("0:stays") is None
    it.close()


def test_some_other_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    it = history(path)
    assert it.recall("0:a") is None
    it.save({"0:a": JobHistory(1.0)})
    assert it.recall("0:a") == JobHistory(1.0)
    it.close()
    assert len(caplog.records) == 1
    assert path.read_text() == "Dear reader, " * 100


def test_a_file_that_is_damaged_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "h.sqlite"
    first = history(path)
    first.save({f"0:{n}": JobHistory(1.0) for n in range(5000)})
    first.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    caplog.set_level(logging.WARNING)
    it = history(path)
    it.save({"0:a": JobHistory(2.0)})
    assert it.recall("0:a") == JobHistory(2.0)
    it.close()
    assert "control goes on" in caplog.text
    assert path.with_suffix(".damaged").exists()
    again = history(path)
    assert again.recall("0:a") == JobHistory(2.0)
    again.close()


def test_no_place_for_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    it = history(tmp_path / "missing" / "h.sqlite")
    for _ in range(3):
        it.save({"0:a": JobHistory(1.0)})
    assert it.recall("0:a") == JobHistory(1.0)
    it.close()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    # As soon as there is a place it is used.
    (tmp_path / "missing").mkdir()
    it.save({"0:a": JobHistory(1.0)})
    it.close()
    assert (tmp_path / "missing" / "h.sqlite").exists()


def test_a_full_disk(caplog: pytest.LogCaptureFixture) -> None:
    it = history(Path("/dev/full"))
    it.save({"0:a": JobHistory(1.0)})
    assert it.recall("0:a") == JobHistory(1.0)
    it.close()
    assert len(caplog.records) == 1
