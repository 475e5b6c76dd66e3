# SPDX-License-Identifier: MIT
"""The benchmark of schedulers: a short run."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from penstock.bench import BenchSettings
from penstock.bench.slo.schedulers import BenchScale, measure_schedulers
from support.mounts import why_no_mounts


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
