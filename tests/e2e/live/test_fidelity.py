# SPDX-License-Identifier: MIT
"""``penstock bench fidelity`` on a real mount, with a workload of a few seconds.

The difference of live and simulated yields depends on the machine. The test checks
that they are measured and that no byte is lost.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.accuracy import fidelity, shares
from penstock.bench.applications import RunPlace, run_applications
from penstock.bench.testbed import LiveTestbed, open_testbed, running_daemon
from penstock.cli import main
from penstock.errors import InputError
from penstock.model import Application, Platform
from support.mounts import why_no_mounts

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
needs_mounts = pytest.mark.skipif(
    bool(why_no_mounts()), reason=why_no_mounts() or "there are mounts"
)
POLICIES = ("fair-share", "fcfs", "periodic-greedy-yield:delta=1")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder with a short name: the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="p") as name:
        yield Path(name)


def _figures(
    folder: Path, capsys: pytest.CaptureFixture[str], *names: str
) -> list[dict[str, Any]]:
    command = ["bench", "fidelity", "--rounds=1", f"--folder={folder}", "--json=-"]
    assert main([*command, "--policies", *names]) in {0, 1}
    document = json.loads(capsys.readouterr().out)
    figures: list[dict[str, Any]] = document["benchmarks"]["fidelity"]
    return figures


@needs_gcc
@needs_mounts
def test_both_worlds_are_compared_and_no_byte_is_lost(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workload = (
        (4, 0.0, (0.2, 4.1, 0.3, 2.0, 0.1)),
        (1, 0.1, (0.3, 2.3, 0.1)),
        (2, 0.2, (0.1, 3.2, 0.4)),
    )
    monkeypatch.setattr(fidelity, "_WORKLOAD", workload)
    monkeypatch.setattr(shares, "_RUN_S", 0.3)
    monkeypatch.setattr(shares, "_NODES", ((1, 2),))
    monkeypatch.setattr(shares, "_BLOCKS", (64 << 10,))
    figures = _figures(folder, capsys, *POLICIES)
    named = {figure["name"]: figure for figure in figures}
    assert len(named) == len(figures) == 2 + 3 * (3 + 1) + 1 + 3 + 1
    for policy in POLICIES:
        through = named[f"{policy}: bytes through the mount / bytes of the workload"]
        assert through["value"] == 1.0
        for number in (1, 2, 3):
            parts = named[f"{policy}, a{number}: live yield / simulated"]["parts"]
            assert 0.0 < parts["simulated"] <= 1.0
            # A little more than 1: the last milliseconds of a debt are not slept.
            assert 0.0 < parts["live"] < 1.1
    ranks = [f["value"] for n, f in named.items() if n.startswith("rank by MinYield")]
    assert sorted(ranks)[0] == 1
    assert list(folder.iterdir()) == []


@needs_gcc
@needs_mounts
def test_phases_end_in_order_and_work_is_never_short(folder: Path) -> None:
    phases = [("work", 0.2), ("io", 1e6), ("work", 0.1)]
    late = Application.from_phases("late", 1, phases, release=0.5)
    with open_testbed(folder, 1e8) as testbed:
        began = time.monotonic()
        ends = _run(testbed, [late])
        took = time.monotonic() - began
    ((first, second, third),) = ends
    assert first >= 0.7
    assert second > first
    assert third - second >= 0.1
    assert third < took


def _run(testbed: LiveTestbed, applications: list[Application]) -> list[list[float]]:
    with testbed.daemon("fcfs", Platform(1e8, 1e8)) as daemon:
        place = RunPlace(testbed.program, daemon, testbed.mount.point)
        return run_applications(place, applications)


@needs_gcc
@needs_mounts
def test_an_application_that_cannot_write_gives_one_message(folder: Path) -> None:
    bad = Application.from_phases("no/such/folder", 1, [("io", 10.0)])
    with (
        open_testbed(folder, 1e8) as testbed,
        pytest.raises(InputError, match="no/such/folder failed"),
    ):
        _run(testbed, [bad])
    assert list(folder.iterdir()) == []


def test_a_daemon_that_does_not_start_gives_one_message(folder: Path) -> None:
    with (
        running_daemon(
            folder / "run", policy="no-policy", bandwidth="1 MB/s"
        ) as daemon,
        pytest.raises(InputError, match="no-policy"),
    ):
        daemon.await_ready()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policies", "no-policy"], "no-policy"),
        (["--policies", "fcfs", "fcfs"], "named twice"),
        (["--policies", "fcfs", "--folder=/no/such/folder"], "there is no such folder"),
    ],
)
def test_bad_input_gives_one_message(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "fidelity", *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
