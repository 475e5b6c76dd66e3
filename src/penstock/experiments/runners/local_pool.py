# SPDX-License-Identifier: MIT
"""A pool of processes on this machine that knows who computes what.

RATIONALE: `concurrent.futures` breaks the whole pool when a process dies, and tells
neither which one it was nor what it was computing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Final, TypeVar

from penstock.errors import InputError, InternalError
from penstock.experiments.runners.answers import (
    Answer,
    Task,
    Warn,
    compute,
    opened,
    sigint_blocked,
)

__all__ = ["LocalPool"]

_Task = TypeVar("_Task", bound=Task[Any])

#: How often a task whose worker died is tried again.
_RETRIES: Final = 2
#: How long to wait for a process that is dying (s).
_KILL_S: Final = 10
#: RATIONALE: not fork, as a progress display may run a thread in this process.
_CONTEXT: Final = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class LocalPool:
    """Computes in `workers` processes on this machine."""

    workers: int

    def run(
        self, tasks: Sequence[_Task], warn: Warn
    ) -> Generator[tuple[_Task, Any], None, None]:
        """Yield every task with its result as it is done."""
        waiting = list(reversed(tasks))
        crew: list[_Worker] = []
        try:
            with sigint_blocked():
                crew.extend(_Worker() for _ in range(min(self.workers, len(tasks))))
            yield from _results(crew, waiting, warn)
        finally:
            for worker in crew:
                worker.end()


def _results(
    crew: list[_Worker], waiting: list[_Task], warn: Warn
) -> Generator[tuple[_Task, Any], None, None]:
    """Compute from the end of `waiting`; replace workers that die."""
    deaths: Counter[str] = Counter()
    for worker in crew:
        worker.begin(waiting.pop())
    while busy := [worker for worker in crew if worker.task is not None]:
        for worker in _ready(busy):
            task, answer = worker.finish()
            if answer is None:
                deaths[task.name] += 1
                _lament(worker, task, deaths[task.name], warn)
                waiting.append(task)
                with sigint_blocked():
                    crew[crew.index(worker)] = worker = _Worker()
            if waiting:
                worker.begin(waiting.pop())
            if answer is not None:
                yield task, opened(answer)


def _lament(worker: _Worker, task: Task[Any], deaths: int, warn: Warn) -> None:
    """Say who died over which task; raise if that has happened too often."""
    death = worker.death()
    worker.end()
    if deaths > _RETRIES:
        raise InputError(
            f"{task.name} has killed {deaths} workers, the last one {death}",
            remedy="out of memory? use fewer --jobs",
        )
    warn(f"worker {death} while computing {task.name}: trying it again")


def _ready(busy: list[_Worker]) -> list[_Worker]:
    """Wait until some workers have answered or died."""
    # No timeout: a worker does one or the other, and a task may take hours.
    signs = set(wait([sign for worker in busy for sign in worker.signs]))
    return [worker for worker in busy if signs & set(worker.signs)]


class _Worker:
    """A process of the pool, and the task that it computes."""

    __slots__ = ("_pipe", "_process", "task")

    def __init__(self) -> None:
        self.task: Task[Any] | None = None
        # Imported once, not by every worker; without effect after the first.
        _CONTEXT.set_forkserver_preload([__name__])
        self._pipe, theirs = _CONTEXT.Pipe()
        # A daemon: ends with this process even if `end` is never reached.
        self._process = _CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def signs(self) -> tuple[Connection, int]:
        """What becomes ready when the worker has answered or died."""
        return self._pipe, self._process.sentinel

    def begin(self, task: Task[Any]) -> None:
        """Hand over a task; if the worker is dead, `finish` will tell."""
        self.task = task
        with suppress(OSError):
            self._pipe.send(task)

    def finish(self) -> tuple[Any, Answer[Any] | None]:
        """Return the task and the answer, or None if the worker died over it."""
        task, self.task = self.task, None
        if task is None:
            raise InternalError("an idle worker has answered")
        try:
            return task, self._pipe.recv() if self._pipe.poll() else None
        except (EOFError, OSError):
            return task, None

    def death(self) -> str:
        """Return who died and how, once `finish` has told of it."""
        # A closed pipe tells of a death a little before the exit status is known.
        self._process.join(_KILL_S)
        code = self._process.exitcode or 0
        how = f"exit status {code}" if code >= 0 else signal.strsignal(-code)
        return f"{self._process.pid} died ({how})"

    def end(self) -> None:
        """End the process, whatever it does: it holds nothing that is kept."""
        self._pipe.close()
        self._process.kill()
        self._process.join(_KILL_S)


def _serve(pipe: Connection) -> None:
    """Compute what comes through `pipe`: the life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            pipe.send(compute(pipe.recv()))


def _end_with_parent() -> None:
    """Leave when the parent has gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
