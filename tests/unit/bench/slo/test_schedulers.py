# SPDX-License-Identifier: MIT
"""The benchmark of schedulers: a short run, and its end by Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import pytest

from penstock.bench import BenchSettings
from penstock.bench.slo import schedulers
from penstock.bench.slo.clients import ClientPlan, start
from penstock.bench.slo.schedulers import BenchScale, measure_schedulers
from support.mounts import why_no_mounts
from support.waiting import processes_of, until


@pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())
def test_a_short_run_of_the_whole_benchmark() -> None:
    names = ("fifo", "two-level")
    scale = BenchScale(names, 0.5, 1.0, half=0.5, turns=1, small=0.5, passing=0.1)
    # Not in the folder of the test, because the paths of sockets must be short.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = BenchSettings(1, folder, output=folder / "out")
        results = {m.name: m for m in measure_schedulers(settings, scale)}
        assert [path.name for path in folder.iterdir()] == ["out"]
        document = json.loads((folder / "out" / "slo.json").read_text())
    for scheduler in names:
        assert results[f"{scheduler}: throughput / that of fifo"].value > 0.0
        name = f"{scheduler}: windows without overload with p95 in its bound"
        assert 0.0 <= results[name].value <= 100
    assert len([f for f in results.values() if f.has_goal]) == 9
    assert [len(run["windows"]) for run in document["runs"].values()] == [2, 2]


def test_clients_are_ended_with_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = time.monotonic()
    plan = ClientPlan(str(tmp_path), "write", 4096, 2, begin, begin + 600.0)
    groups: list[subprocess.Popen[bytes]] = []

    def started(plan: ClientPlan) -> subprocess.Popen[bytes]:
        groups.append(start(plan))
        # Ctrl-C does not reach the group.
        assert os.getpgid(groups[-1].pid) != os.getpgid(0)
        return groups[-1]

    def interrupted(*_: object) -> NoReturn:
        # Wait until both clients of the second group have started.
        until(lambda: len(list(tmp_path.iterdir())) >= 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(schedulers, "start", started)
    monkeypatch.setattr(schedulers, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        schedulers._run_clients({"a": plan, "b": plan})
    assert len(groups) == 2
    for group in groups:
        assert group.returncode is not None
    # A killed process may end a little later than the first process of its group.
    until(lambda: not any(processes_of(group.pid) for group in groups))
