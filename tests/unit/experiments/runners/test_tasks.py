# SPDX-License-Identifier: MIT
"""Answers of workers: rows, or errors that can be pickled."""

from __future__ import annotations

import pickle
import signal
from typing import Any

import pytest

from penstock.errors import (
    InputError,
    InternalError,
    PolicyError,
    UnavailableError,
    UnknownNameError,
)
from penstock.experiments.runners.tasks import (
    TaskFailure,
    result_of,
    run_task,
    sigint_blocked,
)


class _Broken:
    name = "piece 0000-000001"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def run(self) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("bad", where="x", remedy="mend it"), InputError),
        (UnknownNameError("policy", "fsfc", ["fcfs"]), UnknownNameError),
        (PolicyError("policy p at t = 3 s: over its cap"), PolicyError),
        (InternalError("status 9"), InternalError),
        (UnavailableError("not now"), UnavailableError),
    ],
)
def test_an_error_arrives_with_its_own_message(error: Any, kind: Any) -> None:
    answer = pickle.loads(pickle.dumps(run_task(_Broken(error))))  # noqa: S301
    with pytest.raises(kind) as caught:
        result_of(answer)
    assert str(caught.value) == str(error)


def test_a_bug_arrives_with_its_traceback() -> None:
    answer = run_task(_Broken(ZeroDivisionError("of ours")))
    assert isinstance(answer, TaskFailure)
    assert type(answer.error) is InternalError
    assert answer.error.what.startswith("piece 0000-000001 failed\nTraceback")
    assert "ZeroDivisionError: of ours" in answer.error.what


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError()])
def test_no_exception_ends_the_worker(error: BaseException) -> None:
    answer = run_task(_Broken(error))
    assert isinstance(answer, TaskFailure)
    assert type(error).__name__ in answer.error.what


def test_a_result_is_returned_as_it_is() -> None:
    class Done:
        name = "piece 0000-000002"

        def run(self) -> list[dict[str, int]]:
            return [{"a": 1}]

    assert result_of(run_task(Done())) == [{"a": 1}]


def test_ctrl_c_is_blocked_for_a_while() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with sigint_blocked():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
