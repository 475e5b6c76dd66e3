# SPDX-License-Identifier: MIT
"""An error while one user is served ends nothing but what was in work."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections import deque
from types import SimpleNamespace

import pytest

from penstock.live.staging import user_workers
from penstock.live.staging.user_workers import UserWorkers
from penstock.live.wire.frames import WarningLog
from support.waiting import LIMIT_S, until

LOG = logging.getLogger("test")


#: Python reports the error that ends a thread.
ERROR_IN_THREAD = "ignore::pytest.PytestUnhandledThreadExceptionWarning"


@pytest.mark.filterwarnings(ERROR_IN_THREAD)
def test_what_waits_is_served_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    queue, served = deque(["bad", "good", "worse", "better"]), []

    def serve(user: int) -> None:
        while queue:
            task = queue.popleft()
            if task in ("bad", "worse"):
                raise LookupError(task)
            served.append((user, task))

    workers = UserWorkers(1, serve, WarningLog(LOG))
    workers.start(7)
    until(lambda: len(served) == 2)
    assert served == [(7, "good"), (7, "better")]
    assert "an unexpected error of penstock: LookupError: worse" in caplog.text
    workers.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for threads that hang."""
    monkeypatch.setattr(user_workers, "_END_S", 0.0)


@pytest.mark.filterwarnings(ERROR_IN_THREAD)
@pytest.mark.usefixtures("impatient")
def test_nobody_is_served_after_the_end() -> None:
    begun, go_on, served = threading.Event(), threading.Event(), []

    def serve(user: int) -> None:
        served.append(user)
        begun.set()
        go_on.wait(LIMIT_S)
        raise LookupError

    workers = UserWorkers(1, serve, WarningLog(LOG))
    workers.start(1)
    workers.start(2)
    assert begun.wait(LIMIT_S)
    workers.close()
    workers.start(3)
    go_on.set()
    until(lambda: not workers._threads)
    assert served == [1]


def test_as_many_users_as_allowed_are_served_at_the_same_time() -> None:
    meeting, served = threading.Barrier(3), []

    def serve(user: int) -> None:
        served.append(user)
        if user < 2:
            meeting.wait(LIMIT_S)

    workers = UserWorkers(2, serve, WarningLog(LOG))
    for user in range(4):
        workers.start(user)
    until(lambda: len(served) == 2)
    assert sorted(served) == [0, 1]
    meeting.wait(LIMIT_S)
    until(lambda: sorted(served) == [0, 1, 2, 3])
    workers.close()


def test_the_end_waits_for_what_is_under_way() -> None:
    """A process that was started for a user is killed before the daemon ends."""
    begun, is_done = threading.Event(), []

    def serve(_: int) -> None:
        begun.set()
        until(lambda: workers._is_closed)
        is_done.append(True)

    workers = UserWorkers(1, serve, WarningLog(LOG))
    workers.start(1)
    assert begun.wait(LIMIT_S)
    workers.close()
    assert is_done


def test_a_thread_that_hangs_takes_no_place_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    served = list[int]()

    def serve(user: int) -> None:
        workers.show_life()
        if user == 1:
            begun.set()
            go_on.wait(LIMIT_S)
        served.append(user)

    workers = UserWorkers(1, serve, WarningLog(LOG))
    workers.start(1)
    assert begun.wait(LIMIT_S)
    workers.start(2)
    assert served == []
    monkeypatch.setattr(user_workers, "_HANGS_S", 0.0)
    workers.start(3)
    until(lambda: served == [2, 3])
    go_on.set()
    until(lambda: served == [2, 3, 1])
    workers.close()


def test_a_thread_that_shows_life_keeps_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, served = 0.0, list[int]()
    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr(user_workers, "time", clock)
    meeting = threading.Barrier(2)

    def serve(user: int) -> None:
        meeting.wait(LIMIT_S)
        workers.show_life()
        served.append(user)
        meeting.wait(LIMIT_S)
        meeting.wait(LIMIT_S)

    workers = UserWorkers(1, serve, WarningLog(LOG))
    workers.start(1)
    now_s = 2.0 * user_workers._HANGS_S
    for _ in range(2):
        meeting.wait(LIMIT_S)
    workers.start(2)
    assert len(workers._threads) == 1
    workers._is_closed = True
    meeting.wait(LIMIT_S)
    monkeypatch.undo()
    workers.close()
    assert served == [1]


#: Serves a user whose file system never answers, and ends.
_HANGS = """
import logging, threading
from penstock.live.staging import user_workers
from penstock.live.wire.frames import WarningLog
begun = threading.Event()
def serve(user):
    begun.set()
    threading.Event().wait()
user_workers._END_S = 0.0
workers = user_workers.UserWorkers(1, serve, WarningLog(logging.getLogger()))
workers.start(1)
begun.wait()
workers.close()
"""


def test_a_file_system_that_hangs_does_not_keep_the_process_from_its_end() -> None:
    subprocess.run([sys.executable, "-c", _HANGS], check=True, timeout=LIMIT_S)
