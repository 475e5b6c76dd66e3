# SPDX-License-Identifier: MIT
"""A pool of worker processes on this machine.

A worker computes one task at a time. If it dies, its task is given to a new worker, at
most twice; the message names the worker, how it died, and the task. When the iteration
over the results ends, for any reason, all workers are killed.

RATIONALE: we tried `concurrent.futures` (Python 3.11) and loky 3.7: when one worker is
killed, both fail all pending tasks and tell neither which worker died nor which task it
had. After Ctrl-C, a pool of `concurrent.futures` also delays the exit of the program
until the running tasks are done.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from typing import Any, Final, TypeAlias, TypeVar

from penstock.errors import InputError, InternalError
from penstock.experiments.runners.tasks import (
    Answer,
    Task,
    Warn,
    result_of,
    run_task,
    sigint_blocked,
)

__all__ = ["LocalPool"]

_Task = TypeVar("_Task", bound=Task[Any])
#: Returns the result of a task, from the task and how its last worker died.
GiveUp: TypeAlias = Callable[[Any, str], Any]

#: How often a task is tried again after its worker died.
_RETRIES: Final = 2
#: How long to wait for the end of a process that was killed (s).
_KILL_S: Final = 10
#: RATIONALE: not "fork", because a progress display may run a thread in this process.
_CONTEXT: Final = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class LocalPool:
    """Computes tasks in `workers` processes on this machine."""

    workers: int
    give_up: GiveUp | None = None
    """Called for a task that has killed too many workers; None: this is an error."""

    def run(
        self, tasks: Iterable[_Task], warn: Warn
    ) -> Generator[tuple[_Task, Any], None, None]:
        """Yield every task with its result as soon as it is done.

        A task is taken from `tasks` when a worker is free for it.
        """
        waiting = iter(tasks)
        first = list(islice(waiting, self.workers))
        workers: list[_Worker] = []
        try:
            with sigint_blocked():
                workers.extend(_Worker() for _ in first)
            tasks = chain(first, waiting)
            yield from _results(workers, tasks, warn, self.give_up)
        finally:
            for worker in workers:
                worker.end()


def _results(
    workers: list[_Worker],
    waiting: Iterator[_Task],
    warn: Warn,
    give_up: GiveUp | None,
) -> Generator[tuple[_Task, Any], None, None]:
    """Compute the tasks in their order; replace workers that die."""
    deaths: Counter[int] = Counter()
    for worker in workers:
        worker.begin(next(waiting))
    while busy := [worker for worker in workers if worker.task is not None]:
        for worker in _ready(busy):
            task, answer = worker.finish()
            if answer is None:
                deaths[id(task)] += 1
                death = worker.death()
                worker.end()
                if give_up is not None and deaths[id(task)] > _RETRIES:
                    yield task, give_up(task, death)
                else:
                    _report_death(death, task, deaths[id(task)], warn)
                    waiting = chain((task,), waiting)
                with sigint_blocked():
                    workers[workers.index(worker)] = worker = _Worker()
            if (following := next(waiting, None)) is not None:
                worker.begin(following)
            if answer is not None:
                yield task, result_of(answer)


def _report_death(death: str, task: Task[Any], deaths: int, warn: Warn) -> None:
    """Report a dead worker and its task; raise if the task has killed too many."""
    if deaths > _RETRIES:
        raise InputError(
            f"{task.name} has killed {deaths} workers, the last one {death}",
            remedy="out of memory? use fewer processes: --jobs, in Python jobs=",
        )
    warn(f"worker {death} while computing {task.name}: trying it again")


def _ready(busy: list[_Worker]) -> list[_Worker]:
    """Wait until some workers have answered or died; return these workers."""
    # No timeout: every worker answers or dies, and a task may take hours.
    ready = set(wait([source for worker in busy for source in worker.sources]))
    return [worker for worker in busy if ready & set(worker.sources)]


class _Worker:
    """A process of the pool, and the task that it computes."""

    __slots__ = ("_pipe", "_process", "task")

    def __init__(self) -> None:
        self.task: Task[Any] | None = None
        # The fork server imports this module once for all workers. Only the first
        # call has an effect.
        _CONTEXT.set_forkserver_preload([__name__])
        self._pipe, far_end = _CONTEXT.Pipe()
        # A daemon ends with this process even if `end` is never called.
        self._process = _CONTEXT.Process(target=_serve, args=(far_end,), daemon=True)
        self._process.start()
        far_end.close()

    @property
    def sources(self) -> tuple[Connection, int]:
        """The pipe and the sentinel, one of which is ready after an answer or death."""
        return self._pipe, self._process.sentinel

    def begin(self, task: Task[Any]) -> None:
        """Give a task to the worker; if the worker is dead, `finish` reports it."""
        self.task = task
        with suppress(OSError):
            self._pipe.send(task)

    def finish(self) -> tuple[Any, Answer[Any] | None]:
        """Return the task and its answer, or None as the answer of a dead worker."""
        task, self.task = self.task, None
        if task is None:
            raise InternalError("a worker without a task has answered")
        try:
            return task, self._pipe.recv() if self._pipe.poll() else None
        except (EOFError, OSError):
            return task, None

    def death(self) -> str:
        """Return the number of a dead worker, and how it died."""
        # The pipe of a dying process is closed before its exit status is known.
        self._process.join(_KILL_S)
        code = self._process.exitcode or 0
        how = f"exit status {code}" if code >= 0 else signal.strsignal(-code)
        return f"{self._process.pid} died ({how})"

    def end(self) -> None:
        """Kill the process, even during a task: unfinished results are not kept."""
        self._pipe.close()
        self._process.kill()
        self._process.join(_KILL_S)


def _serve(pipe: Connection) -> None:
    """Answer the tasks that come through `pipe`: the main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            pipe.send(run_task(pipe.recv()))


def _end_with_parent() -> None:
    """End this process when its parent has ended, even if the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
