# SPDX-License-Identifier: MIT
"""Where pieces are computed: this process, a pool of processes, or Dask.

All follow the same rules. Pieces are begun in the order given. A piece whose worker
dies is begun again, and the message names the worker and the piece. An error inside
a piece is not tried again: it would come back, so it is raised here, as it was
there. When the iteration ends, for whatever reason, no process of ours is left.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

from penstock import __version__
from penstock.errors import InputError, InternalError, PenstockError, PolicyError
from penstock.experiments.study import Piece

__all__ = ["DaskExecutor", "Inline", "LocalPool", "Results", "Rows", "Warn"]

Rows: TypeAlias = list[dict[str, Any]]
Results: TypeAlias = Generator[tuple[Piece, Rows], None, None]
Warn: TypeAlias = Callable[[str], None]

#: How often a piece whose worker died is tried again on this machine; Dask has a
#: setting of its own (distributed.scheduler.allowed-failures, 3).
_RETRIES: Final = 2
#: How long to wait for a killed process to be gone (s).
_KILL_S: Final = 10
#: How long to wait for a Dask scheduler (s).
_CONNECT_S: Final = 5
#: How often to look whether Dask still has workers (s).
_LOOK_S: Final = 5.0
#: Dask tells of deaths and lost connections here as well; we say it once, our way.
_NOISY: Final = ("distributed", "distributed.client", "tornado.application")
#: A Dask worker may have several threads, but Numba compiles in one at a time, and
#: the engine holds the interpreter anyway.
_ONE_AT_A_TIME: Final = threading.Lock()
#: RATIONALE: not fork, as a progress display may run a thread in this process.
_CONTEXT: Final = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class _Failure:
    """What went wrong in a piece, in a form that travels between processes."""

    kind: type[PenstockError]
    message: str


class Inline:
    """Computes in this process."""

    def run(self, pieces: Sequence[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows."""
        del warn
        for piece in pieces:
            yield piece, piece.rows()


@dataclass(frozen=True, slots=True)
class LocalPool:
    """Computes in `workers` processes on this machine."""

    workers: int

    def run(self, pieces: Sequence[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows as it is done."""
        waiting = list(reversed(pieces))
        crew: list[_Worker] = []
        try:
            with _sigint_blocked():
                crew.extend(_Worker() for _ in range(min(self.workers, len(pieces))))
            yield from _results_of(crew, waiting, warn)
        finally:
            for worker in crew:
                worker.end()


def _results_of(crew: list[_Worker], waiting: list[Piece], warn: Warn) -> Results:
    """Compute from the end of `waiting`; replace workers that die."""
    deaths: Counter[str] = Counter()
    for worker in crew:
        worker.begin(waiting.pop())
    while busy := [worker for worker in crew if worker.piece is not None]:
        for worker in _ready(busy):
            piece, answer = worker.finish()
            if answer is None:
                deaths[piece.name] += 1
                _lament(worker, piece, deaths[piece.name], warn)
                waiting.append(piece)
                with _sigint_blocked():
                    crew[crew.index(worker)] = worker = _Worker()
            if waiting:
                worker.begin(waiting.pop())
            if answer is not None:
                yield piece, _opened(answer)


def _lament(worker: _Worker, piece: Piece, deaths: int, warn: Warn) -> None:
    """Say who died over which piece; raise if that has happened too often."""
    death = worker.death()
    worker.end()
    if deaths > _RETRIES:
        raise InputError(
            f"piece {piece.name} has killed {deaths} workers, the last one {death}",
            remedy="out of memory? use fewer --jobs",
        )
    warn(f"worker {death} while computing piece {piece.name}: trying it again")


class _Worker:
    """A process of the pool, and the piece that it computes."""

    __slots__ = ("_pipe", "_process", "piece")

    def __init__(self) -> None:
        self.piece: Piece | None = None
        # Imported once, not by every worker; without effect after the first.
        _CONTEXT.set_forkserver_preload([__name__])
        self._pipe, theirs = _CONTEXT.Pipe()
        # A daemon: ends with this process even if `end` was never reached.
        self._process = _CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def signs(self) -> tuple[Connection, int]:
        """What becomes ready when the worker has answered or died."""
        return self._pipe, self._process.sentinel

    def begin(self, piece: Piece) -> None:
        """Hand over a piece; if the worker is dead, `finish` will tell."""
        self.piece = piece
        with suppress(OSError):
            self._pipe.send(piece)

    def finish(self) -> tuple[Piece, Rows | _Failure | None]:
        """Return the piece and the answer, or None if the worker died over it."""
        piece, self.piece = self.piece, None
        if piece is None:
            raise InternalError("an idle worker has answered")
        try:
            return piece, self._pipe.recv() if self._pipe.poll() else None
        except (EOFError, OSError):
            return piece, None

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


def _ready(busy: list[_Worker]) -> list[_Worker]:
    """Wait until some workers have answered or died."""
    # No timeout: a worker does one or the other, and a piece may take hours.
    signs = set(wait([sign for worker in busy for sign in worker.signs]))
    return [worker for worker in busy if signs & set(worker.signs)]


def _serve(pipe: Connection) -> None:
    """Compute what comes through `pipe`: the life of a worker."""
    # Ctrl-C reaches all processes of a terminal; the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            pipe.send(_compute(pipe.recv()))


def _end_with_parent() -> None:
    """Leave when the parent has gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _compute(piece: Piece) -> Rows | _Failure:
    """Return the rows of a piece, or what went wrong."""
    try:
        return piece.rows()
    except PenstockError as error:
        kinds = (InputError, PolicyError, InternalError)
        kind = next((k for k in kinds if isinstance(error, k)), InternalError)
        return _Failure(kind, str(error))
    except Exception as error:  # noqa: BLE001 - the edge of a process
        story = "".join(traceback.format_exception(error))
        return _Failure(InternalError, f"piece {piece.name} failed\n{story}")


def _opened(answer: Rows | _Failure) -> Rows:
    """Return the rows, or raise what was raised where they were computed."""
    if isinstance(answer, _Failure):
        raise answer.kind(answer.message)
    return answer


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Keep Ctrl-C from what is started here: processes inherit the mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class DaskExecutor:
    """Computes on a Dask cluster: an address, "local", or "slurm".

    "local" starts `workers` processes here, "slurm" as many Slurm jobs, with the
    settings of dask-jobqueue's own configuration file.
    """

    address: str
    workers: int

    def run(self, pieces: Sequence[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows as it is done."""
        _extra("distributed")
        with _quiet(), ExitStack() as stack:
            # Blocked: the processes and threads of a local cluster inherit it.
            with _sigint_blocked():
                cluster = stack.enter_context(self._cluster())
            client = stack.enter_context(self._client(cluster))
            news: SimpleQueue[Any] = SimpleQueue()
            client.subscribe_topic("all", lambda event: news.put(event[1]))
            # Else the scheduler would tell, and log that nobody listens any more.
            stack.callback(client.unsubscribe_topic, "all")
            submitted = _submitted(client, pieces, news)
            idle, look_at = False, time.monotonic() + _LOOK_S

    def _results(
        self, client: Any, cluster: Any, pieces: Sequence[Piece], warn: Warn
    ) -> Results:
        """Submit the pieces; yield them as they are done, and watch the workers."""
        # Others may use the same scheduler: a key must say what it stands for.
        study = f"penstock-{__version__}-{pieces[0].study.digest()[:16]}"
        named = {f"{study}-{piece.name}": piece for piece in pieces}
        news: SimpleQueue[Any] = SimpleQueue()
        client.subscribe_topic("all", lambda event: news.put(event[1]))
        futures = {}
        for rank, (key, piece) in enumerate(named.items()):
            futures[key] = client.submit(
                _compute_there, piece, __version__, key=key, priority=-rank
            )
            futures[key].add_done_callback(news.put)
        idle, look_at = False, time.monotonic() + _LOOK_S
        while futures:
            if time.monotonic() >= look_at:
                idle = self._look_after(client, cluster, warn, idle=idle)
                look_at = time.monotonic() + _LOOK_S
            with suppress(Empty):
                item = news.get(timeout=_LOOK_S)
                if isinstance(item, dict):
                    _name_the_dead(item, named, warn)
                else:
                    yield named[item.key], _fetched(item, named[item.key])
                    del futures[item.key]

    def _look_after(self, client: Any, cluster: Any, warn: Warn, *, idle: bool) -> bool:
        """Say if there is no worker (once); return whether that is so.

        There is no limit to the wait: a job may be in the queue of a cluster for days.
        """
        if self.address == "slurm":
            # Jobs that have reached their time limit are submitted again; those
            # that never reported are not, so a broken node floods no queue.
            cluster.scale(jobs=self.workers)
        none = not client.scheduler_info()["workers"]
        if none and not idle:
            hint = "; see squeue and slurm-*.out" if self.address == "slurm" else ""
            warn(f"there is no Dask worker: waiting for one (Ctrl-C to stop{hint})")
        return none

    def _client(self, cluster: Any) -> Any:
        distributed = _extra("distributed")
        target = self.address if cluster is None else cluster
        try:
            if cluster is None:
                # A client that never was takes ten seconds to go: no port, no client.
                distributed.comm.resolve_address(target)
            return distributed.Client(target, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers: {error or 'timed out'}",
                where=f"--dask {self.address}",
                remedy="start one (`dask scheduler`), or use --dask local",
            ) from None

    def _cluster(self) -> Any:
        """Return a cluster of our own, or a context that stands for none."""
        if self.address == "local":
            return _extra("distributed").LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        return self._slurm() if self.address == "slurm" else nullcontext()

    def _slurm(self) -> Any:
        """Return a cluster whose jobs are submitted."""
        jobqueue = _extra("dask_jobqueue")
        where = "--dask slurm"
        if shutil.which("sbatch") is None:
            raise InputError(
                "there is no command `sbatch` here",
                where=where,
                remedy="run it on a login node of a Slurm cluster",
            )
        try:
            cluster = jobqueue.SLURMCluster(**_slurm_settings())
            with ExitStack() as stack:
                stack.enter_context(cluster)
                cluster.scale(jobs=self.workers)
                cluster.sync(_settled, cluster)
                stack.pop_all()
        except (OSError, RuntimeError, ValueError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(f"cannot start: {said[-1]}", where=where) from None
        return cluster


def _compute_there(piece: Piece, version: str) -> Rows | _Failure:
    """Compute a piece on a Dask worker."""
    if version != __version__:
        return _Failure(
            InputError,
            f"a Dask worker on {socket.gethostname()} has penstock {__version__}, "
            f"not {version} (install the same version there)",
        )
    with _ONE_AT_A_TIME:
        return _compute(piece)


def _fetched(future: Any, piece: Piece) -> Rows:
    """Return the rows of a piece that Dask has done with."""
    # No timeout: if the worker that holds the rows dies, they are computed again.
    killed = _extra("distributed.scheduler").KilledWorker
    try:
        return _opened(future.result())
    except killed as error:
        raise InputError(
            f"piece {piece.name} has killed {error.allowed_failures + 1} Dask workers, "
            f"the last one {error.last_worker.address}",
            remedy="out of memory? see the logs of the worker",
        ) from None
    except CancelledError:
        raise InputError("the Dask scheduler is gone") from None
    except PenstockError:
        raise
    except Exception as error:  # Dask passes on whatever befell the worker
        raise InputError(
            f"a Dask worker cannot compute: {type(error).__name__}: {error}",
            remedy="is penstock installed there?",
        ) from error


def _name_the_dead(event: dict[str, Any], named: dict[str, Piece], warn: Warn) -> None:
    """Say which worker died over which pieces of ours."""
    if event.get("action") != "remove-worker" or event.get("expected"):
        return
    tasks = (*event.get("processing-tasks", ()), *event.get("lost-computed-tasks", ()))
    ours = sorted(named[key].name for key in tasks if key in named)
    if ours:
        plural = "s" if len(ours) > 1 else ""
        warn(
            f"Dask worker {event.get('worker')} died while computing "
            f"piece{plural} {', '.join(ours)}: trying again"
        )


def _slurm_settings() -> dict[str, Any]:
    """Return settings for what the user's `jobqueue.slurm` leaves open."""
    get = _extra("dask.config").get
    cores = get("jobqueue.slurm.cores", None) or 1
    # One piece at a time per process: as many processes as cores.
    processes = get("jobqueue.slurm.processes", None) or cores
    settings = {"cores": cores, "processes": processes}
    if get("jobqueue.slurm.memory", None) is None:
        # Without limit; and no --mem, which a Slurm that does not manage memory
        # refuses. dask-jobqueue cannot leave it out by itself.
        skip = get("jobqueue.slurm.job-directives-skip", None) or []
        settings |= {"memory": "0", "job_mem": "0"}
        settings |= {"job_directives_skip": [*skip, "--mem="]}
    return settings


async def _settled(cluster: Any) -> None:
    """Wait until the jobs are submitted, and raise what `sbatch` said."""
    await cluster


def _extra(module: str) -> Any:
    """Import a module of the extra `dask`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"the Python package {error.name} is missing",
            where="--dask",
            remedy="pip install penstock[dask]",
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's own log for a while."""
    loggers = [logging.getLogger(name) for name in _NOISY]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
