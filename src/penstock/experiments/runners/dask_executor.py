# SPDX-License-Identifier: MIT
"""Compute pieces on Dask: on a running scheduler, a local cluster, or Slurm jobs.

Dask itself tries a piece again after its worker died. Its setting
`distributed.scheduler.allowed-failures` says how often.
"""

from __future__ import annotations

import importlib
import logging
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final

from penstock import __version__
from penstock.errors import InputError, MissingExtraError
from penstock.experiments.runners.tasks import (
    Answer,
    Results,
    TaskFailure,
    Warn,
    result_of,
    run_task,
    sigint_blocked,
)
from penstock.experiments.study import Piece, Row

__all__ = ["DaskExecutor"]

#: How long to wait for a scheduler (s).
_CONNECT_S: Final = 5
#: How often to check that there are workers (s).
_CHECK_S: Final = 5.0
_SLURM: Final = "--dask slurm"
#: Loggers in which Dask reports dead workers, which penstock reports itself.
_NOISY: Final = ("distributed", "distributed.client", "tornado.application")
#: A Dask worker may have several threads. They take turns: Numba cannot compile in two
#: threads at a time, and the engine holds Python's global lock anyway.
_ONE_AT_A_TIME: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class DaskExecutor:
    """Computes pieces on a Dask cluster.

    `address` is the address of a scheduler, "local" or "slurm". "local" starts
    `workers` processes on this machine. "slurm" submits `workers` Slurm jobs with the
    settings in the configuration file of dask-jobqueue.
    """

    address: str
    workers: int

    def check(self) -> None:
        """Raise `InputError` if no scheduler answers or Slurm is not installed."""
        _extra("distributed")
        if self.address == "slurm":
            _check_slurm()
        elif self.address != "local":
            with _quiet(), self._client(None):
                pass

    def run(self, pieces: Iterable[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows as soon as it is done."""
        _extra("distributed")
        with _quiet(), ExitStack() as stack:
            # The processes and threads of a local cluster inherit the mask.
            with sigint_blocked():
                cluster = stack.enter_context(self._cluster())
            client = stack.enter_context(self._client(cluster))
            events: SimpleQueue[Any] = SimpleQueue()
            client.subscribe_topic("all", lambda event: events.put(event[1]))
            # Without this the scheduler logs that the subscriber has gone.
            stack.callback(client.unsubscribe_topic, "all")
            workers = _DaskWorkers(client, cluster, warn)
            yield from self._results(workers, pieces, events)

    def _results(
        self, workers: _DaskWorkers, pieces: Iterable[Piece], events: SimpleQueue[Any]
    ) -> Results:
        """Submit the pieces; yield them as they are done, and check the workers.

        `events` receives futures that are done, fetched pieces, and events of the
        scheduler.
        """
        by_key = _pieces_by_key(pieces)
        futures = {}
        for rank, (key, piece) in enumerate(by_key.items()):
            futures[key] = workers.client.submit(
                _run_on_worker, piece, __version__, key=key, priority=-rank
            )
            futures[key].add_done_callback(events.put)
        try:
            while futures:
                workers.check(self.workers)
                try:
                    item = events.get(timeout=_CHECK_S)
                except Empty:
                    continue
                if isinstance(item, dict):
                    _report_death(item, by_key, workers.warn)
                elif isinstance(item, _FetchedPiece):
                    piece = by_key[item.future.key]
                    yield piece, item.rows(piece)
                    del futures[item.future.key]
                else:
                    workers.fetch(item, events)
        finally:
            workers.stop_fetching()

    def _client(self, cluster: Any) -> Any:
        distributed = _extra("distributed")
        try:
            if cluster is None:
                # Checked first: a client without a scheduler takes 10 s to close.
                distributed.comm.resolve_address(self.address)
            return distributed.Client(
                self.address if cluster is None else cluster,
                timeout=_CONNECT_S,
                set_as_default=False,
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers: {error or 'timed out'}",
                where=f"--dask {self.address}",
                remedy="start one (`dask scheduler`), or use --dask local",
            ) from None

    def _cluster(self) -> Any:
        """Return a new cluster; for the address of a scheduler, an empty context."""
        if self.address == "local":
            return _extra("distributed").LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        if self.address == "slurm":
            return _slurm_cluster(self.workers)
        return nullcontext()


@dataclass(slots=True)
class _DaskWorkers:
    """The workers of a Dask cluster."""

    client: Any
    cluster: Any
    warn: Warn
    checked_s: float = 0.0
    """When the workers were checked last, on the monotonic clock."""
    absent: bool = False
    """True if there was no worker at the last check."""
    fetches: set[Future[Any]] = field(default_factory=set)
    """Transfers of answers from the workers that are not complete."""

    def fetch(self, future: Any, events: SimpleQueue[Any]) -> None:
        """Fetch the answer of a piece that is done; put it into `events` then.

        RATIONALE: if the worker that holds the answer dies before the transfer, Dask
        computes the piece again, perhaps on a worker that does not exist yet. Waiting
        here would keep `check` from submitting the Slurm job of that worker.
        """
        import asyncio  # noqa: PLC0415 - slow

        transfer = self.client.gather(future, asynchronous=True)
        answer = asyncio.run_coroutine_threadsafe(
            transfer, self.client.loop.asyncio_loop
        )
        self.fetches.add(answer)
        answer.add_done_callback(self.fetches.discard)
        answer.add_done_callback(lambda _: events.put(_FetchedPiece(future, answer)))

    def stop_fetching(self) -> None:
        """Stop the transfers whose answers nobody needs any more."""
        for answer in list(self.fetches):
            answer.cancel()

    def check(self, jobs: int) -> None:
        """Warn once if there is no worker; submit new Slurm jobs for ended ones.

        The wait has no limit: a job may wait in the queue of a cluster for days.
        """
        now_s = time.monotonic()
        self.checked_s = self.checked_s or now_s
        if now_s < self.checked_s + _CHECK_S:
            return
        self.checked_s = now_s
        if hasattr(self.cluster, "job_script"):
            # Submits again the jobs that have reached their time limit, but not jobs
            # that have never connected: a broken node must not flood the queue.
            self.cluster.scale(jobs=jobs)
        absent = not self.client.scheduler_info()["workers"]
        if absent and not self.absent:
            self.warn("there is no Dask worker: waiting for one (Ctrl-C to stop)")
        self.absent = absent


def _pieces_by_key(pieces: Iterable[Piece]) -> dict[str, Piece]:
    """Return the pieces by their Dask key.

    The key names the study: other users may share the scheduler, and Dask computes
    tasks with equal keys only once.
    """
    digests: dict[int, str] = {}
    by_key = {}
    for piece in pieces:
        digest = digests.setdefault(id(piece.study), "") or piece.study.digest()[:16]
        digests[id(piece.study)] = digest
        by_key[f"penstock-{__version__}-{digest}-{piece.key}"] = piece
    return by_key


def _run_on_worker(piece: Piece, version: str) -> Answer[list[Row]]:
    """Compute a piece; this function runs on a Dask worker."""
    if version != __version__:
        wrong = f"a Dask worker on {socket.gethostname()} has penstock {__version__}"
        return TaskFailure(
            InputError(f"{wrong}, not {version}", remedy="install the same version")
        )
    with _ONE_AT_A_TIME:
        return run_task(piece)


@dataclass(frozen=True, slots=True)
class _FetchedPiece:
    """A piece whose answer has been fetched, or that Dask has given up."""

    future: Any
    answer: Future[Answer[list[Row]]]
    """The end of the transfer."""

    def rows(self, piece: Piece) -> list[Row]:
        """Return the rows of the piece; raise `InputError` if Dask failed."""
        killed = _extra("distributed.scheduler").KilledWorker
        error = None if self.answer.cancelled() else self.answer.exception()
        if isinstance(error, killed):
            raise InputError(
                f"{piece.name} has killed {error.allowed_failures + 1} Dask workers, "
                f"the last one {error.last_worker.address}",
                remedy="out of memory? see the logs of the worker",
            )
        if self.future.status == "error":
            # An error of Dask before penstock's code ran, e.g. a failed import.
            raise InputError(
                f"a Dask worker cannot compute: {type(error).__name__}: {error}",
                remedy="check that penstock is installed for the worker",
            ) from error
        if self.answer.cancelled() or isinstance(error, (CancelledError, OSError)):
            raise InputError(
                "the Dask scheduler has gone",
                remedy="start it and repeat the command: finished pieces are kept",
            )
        return result_of(self.answer.result())


def _report_death(event: dict[str, Any], by_key: dict[str, Piece], warn: Warn) -> None:
    """Report a worker that died, with the pieces that it was computing."""
    if event.get("action") != "remove-worker" or event.get("expected"):
        return
    tasks = (*event.get("processing-tasks", ()), *event.get("lost-computed-tasks", ()))
    if lost := sorted(by_key[key].name for key in tasks if key in by_key):
        warn(
            f"Dask worker {event.get('worker')} died while computing "
            f"{', '.join(lost)}: trying again"
        )


@contextmanager
def _slurm_cluster(jobs: int) -> Iterator[Any]:
    """Submit Slurm jobs; cancel them at the end."""
    _check_slurm()
    jobqueue = _extra("dask_jobqueue")
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(jobqueue.SLURMCluster(**_slurm_settings()))
            # Dask asserts that these are closed. dask-jobqueue closes them, but does
            # not mark them as closed.
            stack.callback(cluster._created.clear)
            cluster.sync(_submit, cluster, jobs)
        except (OSError, RuntimeError, ValueError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(f"cannot start: {lines[-1]}", where=_SLURM) from None
        yield cluster


def _check_slurm() -> None:
    _extra("dask_jobqueue")
    if shutil.which("sbatch") is None:
        raise InputError(
            "there is no command `sbatch` here",
            where=_SLURM,
            remedy="run it on a login node of a Slurm cluster",
        )


async def _submit(cluster: Any, jobs: int) -> None:
    """Submit the jobs; raise the error that `sbatch` reports.

    `scale` alone submits them in a callback, where the error would be lost.
    """
    cluster.scale(jobs=jobs)
    await cluster._correct_state()


def _slurm_settings() -> dict[str, Any]:
    """Return settings that the user's configuration `jobqueue.slurm` leaves open."""
    get = _extra("dask.config").get
    cores = get("jobqueue.slurm.cores", None) or 1
    # A process computes one piece at a time: use as many processes as cores.
    processes = get("jobqueue.slurm.processes", None) or cores
    # Any free port: Dask warns if its default port 8787 is in use.
    scheduler = {"dashboard_address": ":0"}
    scheduler |= get("jobqueue.slurm.scheduler-options", None) or {}
    settings = {"cores": cores, "processes": processes, "scheduler_options": scheduler}
    if get("jobqueue.slurm.memory", None) is None:
        # No memory limit and no option --mem: a Slurm that does not manage memory
        # refuses this option, which dask-jobqueue always gives.
        skip = get("jobqueue.slurm.job-directives-skip", None) or []
        settings |= {"memory": "0", "job_mem": "0"}
        settings |= {"job_directives_skip": [*skip, "--mem="]}
    return settings


def _extra(module: str) -> Any:
    """Import a module of the extra `dask`, which may be missing."""
    on_ctrl_c = signal.getsignal(signal.SIGINT)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "dask", where="--dask") from None
    if signal.getsignal(signal.SIGINT) is not on_ctrl_c:
        # dask_jobqueue makes Ctrl-C end the process with status 0.
        signal.signal(signal.SIGINT, on_ctrl_c)
    return imported


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's own log in the block."""
    loggers = [logging.getLogger(name) for name in _NOISY]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
