# SPDX-License-Identifier: MIT
"""Campaigns on Dask for real: a cluster on this machine, and one by address."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.campaigns import PIECES, Bench, end_session
from support.waiting import processes_of, until

pytest.importorskip("distributed", reason="the extra `dask` is not installed")


@pytest.fixture
def dask(bench: Bench) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return a function that starts ``dask ARGUMENTS`` until the end of the test."""
    with ExitStack() as stack:

        def start(*arguments: object) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *map(str, arguments)],
                cwd=bench.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(bench.folder)},
                start_new_session=True,
            )
            stack.callback(end_session, process)
            return process

        yield start


def _scheduler(dask: Any, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a scheduler; return it with its address."""
    file = folder / "scheduler.json"
    quiet = ("--no-dashboard", "--no-show")
    process = dask(
        *("scheduler", "--host", "127.0.0.1", "--port", 0, *quiet),
        *("--scheduler-file", file),
    )
    until(lambda: file.exists() and file.read_text().endswith("}"))
    return process, json.loads(file.read_text())["address"]


def test_a_local_cluster_and_a_worker_that_dies(bench: Bench, expected: bytes) -> None:
    bench.tell("die")
    output = bench.done("--dask", "local", "--jobs", "2")
    assert re.fullmatch(
        r"Dask worker tcp://127\.0\.0\.1:\d+ died while computing "
        r"(piece 000[01]-00000\d of small(, )?)+: trying again",
        output,
    )
    assert bench.table() == expected


def test_ctrl_c_ends_a_local_cluster(bench: Bench) -> None:
    bench.tell("slow")
    process = bench.start("--dask", "local", "--jobs", "2")
    bench.wait_for_pieces(2)
    os.killpg(process.pid, signal.SIGINT)
    status, output = bench.outcome(process)
    assert status == 130, output
    kept = bench.pieces()
    assert 2 <= len(kept) < PIECES
    message = f"{len(kept)} of {PIECES} pieces are kept in out/studies/small"
    assert (
        output == f"{message}: run the same command again to resume penstock: stopped"
    )
    until(lambda: not processes_of(process.pid))


def test_a_scheduler_by_address(
    bench: Bench, expected: bytes, dask: Any, tmp_path: Path
) -> None:
    scheduler, address = _scheduler(dask, tmp_path)
    # Two threads, as workers have by default: pieces must not disturb one another.
    dask("worker", address, "--no-dashboard", "--nthreads", 2, "--host", "127.0.0.1")
    bench.tell("slow")
    process = bench.start("--dask", address)
    kept = bench.wait_for_pieces(2)
    bench.tell("fail")
    status, output = bench.outcome(process)
    assert status == 2
    assert output.count("ZeroDivisionError: of mine") == 1
    bench.tell("slow")
    process = bench.start("--dask", address)
    kept = bench.wait_for_pieces(len(kept) + 2)
    scheduler.kill()
    status, output = bench.outcome(process)
    assert status == 2, output
    assert "the Dask scheduler has gone" in output
    bench.tell()
    bench.done("--jobs", "1")
    assert kept.items() <= bench.pieces().items()
    assert bench.table() == expected


def test_an_unreachable_scheduler_is_reported(bench: Bench) -> None:
    status, output = bench.run("--dask", "tcp://127.0.0.1:9")
    assert status == 2
    assert output.startswith(
        "penstock: --dask tcp://127.0.0.1:9: no Dask scheduler ans"
    )
    assert "\n" not in output
    assert not (bench.folder / "out").exists()
