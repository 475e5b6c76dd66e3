# SPDX-License-Identifier: MIT
"""Drainers that are started for journals that programs have left behind."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from math import inf
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging import drainers
from penstock.live.staging.drainers import Drainer, Leftover, Sweeper, left_behind
from penstock.live.staging.journal import LAYOUT
from penstock.live.wire.frames import WarningLog
from penstock.live.wire.places import Places
from support.waiting import LIMIT_S, until


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(drainers, "MEMORY", f"{tmp_path}/penstock-")
    return tmp_path


def test_journals_left_behind_are_found(memory: Path) -> None:
    own = memory / f"penstock-{os.geteuid()}"
    for folder in (own, memory / "penstock-12345", memory / "other"):
        folder.mkdir()
        (folder / "1-2.journal").touch()
    (memory / "penstock-3").touch()
    # A folder with the name of another user is skipped.
    assert left_behind([]) == [Leftover(own, os.geteuid())]
    (own / "1-2.journal").unlink()
    assert left_behind([]) == []


def test_a_folder_of_another_user_is_found_by_root_only(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid()
    folder = memory / f"penstock-{user}"
    folder.mkdir()
    (folder / "1-2.journal").touch()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert left_behind([]) == []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert left_behind([]) == [Leftover(folder, user)]


def test_a_link_is_not_followed(memory: Path) -> None:
    (memory / "there").mkdir()
    (memory / "there" / "1-2.journal").touch()
    (memory / f"penstock-{os.geteuid()}").symlink_to(memory / "there")
    assert left_behind([]) == []


def test_folders_that_match_a_pattern_are_found_too(memory: Path) -> None:
    for name in ("ssd1", "ssd2", "empty"):
        (memory / name / "journals").mkdir(parents=True)
    for name in ("ssd1", "ssd2"):
        (memory / name / "journals" / "1-2.journal").touch()
    leftovers = left_behind([f"{memory}/*/journals", f"{memory}/not-there"])
    folders = {leftover.folder for leftover in leftovers}
    assert folders == {memory / "ssd1" / "journals", memory / "ssd2" / "journals"}


def test_nobody_waits_while_journals_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link of a user may lead to a file system that does not answer."""
    go_on, swept = threading.Event(), list[Leftover]()
    found = Leftover(tmp_path, os.geteuid())

    def look(_: object) -> list[Leftover]:
        go_on.wait(LIMIT_S)
        return [found]

    monkeypatch.setattr(drainers, "left_behind", look)
    monkeypatch.setattr(Sweeper, "_drain", lambda _, each: swept.append(each))
    sweeper = Sweeper()
    sweeper.search(["/*/journals"])
    assert not swept
    go_on.set()
    until(lambda: swept == [found])
    sweeper.close()


def test_a_search_that_fails_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> list[Leftover]:
        raise OSError("stale file handle")

    monkeypatch.setattr(drainers, "left_behind", fail)
    monkeypatch.setattr(drainers, "_COMPLAINTS", WarningLog(logging.getLogger("test")))
    sweeper = Sweeper()
    sweeper.search([])
    until(lambda: "not looked for: stale file handle" in caplog.text)
    sweeper.close()


# --- Beside jobs ----------------------------------------------------------------------


class Waiting:
    """A process that drains until it is told to end."""

    def __init__(self, end: threading.Event) -> None:
        self._end = end

    def wait(self) -> int:
        """Wait for the end."""
        self._end.wait(120)
        return 0


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no drainers of earlier tests, and two places for each user."""
    monkeypatch.setattr(drainers, "_PLACES", Places(inf, 2, "too many"))


@pytest.mark.usefixtures("places")
def test_a_user_has_a_limited_number_of_drainers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, user = threading.Event(), os.geteuid() + 1
    monkeypatch.setattr(Drainer, "_start", lambda *_: Waiting(end))
    jobs = [Drainer(tmp_path / "page", user, 0) for _ in range(3)]
    for job in jobs:
        job.keep(tmp_path)
    assert [job.is_running for job in jobs] == [True, True, False]
    other = Drainer(tmp_path / "page", user + 1, 0)
    other.keep(tmp_path)
    assert other.is_running
    end.set()
    until(lambda: not any(job.is_running for job in (*jobs, other)))
    monkeypatch.setattr(drainers, "_RETRY_S", 0.0)
    jobs[2].keep(tmp_path)
    until(lambda: not jobs[2].is_running)


# --- One after the other --------------------------------------------------------------


def test_few_journals_of_a_full_folder_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drainers, "_MOST_COMPARED", 3)
    for number in range(9):
        (tmp_path / f"{number}-1.journal").touch()
    assert len(drainers._progress(tmp_path)) == 3


def test_a_sweep_that_takes_long_is_followed_by_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user with many files in many folders takes a part of a processor only."""
    pauses: list[float] = []

    class Ending(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return True

    def work(*_: object) -> None:
        begun_s = time.thread_time()
        while time.thread_time() < begun_s + 0.01:
            pass

    monkeypatch.setattr(Sweeper, "_drain", work)
    sweeper = Sweeper()
    sweeper._closed = Ending()
    sweeper.sweep([Leftover(tmp_path, os.geteuid())])
    until(lambda: bool(pauses))
    assert pauses[0] >= 0.1
    sweeper.close()


def test_one_user_does_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    drained: list[Leftover] = []
    blocked, go_on = threading.Event(), threading.Event()

    def drain(_: Sweeper, leftover: Leftover) -> None:
        drained.append(leftover)
        if leftover.user == 1:
            blocked.set()
            go_on.wait(120)
        if leftover.folder == Path("/bad"):
            raise InputError("bad")

    monkeypatch.setattr(Sweeper, "_drain", drain)
    sweeper = Sweeper()
    first = [Leftover(Path(f"/{number}"), 1) for number in range(20)]
    sweeper.sweep([*first, *first])
    assert blocked.wait(120)
    others = [Leftover(Path("/bad"), 2), Leftover(Path("/good"), 2)]
    sweeper.sweep(others)
    until(lambda: drained == [first[0], *others])
    go_on.set()
    until(lambda: {*drained} == {*first, *others})
    sweeper.close()


def test_sweeps_that_fail_do_not_fill_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A user chooses the names of folders, with line feeds, and how often they fail."""

    def drain(_: Sweeper, leftover: Leftover) -> None:
        raise InputError("bad")

    monkeypatch.setattr(Sweeper, "_drain", drain)
    sweeper = Sweeper()
    folders = [Path(f"/{number}\nroot: all is well") for number in range(50)]
    sweeper.sweep([Leftover(folder, 77_001) for folder in folders])
    until(lambda: not sweeper._waiting)
    sweeper.close()
    messages = [record.getMessage() for record in caplog.records]
    assert 0 < len(messages) <= 20
    assert not any("\n" in message for message in messages)


def test_ids_of_containers_do_not_take_all_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drained: list[int] = []
    go_on = threading.Event()

    def drain(_: Sweeper, leftover: Leftover) -> None:
        drained.append(leftover.user)
        if leftover.user > 100_000:
            go_on.wait(120)

    monkeypatch.setattr(Sweeper, "_drain", drain)
    sweeper = Sweeper(owner_of=lambda user: 1 if user > 100_000 else user)
    ids = range(200_000, 200_010)
    sweeper.sweep(Leftover(Path("/journals"), user) for user in ids)
    sweeper.sweep([Leftover(Path("/journals"), 2)])
    try:
        until(lambda: 2 in drained)
        assert {*drained} == {200_000, 2}
    finally:
        go_on.set()
    until(lambda: {*drained} == {*ids, 2})
    sweeper.close()


class Endless:
    """A process that drains for ever; it can be killed or not."""

    pid = 4711
    stdin = stdout = stderr = None

    def __init__(self, *, can_be_killed: bool = True) -> None:
        self._can_be_killed, self._is_killed = can_be_killed, False

    def poll(self) -> int | None:
        """Return None while the process is running."""
        return -9 if self._is_killed else None

    def kill(self) -> None:
        """Behave as a killed process."""
        self._is_killed = self._can_be_killed

    def communicate(self, *, timeout: float) -> tuple[None, None]:
        """Return at once, or raise an error if the process cannot be killed."""
        if not self._is_killed:
            raise subprocess.TimeoutExpired("drain", timeout)
        return None, None


@pytest.mark.parametrize("drains", [True, False])
def test_a_long_drain_is_continued_as_long_as_it_makes_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drains: bool
) -> None:
    header = LAYOUT["struct journal_header"]()
    starts: list[Path] = []

    def started(folder: Path, *_: object) -> Endless:
        starts.append(folder)
        if drains and folder == tmp_path and starts.count(tmp_path) < 3:
            header.drained_bytes += 1000
            (tmp_path / "1-2.journal").write_bytes(bytes(header))
        return Endless()

    (tmp_path / "1-2.journal").write_bytes(bytes(header))
    monkeypatch.setattr(drainers, "start_drainer", started)
    monkeypatch.setattr(drainers, "_SWEEP_S", -1.0)
    monkeypatch.setattr(drainers, "_LOOK_S", 0.0)
    sweeper = Sweeper()
    sweeper.sweep([Leftover(tmp_path, 1), Leftover(tmp_path / "other", 1)])
    until(lambda: not sweeper._waiting)
    sweeper.close()
    others = starts.count(tmp_path / "other")
    assert (starts.count(tmp_path), others) == ((3, 1) if drains else (1, 1))


def test_nobody_waits_for_a_drainer_that_cannot_be_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process in state D does not end when it is killed."""
    started: list[Path] = []

    def start(folder: Path, *_: object) -> Endless:
        started.append(folder)
        return Endless(can_be_killed=False)

    monkeypatch.setattr(drainers, "start_drainer", start)
    monkeypatch.setattr(drainers, "_SWEEP_S", -1.0)
    monkeypatch.setattr(drainers, "_LOOK_S", 0.0)
    sweeper = Sweeper()
    sweeper.sweep([Leftover(tmp_path / name, 77_002) for name in ("a", "b")])
    until(lambda: not sweeper._waiting)
    sweeper.close()
    assert started == [tmp_path / "a", tmp_path / "b"]
    messages = [record.getMessage() for record in caplog.records]
    assert sum("process 4711 cannot be killed" in text for text in messages) == 2


# Python reports the error that ends a thread.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [ValueError("no text"), LookupError("a bug")])
def test_an_unexpected_error_costs_no_other_sweep(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    drained: list[str] = []

    def drain(_: Sweeper, leftover: Leftover) -> None:
        if leftover.folder.name == "bad":
            raise error
        drained.append(leftover.folder.name)

    monkeypatch.setattr(Sweeper, "_drain", drain)
    sweeper = Sweeper()
    sweeper.sweep([Leftover(Path(f"/{name}"), 7) for name in ("bad", "next")])
    until(lambda: drained == ["next"])
    sweeper.sweep([Leftover(Path("/last"), 7)])
    until(lambda: drained == ["next", "last"])
    sweeper.close()
