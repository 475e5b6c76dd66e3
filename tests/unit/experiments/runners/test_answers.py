# SPDX-License-Identifier: MIT
"""Answers of workers: rows, or errors that survive the journey."""

from __future__ import annotations

import pickle
import signal
from typing import Any

import pytest

from penstock.errors import (
    InputError,
    InternalError,
    PenstockError,
    PolicyError,
    UnknownNameError,
)
from penstock.experiments.runners.answers import (
    TaskFailure,
    compute,
    opened,
    sigint_blocked,
)


class _Broken:
    name = "piece 0000-000001"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("bad", where="x", remedy="mend it"), InputError),
        (UnknownNameError("policy", "fsfc", ["fcfs"]), InputError),
        (PolicyError("policy p at t = 3 s: over its cap"), PolicyError),
        (InternalError("status 9"), InternalError),
        (PenstockError("other"), InternalError),
    ],
)
def test_an_error_arrives_with_its_own_message(error: Any, kind: Any) -> None:
    answer = pickle.loads(pickle.dumps(compute(_Broken(error))))  # noqa: S301
    with pytest.raises(kind) as caught:
        opened(answer)
    assert str(caught.value) == str(error)


def test_a_bug_arrives_with_its_traceback() -> None:
    answer = compute(_Broken(ZeroDivisionError("of ours")))
    assert isinstance(answer, TaskFailure)
    assert answer.kind is InternalError
    assert answer.message.startswith("piece 0000-000001 failed\nTraceback")
    assert "ZeroDivisionError: of ours" in answer.message


def test_rows_pass() -> None:
    rows = [{"a": 1}]
    assert opened(rows) is rows


def test_ctrl_c_is_blocked_for_a_while() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with sigint_blocked():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
