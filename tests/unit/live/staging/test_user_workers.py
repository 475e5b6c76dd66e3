# SPDX-License-Identifier: MIT
"""An error while one user is served ends nothing but what was in work."""

from __future__ import annotations

import logging
import threading
from collections import deque

import pytest

from penstock.live.staging.user_workers import UserWorkers
from penstock.live.wire.frames import WarningLog
from support.waiting import LIMIT_S, until

LOG = logging.getLogger("test")


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
    workers._pool.shutdown(wait=True)
    assert served == [1]
