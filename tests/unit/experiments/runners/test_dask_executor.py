# SPDX-License-Identifier: MIT
"""Dask without a cluster: settings, names and messages; `e2e` tests the rest."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from penstock import __version__
from penstock.errors import InputError
from penstock.experiments.runners import dask_executor
from penstock.experiments.runners.dask_executor import DaskExecutor
from penstock.experiments.runners.tasks import TaskFailure
from penstock.experiments.study import Point, Study
from support.waiting import LIMIT_S

STUDY = Study("t", (Point("synthetic", (("horizon", 20000.0),)),), 3, ("fcfs",))
PIECES = list(STUDY.pieces())


def _need(package: str) -> None:
    # Not importorskip: dask_jobqueue changes what Ctrl-C does when it is imported.
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed (the extra `dask`)")


@pytest.mark.parametrize(
    ("address", "package"),
    [("local", "distributed"), ("h:1", "distributed"), ("slurm", "dask_jobqueue")],
)
def test_a_missing_extra_is_reported(
    monkeypatch: pytest.MonkeyPatch, address: str, package: str
) -> None:
    if package != "distributed":
        _need("distributed")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError) as caught:
        next(DaskExecutor(address, 1).run(PIECES, pytest.fail))
    assert str(caught.value) == (
        f"--dask: the Python package {package} is not installed "
        "(pip install 'penstock[dask]')"
    )


@pytest.mark.parametrize("address", ["nonsense", "foo://host:1", "no-host.invalid:1"])
def test_an_invalid_address_is_reported_at_once(address: str) -> None:
    _need("distributed")
    executor = DaskExecutor(address, 1)
    for act in (executor.check, lambda: next(executor.run(PIECES, pytest.fail))):
        with pytest.raises(InputError, match=f"--dask {address}: no Dask scheduler"):
            act()


def test_an_unreachable_scheduler_is_reported_before_the_time_limit() -> None:
    _need("distributed")
    # An address that drops all packets, as a firewall does.
    address = "tcp://192.0.2.1:8786"
    dask_executor._extra("distributed")
    began = time.monotonic()
    with pytest.raises(InputError, match=f"--dask {address}: no Dask scheduler"):
        next(DaskExecutor(address, 1).run(PIECES, pytest.fail))
    assert time.monotonic() - began < LIMIT_S


def test_slurm_without_sbatch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _need("dask_jobqueue")
    monkeypatch.setenv("PATH", str(tmp_path))
    executor = DaskExecutor("slurm", 1)
    for act in (executor.check, lambda: next(executor.run(PIECES, pytest.fail))):
        with pytest.raises(InputError, match="there is no command `sbatch` here"):
            act()


def test_keys_differ_between_studies() -> None:
    keys = set(dask_executor._pieces_by_key(PIECES))
    others = set(dask_executor._pieces_by_key(list(replace(STUDY, seed=2).pieces())))
    assert len(keys | others) == 6
    assert all(key.startswith(f"penstock-{__version__}-") for key in keys)


def test_a_worker_of_another_version_is_refused() -> None:
    answer = dask_executor._run_on_worker(PIECES[0], "9.9")
    assert isinstance(answer, TaskFailure)
    assert type(answer.error) is InputError
    assert f"has penstock {__version__}, not 9.9" in str(answer.error)


def _event(**changes: Any) -> dict[str, Any]:
    keys = list(dask_executor._pieces_by_key(PIECES))
    return {
        "action": "remove-worker",
        "expected": False,
        "worker": "tcp://1.2.3.4:5",
        "processing-tasks": {keys[1], "of somebody else"},
        "lost-computed-tasks": {keys[0]},
        **changes,
    }


def test_the_death_of_a_worker_is_reported_with_its_pieces() -> None:
    messages: list[str] = []
    named = dask_executor._pieces_by_key(PIECES)
    dask_executor._report_death(_event(), named, messages.append)
    assert messages == [
        "Dask worker tcp://1.2.3.4:5 died while computing piece 0000-000000 of t, "
        "piece 0000-000001 of t: trying again"
    ]
    for other in (
        _event(expected=True),
        _event(action="add-worker"),
        _event(**{"processing-tasks": (), "lost-computed-tasks": ()}),
    ):
        dask_executor._report_death(other, named, pytest.fail)


def test_slurm_settings_fill_what_the_configuration_leaves_open() -> None:
    _need("dask_jobqueue")
    import dask.config  # noqa: PLC0415 - an extra

    address = {"dashboard_address": ":0"}
    bare = {
        "cores": 1,
        "processes": 1,
        "scheduler_options": address,
        "memory": "0",
        "job_mem": "0",
        "job_directives_skip": ["--mem="],
    }
    assert dask_executor._slurm_settings() == bare
    given = {"cores": 16, "memory": "32GB", "scheduler-options": {"host": "h"}}
    with dask.config.set({"jobqueue.slurm": given}):
        assert dask_executor._slurm_settings() == {
            "cores": 16,
            "processes": 16,
            "scheduler_options": {**address, "host": "h"},
        }
    given = {"cores": 16, "processes": 4, "job-directives-skip": ["-A"]}
    with dask.config.set({"jobqueue.slurm": given}):
        assert dask_executor._slurm_settings() == {
            **bare,
            "cores": 16,
            "processes": 4,
            "job_directives_skip": ["-A", "--mem="],
        }


def test_a_job_that_sbatch_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _need("dask_jobqueue")
    sbatch = tmp_path / "sbatch"
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: Invalid account' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    import dask.config  # noqa: PLC0415 - an extra

    settings = {
        "jobqueue.slurm.scheduler-options": {"host": "127.0.0.1"},
        "temporary-directory": str(tmp_path),
    }
    with dask.config.set(settings), pytest.raises(InputError) as caught:
        next(DaskExecutor("slurm", 2).run(PIECES, pytest.fail))
    assert str(caught.value) == (
        "--dask slurm: cannot start: sbatch: error: Invalid account"
    )


def test_an_import_does_not_change_what_ctrl_c_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rude.py").write_text(
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.getsignal(signal.SIGINT)
    assert dask_executor._extra("rude").__name__ == "rude"
    assert signal.getsignal(signal.SIGINT) is before


def test_missing_workers_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        workers: dict[str, int]

        def scheduler_info(self) -> dict[str, Any]:
            return {"workers": self.workers}

    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.monotonic", lambda: next(clock) + 1.0)
    messages: list[str] = []
    client = Client()
    workers = dask_executor._DaskWorkers(client, None, messages.append)
    for client.workers in ({}, {}, {}, {"w": 1}, {}):
        workers.check(2)
    assert messages == ["there is no Dask worker: waiting for one (Ctrl-C to stop)"] * 2


class DyingWorkers:
    """A cluster like that of Slurm: a worker that has died is replaced by `scale`.

    The first worker dies when it has computed its first piece.
    """

    job_script = "a job of Slurm"

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        distributed = dask_executor._extra("distributed")
        self._folder, self._new_worker = folder, distributed.Worker
        self._cluster = stack.enter_context(
            distributed.LocalCluster(
                n_workers=0, processes=False, dashboard_address=None
            )
        )
        self.client = stack.enter_context(
            distributed.Client(self._cluster, set_as_default=False)
        )
        self._submit = self.client.submit
        self.client.submit = self._submit_and_die
        self.deaths = 0
        self.workers: list[Any] = []
        stack.callback(self._close)

    def scale(self, jobs: int) -> None:
        """Start the worker if it is not running."""
        assert jobs == 1
        if not self.workers:
            self.workers.append(self._cluster.sync(self._start))

    async def _start(self) -> Any:
        address = self._cluster.scheduler_address
        folder = str(self._folder)
        return await self._new_worker(address, nthreads=1, local_directory=folder)

    def _submit_and_die(self, *words: Any, **options: Any) -> Any:
        future = self._submit(*words, **options)
        # Dask runs the functions that are to be called then one after the other.
        future.add_done_callback(self._die)
        return future

    def _die(self, _: object) -> None:
        if not self.deaths:
            self.deaths += 1
            self._close()

    def _close(self) -> None:
        while self.workers:
            self._cluster.sync(self.workers.pop().close)


def test_a_worker_that_dies_before_its_rows_are_fetched_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Dask computes the piece again, as soon as there is a worker again."""
    _need("distributed")
    monkeypatch.setattr(dask_executor, "_CHECK_S", 0.1)
    with ExitStack() as stack:
        cluster = DyingWorkers(stack, tmp_path)
        workers = dask_executor._DaskWorkers(cluster.client, cluster, pytest.fail)
        events: SimpleQueue[Any] = SimpleQueue()
        executor = DaskExecutor("slurm", 1)
        found = [piece for piece, _ in executor._results(workers, PIECES, events)]
        assert cluster.deaths == 1
    assert sorted(piece.key for piece in found) == [piece.key for piece in PIECES]
