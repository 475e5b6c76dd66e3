# SPDX-License-Identifier: MIT
"""The report of the benchmark of schedulers: JSON and plot."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.bench.slo.report import SchedulerRun, save
from penstock.bench.slo.windows import ClientWindow, GroupWindow


def window(p95: dict[str, float | None], *, overloaded: bool) -> ClientWindow:
    groups = {name: GroupWindow(0, 0 if t is None else 1, t) for name, t in p95.items()}
    return ClientWindow(0.0, overloaded, groups)


def test_windows_are_written_and_plotted(tmp_path: Path) -> None:
    run = [window({"a": 0.05, "b": 0.2}, overloaded=True)]
    runs = {"fifo": SchedulerRun(run, [None]), "sfq": SchedulerRun(run, [8.0])}
    save(tmp_path / "out", runs, 0.5, 10, {"a": 0.1, "b": 0.3}, {"version": "1"})
    document = json.loads((tmp_path / "out" / "slo.json").read_text())
    assert document["runs"]["sfq"]["depths"] == [8.0]
    assert document["runs"]["fifo"]["windows"][0]["groups"]["a"]["p95_s"] == 0.05
    assert (tmp_path / "out" / "slo.svg").read_text().startswith("<?xml")
