# SPDX-License-Identifier: MIT
"""What a worker sends back: the rows of a piece, or what went wrong.

An error is sent as a value. It would come back if the piece were tried again, so
whoever retries pieces whose worker died must be able to tell the two apart.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, TypeAlias

from penstock.errors import InputError, InternalError, PenstockError, PolicyError
from penstock.experiments.study import Piece

__all__ = [
    "Answer",
    "Failure",
    "Results",
    "Rows",
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


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in a piece, in a form that travels between processes."""

    kind: type[PenstockError]
    message: str


Answer: TypeAlias = Rows | Failure


def compute(piece: Piece) -> Answer:
    """Return the rows of a piece, or what went wrong."""
    try:
        return piece.rows()
    except PenstockError as error:
        kinds = (InputError, PolicyError, InternalError)
        kind = next((k for k in kinds if isinstance(error, k)), InternalError)
        return Failure(kind, str(error))
    except Exception as error:  # noqa: BLE001 - the edge of a process
        story = "".join(traceback.format_exception(error))
        return Failure(InternalError, f"piece {piece.name} failed\n{story}")


def opened(answer: Answer) -> Rows:
    """Return the rows, or raise what was raised where they were computed."""
    if isinstance(answer, Failure):
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
