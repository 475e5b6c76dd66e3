# SPDX-License-Identifier: MIT
"""A thread that calls functions in order, and does not delay the end."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import pytest

from penstock.live.worker import Worker
from support.waiting import LIMIT_S


def test_functions_are_called_in_order_and_their_errors_are_passed_on() -> None:
    worker, calls = Worker("test"), []

    def call(number: int, *, fails: bool = False) -> int:
        calls.append(number)
        if fails:
            raise LookupError(number)
        return number

    submitted = [worker.submit(call, n, fails=n == 1) for n in range(3)]
    assert submitted[2].result(LIMIT_S) == 2
    assert calls == [0, 1, 2]
    assert isinstance(submitted[1].exception(LIMIT_S), LookupError)
    assert worker.end(LIMIT_S)


def test_the_end_waits_for_what_was_submitted() -> None:
    worker, go_on = Worker("test"), threading.Event()
    worker.submit(go_on.wait, LIMIT_S)
    last = worker.submit(lambda: "last")
    assert not worker.end(0.0)
    go_on.set()
    assert worker.end(LIMIT_S)
    assert last.result(0.0) == "last"
    assert worker.submit(lambda: "late").cancelled()


def test_what_waits_is_dropped_if_wanted() -> None:
    worker, begun, go_on = Worker("test"), threading.Event(), threading.Event()

    def first() -> str:
        begun.set()
        go_on.wait(LIMIT_S)
        return "first"

    submitted = [worker.submit(first), worker.submit(lambda: "second")]
    assert begun.wait(LIMIT_S)
    assert not worker.end(0.0, drops=True)
    go_on.set()
    assert submitted[0].result(LIMIT_S) == "first"
    with pytest.raises(CancelledError):
        submitted[1].result(LIMIT_S)
    assert worker.end(LIMIT_S)


def test_a_worker_without_work_has_ended_at_once() -> None:
    assert Worker("test").end(0.0)


def test_a_thread_that_cannot_be_started_is_started_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Worker("test")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _fail)
        with pytest.raises(RuntimeError):
            worker.submit(lambda: "first")
    assert worker.submit(lambda: "second").result(LIMIT_S) == "second"
    assert worker.end(LIMIT_S)


def _fail(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


#: Calls a function that never returns, as on a file system that does not answer.
_HANGS = """
import threading
from penstock.live.worker import Worker
worker, begun = Worker("test"), threading.Event()
def hang():
    begun.set()
    threading.Event().wait()
worker.submit(hang)
begun.wait()
assert not worker.end(0.0)
"""


def test_a_function_that_hangs_does_not_keep_the_process_from_its_end() -> None:
    subprocess.run([sys.executable, "-c", _HANGS], check=True, timeout=LIMIT_S)
