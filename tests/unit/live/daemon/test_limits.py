# SPDX-License-Identifier: MIT
"""Limits survive a restart of the controller, unless their jobs have gone."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from penstock.live.daemon.limits import SavedLimits


class Clock:
    """A clock that shows `now` until the test changes it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.json"


def test_a_job_that_comes_back_soon_has_its_limit_again(path: Path) -> None:
    SavedLimits(path).save({"0:a": 2e6, "0:b": 3e6})
    clock = Clock()
    again = SavedLimits(path, clock)
    clock.now += 50.0
    assert again.recall("0:a") == 2e6
    # Once: a job that leaves and comes again is another program.
    assert again.recall("0:a") == inf
    assert again.recall("0:c") == inf


def test_a_job_that_comes_back_late_has_none(path: Path) -> None:
    SavedLimits(path).save({"0:a": 2e6})
    clock = Clock()
    again = SavedLimits(path, clock)
    clock.now += 61.0
    assert again.recall("0:a") == inf


def test_limits_of_jobs_that_may_come_back_stay_in_the_file(path: Path) -> None:
    SavedLimits(path).save({"0:a": 2e6, "0:b": 3e6})
    clock = Clock()
    again = SavedLimits(path, clock)
    again.recall("0:a")
    again.save({"0:a": 1e6})
    third = SavedLimits(path, clock)
    assert (third.recall("0:a"), third.recall("0:b")) == (1e6, 3e6)
    # After a minute they are dropped.
    clock.now += 61.0
    again.save({"0:a": 1e6})
    fourth = SavedLimits(path, clock)
    assert (fourth.recall("0:a"), fourth.recall("0:b")) == (1e6, inf)


def test_the_limit_of_a_job_that_has_left_is_dropped(path: Path) -> None:
    limits = SavedLimits(path)
    limits.save({"0:a": 2e6})
    limits.save({})
    assert SavedLimits(path).recall("0:a") == inf


def test_an_unchanged_file_is_not_written(path: Path) -> None:
    limits = SavedLimits(path)
    limits.save({})
    assert not path.exists()
    limits.save({"0:a": 2e6})
    path.unlink()
    limits.save({"0:a": 2e6})
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        '{"version": 99, "limits": {}}',
        '{"version": 1, "limits": {"0:a": -1.0}}',
    ],
)
def test_a_file_that_cannot_be_used_is_ignored(
    path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text(text)
    limits = SavedLimits(path)
    assert limits.recall("0:a") == inf
    assert f"{path} is ignored" in caplog.text
    limits.save({"0:a": 2e6})
    assert SavedLimits(path).recall("0:a") == 2e6


def test_a_file_that_cannot_be_written_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    SavedLimits(tmp_path / "file" / "limits.json").save({"0:a": 2e6})
    assert "limits hold, but not after a restart" in caplog.text
