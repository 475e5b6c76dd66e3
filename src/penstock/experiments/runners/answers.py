# SPDX-License-Identifier: MIT
"""What a worker is given, and what it sends back: a result, or what went wrong.

An error is sent as a value. It would come back if the task were tried again, so
whoever retries tasks whose worker died must be able to tell the two apart.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, Protocol, TypeAlias, TypeVar

from penstock.errors import InputError, InternalError, PenstockError, PolicyError
from penstock.experiments.study import Piece

__all__ = [
    "Answer",
    "Results",
    "Rows",
    "Task",
    "TaskFailure",
    "Warn",
    "compute",
    "opened",
    "sigint_blocked",
]

Rows: TypeAlias = list[dict[str, Any]]
#: What an executor yields: pieces with their rows.
Results: TypeAlias = Generator[tuple[Piece, Rows], None, None]
#: Called with a message worth showing.
Warn: TypeAlias = Callable[[str], None]

_Result = TypeVar("_Result")
_Result_co = TypeVar("_Result_co", covariant=True)


class Task(Protocol[_Result_co]):
    """What a worker can be given: the piece of a study, for one."""

    @property
    def name(self) -> str:
        """A name for messages."""

    def run(self) -> _Result_co:
        """Compute the result; it depends on the task alone."""


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """What went wrong in a task, in a form that travels between processes."""

    kind: type[PenstockError]
    message: str


Answer: TypeAlias = _Result | TaskFailure


def compute(task: Task[_Result]) -> Answer[_Result]:
    """Return the result of a task, or what went wrong."""
    try:
        return task.run()
    except PenstockError as error:
        kinds = (InputError, PolicyError, InternalError)
        kind = next((k for k in kinds if isinstance(error, k)), InternalError)
        return TaskFailure(kind, str(error))
    except Exception as error:  # noqa: BLE001 - the edge of a process
        story = "".join(traceback.format_exception(error))
        return TaskFailure(InternalError, f"{task.name} failed\n{story}")


def opened(answer: Answer[_Result]) -> _Result:
    """Return the result, or raise what was raised where it was computed."""
    if isinstance(answer, TaskFailure):
        raise answer.kind(answer.message)
    return answer


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started here: they inherit the mask.

    A terminal sends it to all of them, and this one alone decides what to do.
    """
    # Started with the first process otherwise, and then it lifts the mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
