# SPDX-License-Identifier: MIT
"""Tasks for worker processes, and their answers: a result or a `TaskFailure`.

A worker sends an error back as a value. The same task would fail again, so it must not
be tried again. A task whose worker was killed has no answer, and is tried again.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Protocol, TypeAlias, TypeVar

from penstock.errors import InternalError, PenstockError
from penstock.experiments.study import Piece, Row

__all__ = [
    "Answer",
    "Results",
    "Task",
    "TaskFailure",
    "Warn",
    "result_of",
    "run_task",
    "sigint_blocked",
]

#: What an executor yields: pieces with their rows.
Results: TypeAlias = Generator[tuple[Piece, list[Row]], None, None]
#: Called with a message for the user.
Warn: TypeAlias = Callable[[str], None]

_Result = TypeVar("_Result")
_Result_co = TypeVar("_Result_co", covariant=True)


class Task(Protocol[_Result_co]):
    """Work for one worker, e.g. a piece of a study."""

    @property
    def name(self) -> str:
        """A name for messages."""

    def run(self) -> _Result_co:
        """Compute the result, which depends on the task alone."""


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """The error that ended a task."""

    error: PenstockError


Answer: TypeAlias = _Result | TaskFailure


def run_task(task: Task[_Result]) -> Answer[_Result]:
    """Return the result of a task, or its failure whatever the task raises.

    An error that is not penstock's own becomes an `InternalError` with its traceback:
    not every exception can be sent to another process.

    RATIONALE: the task runs in a thread, because a `Future` holds any exception.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        future = thread.submit(task.run)
        error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, PenstockError):
        return TaskFailure(error)
    text = "".join(traceback.format_exception(error))
    return TaskFailure(InternalError(f"{task.name} failed\n{text}"))


def result_of(answer: Answer[_Result]) -> _Result:
    """Return the result of a task, or raise the error that ended the task."""
    if isinstance(answer, TaskFailure):
        raise answer.error
    return answer


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Block SIGINT here and in the processes that the block starts.

    A terminal sends Ctrl-C to all processes of a command. Only the main one may react:
    it ends the others.
    """
    # Python starts this process with the first worker, and would then reset the mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
