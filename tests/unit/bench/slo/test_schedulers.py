# SPDX-License-Identifier: MIT
"""The benchmark of schedulers: what it makes of times, and when clients issue."""

from __future__ import annotations

import json
import tempfile
import time
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("msgspec")

from penstock.bench import Setting
from penstock.bench.slo.clients import ClientPlan, finish, rate_at, start
from penstock.bench.slo.report import SchedulerRun, save
from penstock.bench.slo.schedulers import BenchScale, measure
from penstock.bench.slo.windows import (
    AnsweredRequest,
    ClientWindow,
    Seen,
    compliance,
    moved,
    windows,
)
from penstock.qos.feedback import percentile
from support.mounts import why_no_mounts

TIMES = st.lists(st.tuples(st.floats(0.0, 4.9), st.floats(0.0, 2.0)))


@given(TIMES)
def test_every_answer_is_in_one_window(times: list[tuple[float, float]]) -> None:
    answers = [AnsweredRequest(issued, issued + took) for issued, took in times]
    found = windows({"a": answers}, 0.5, 14, inf)
    assert moved(found) == len(answers)
    assert sum(w.groups["a"].issued for w in found) == len(answers)
    assert not any(w.overloaded for w in found)


def test_windows_with_more_than_can_be_served_are_overloaded() -> None:
    answers = [
        AnsweredRequest(0.1, 0.2),
        AnsweredRequest(0.3, 0.9),
        AnsweredRequest(0.4, 1.2),
    ]
    found = windows({"a": answers}, 0.5, 3, 2)
    assert [w.overloaded for w in found] == [True, False, False]
    assert [w.groups["a"].answered for w in found] == [1, 1, 1]
    assert found[1].groups["a"].p95_s == pytest.approx(0.6)


def window(p95: dict[str, float | None], *, overloaded: bool) -> ClientWindow:
    groups = {name: Seen(0, 0 if t is None else 1, t) for name, t in p95.items()}
    return ClientWindow(0.0, overloaded, groups)


def test_only_windows_with_answers_count() -> None:
    found = [
        window({"a": 0.05, "b": 0.2}, overloaded=True),
        window({"a": 0.15, "b": None}, overloaded=True),
        window({"a": 0.05, "b": 0.05}, overloaded=False),
    ]
    bounds = {"a": 0.1, "b": 0.1}
    assert compliance(found, bounds, overloaded=True) == {"a": (1, 2), "b": (0, 1)}
    assert compliance(found, bounds, overloaded=False) == {"a": (1, 1), "b": (1, 1)}


def test_one_in_twenty_may_be_late() -> None:
    assert percentile([1.0] * 19 + [9.0]) == 1.0
    assert percentile([2.0, 9.0]) == 9.0


def test_rates_are_straight_between_points() -> None:
    rates = ((1.0, 0.0), (2.0, 10.0), (4.0, 20.0))
    asked = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0)
    assert [rate_at(rates, t) for t in asked] == [0.0, 0.0, 5.0, 10.0, 15.0, 20.0, 20.0]


def test_clients_issue_no_faster_than_their_rate(tmp_path: Path) -> None:
    begin = time.monotonic() + 1.0
    rates = ((0.0, 0.0), (0.2, 0.0), (0.2001, 400e3), (0.6, 400e3), (0.6001, 0.0))
    plan = ClientPlan(str(tmp_path), "write", 10_000, 4, begin, begin + 1.0, rates)
    answers = sorted(finish(start(plan), plan))
    assert min(a.issued for a in answers) >= 0.2
    assert max(a.issued for a in answers) <= 0.6001 + 0.3
    # Four processes, 40 requests per second: at most 10 each, for 0.4 s.
    assert 4 <= len(answers) <= 20
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"write-{number}" for number in range(4)
    ]


def test_windows_are_written_and_drawn(tmp_path: Path) -> None:
    found = [window({"a": 0.05, "b": 0.2}, overloaded=True)]
    runs = {"fifo": SchedulerRun(found, [None]), "sfq": SchedulerRun(found, [8.0])}
    save(tmp_path / "out", runs, 0.5, 10, {"a": 0.1, "b": 0.3}, {"version": "1"})
    document = json.loads((tmp_path / "out" / "slo.json").read_text())
    assert document["runs"]["sfq"]["depths"] == [8.0]
    assert document["runs"]["fifo"]["windows"][0]["groups"]["a"]["p95_s"] == 0.05
    assert (tmp_path / "out" / "slo.svg").read_text().startswith("<?xml")


@pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())
def test_the_whole_benchmark_in_short() -> None:
    schedulers = ("fifo", "two-level")
    scale = BenchScale(schedulers, 0.5, 1.0, half=0.5, turns=1, small=0.5, passing=0.1)
    # Not in the folder of the test: names of sockets must be short.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = measure(Setting(1, folder, output=folder / "out"), scale)
        figures = {figure.name: figure for figure in found}
        assert [path.name for path in folder.iterdir()] == ["out"]
        document = json.loads((folder / "out" / "slo.json").read_text())
    for scheduler in schedulers:
        assert figures[f"{scheduler}: throughput over fifo"].value > 0.0
        assert 0.0 <= figures[f"{scheduler}: not overloaded, p95 in bound"].value <= 100
    assert len([f for f in figures.values() if f.has_goal]) == 9
    assert [len(run["windows"]) for run in document["runs"].values()] == [2, 2]
