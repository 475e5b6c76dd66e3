# SPDX-License-Identifier: MIT
"""Computing on Dask: a scheduler somewhere, a cluster on this machine, or Slurm.

Dask tries a piece whose worker died again by itself, as often as its own setting
`distributed.scheduler.allowed-failures` says.
"""

from __future__ import annotations

import importlib
import logging
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final

from penstock import __version__
from penstock.errors import InputError, PenstockError
from penstock.experiments.runners.answers import (
    Answer,
    Results,
    Rows,
    TaskFailure,
    Warn,
    compute,
    opened,
    sigint_blocked,
)
from penstock.experiments.study import Piece

__all__ = ["DaskExecutor"]

#: How long to wait for a scheduler (s).
_CONNECT_S: Final = 5
#: How often to look whether there still are workers (s).
_LOOK_S: Final = 5.0
_SLURM: Final = "--dask slurm"
#: Dask tells of deaths and lost connections here as well; we say it once, our way.
_NOISY: Final = ("distributed", "distributed.client", "tornado.application")
#: A Dask worker may have several threads, but Numba compiles in one at a time, and
#: the engine holds the interpreter anyway.
_ONE_AT_A_TIME: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class DaskExecutor:
    """Computes on a Dask cluster: an address, "local", or "slurm".

    "local" starts `workers` processes here, "slurm" as many Slurm jobs, with the
    settings of dask-jobqueue's own configuration file.
    """

    address: str
    workers: int

    def check(self) -> None:
        """Raise `InputError` if nothing answers, before anything is made for it."""
        _extra("distributed")
        if self.address == "slurm":
            _check_slurm()
        elif self.address != "local":
            with _quiet(), self._client(None):
                pass

    def run(self, pieces: Sequence[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows as it is done."""
        _extra("distributed")
        with _quiet(), ExitStack() as stack:
            # Processes and threads of a local cluster inherit the mask.
            with sigint_blocked():
                cluster = stack.enter_context(self._cluster())
            client = stack.enter_context(self._client(cluster))
            news: SimpleQueue[Any] = SimpleQueue()
            client.subscribe_topic("all", lambda event: news.put(event[1]))
            # Else the scheduler would log that it talks to nobody.
            stack.callback(client.unsubscribe_topic, "all")
            yield from self._results(_Crew(client, cluster, warn), pieces, news)

    def _results(
        self, crew: _Crew, pieces: Sequence[Piece], news: SimpleQueue[Any]
    ) -> Results:
        """Submit the pieces; yield them as they are done, and watch the workers."""
        named = _named(pieces)
        futures = {}
        for rank, (key, piece) in enumerate(named.items()):
            futures[key] = crew.client.submit(
                _compute_there, piece, __version__, key=key, priority=-rank
            )
            futures[key].add_done_callback(news.put)
        while futures:
            crew.look_after(self.workers)
            try:
                item = news.get(timeout=_LOOK_S)
            except Empty:
                continue
            if isinstance(item, dict):
                _name_the_dead(item, named, crew.warn)
            else:
                piece = named[item.key]
                yield piece, _fetched(item, piece)
                del futures[item.key]

    def _client(self, cluster: Any) -> Any:
        distributed = _extra("distributed")
        try:
            if cluster is None:
                # Before there is a client: half-made, it takes ten seconds to go.
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
        """Return a cluster of our own, or a context that stands for none."""
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
class _Crew:
    """The workers, seen from here."""

    client: Any
    cluster: Any
    warn: Warn
    looked: float = 0.0
    missed: bool = False

    def look_after(self, jobs: int) -> None:
        """Say if there is no worker (once), and replace Slurm jobs that ended.

        There is no limit to the wait: a job may be in the queue of a cluster for days.
        """
        now = time.monotonic()
        self.looked = self.looked or now
        if now < self.looked + _LOOK_S:
            return
        self.looked = now
        if hasattr(self.cluster, "job_script"):
            # Jobs that have reached their time limit are submitted again; those
            # that never reported are not, so a broken node floods no queue.
            self.cluster.scale(jobs=jobs)
        none = not self.client.scheduler_info()["workers"]
        if none and not self.missed:
            self.warn("there is no Dask worker: waiting for one (Ctrl-C to stop)")
        self.missed = none


def _named(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """Return the pieces by Dask key.

    Others may use the same scheduler, and Dask takes equal keys for equal work.
    """
    study = f"penstock-{__version__}-{pieces[0].study.digest()[:16]}"
    return {f"{study}-{piece.key}": piece for piece in pieces}


def _compute_there(piece: Piece, version: str) -> Answer[Rows]:
    """Compute a piece on a Dask worker."""
    if version != __version__:
        return TaskFailure(
            InputError,
            f"a Dask worker on {socket.gethostname()} has penstock {__version__}, "
            f"not {version} (install the same version there)",
        )
    with _ONE_AT_A_TIME:
        return compute(piece)


def _fetched(future: Any, piece: Piece) -> Rows:
    """Return the rows of a piece that Dask has done with."""
    killed = _extra("distributed.scheduler").KilledWorker
    try:
        # No timeout: if the worker that holds the rows dies, they come later.
        return opened(future.result())
    except killed as error:
        raise InputError(
            f"{piece.name} has killed {error.allowed_failures + 1} Dask workers, "
            f"the last one {error.last_worker.address}",
            remedy="out of memory? see the logs of the worker",
        ) from None
    except CancelledError:
        raise InputError("the Dask scheduler is gone") from None
    except PenstockError:
        raise
    except Exception as error:
        # Dask passes on whatever befell the worker before our own code ran.
        raise InputError(
            f"a Dask worker cannot compute: {type(error).__name__}: {error}",
            remedy="is penstock installed there?",
        ) from error


def _name_the_dead(event: dict[str, Any], named: dict[str, Piece], warn: Warn) -> None:
    """Say which worker died over which pieces of ours."""
    if event.get("action") != "remove-worker" or event.get("expected"):
        return
    tasks = (*event.get("processing-tasks", ()), *event.get("lost-computed-tasks", ()))
    if ours := sorted(named[key].key for key in tasks if key in named):
        plural = "s" if len(ours) > 1 else ""
        warn(
            f"Dask worker {event.get('worker')} died while computing "
            f"piece{plural} {', '.join(ours)}: trying again"
        )


@contextmanager
def _slurm_cluster(jobs: int) -> Iterator[Any]:
    """Submit jobs, and cancel them in the end."""
    _check_slurm()
    jobqueue = _extra("dask_jobqueue")
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(jobqueue.SLURMCluster(**_slurm_settings()))
            # Dask asserts in the end that these are closed; dask-jobqueue closes
            # them, but does not mark them.
            stack.callback(cluster._created.clear)
            cluster.sync(_submit, cluster, jobs)
        except (OSError, RuntimeError, ValueError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(f"cannot start: {said[-1]}", where=_SLURM) from None
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
    """Submit the jobs, and raise what `sbatch` says.

    `scale` alone leaves that to a callback, where nobody would hear of it.
    """
    cluster.scale(jobs=jobs)
    await cluster._correct_state()


def _slurm_settings() -> dict[str, Any]:
    """Return settings for what the user's `jobqueue.slurm` leaves open."""
    get = _extra("dask.config").get
    cores = get("jobqueue.slurm.cores", None) or 1
    # One piece at a time per process: as many processes as cores.
    processes = get("jobqueue.slurm.processes", None) or cores
    # Not 8787: Dask complains if somebody else has it.
    scheduler = {"dashboard_address": ":0"}
    scheduler |= get("jobqueue.slurm.scheduler-options", None) or {}
    settings = {"cores": cores, "processes": processes, "scheduler_options": scheduler}
    if get("jobqueue.slurm.memory", None) is None:
        # Without limit, and without --mem: a Slurm that does not manage memory
        # refuses it. dask-jobqueue cannot leave it out by itself.
        skip = get("jobqueue.slurm.job-directives-skip", None) or []
        settings |= {"memory": "0", "job_mem": "0"}
        settings |= {"job_directives_skip": [*skip, "--mem="]}
    return settings


def _extra(module: str) -> Any:
    """Import a module of the extra `dask`."""
    on_ctrl_c = signal.getsignal(signal.SIGINT)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"the Python package {error.name} is missing",
            where="--dask",
            remedy="pip install penstock[dask]",
        ) from None
    if signal.getsignal(signal.SIGINT) is not on_ctrl_c:
        # dask_jobqueue has Ctrl-C end the process, and with status 0.
        signal.signal(signal.SIGINT, on_ctrl_c)
    return found


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
