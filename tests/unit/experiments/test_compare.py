# SPDX-License-Identifier: MIT
"""Comparing policies: the same whatever the number and the order of workers."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest

from penstock.analysis import measure, min_yield_bound
from penstock.errors import InputError, PolicyError
from penstock.experiments.compare import InstanceComparison, compare
from penstock.experiments.source import FileSource, WorkloadSource
from penstock.model import write_instance
from penstock.sim import simulate
from penstock.workloads import Synthetic
from unit.samples import app, make, pair

SOURCE = WorkloadSource(Synthetic(horizon=20_000.0), 3, 2)
POLICIES = ("fcfs", "set-10:initial=weight", "best-next-event")
module = importlib.import_module("penstock.experiments.compare")


def _timeless(reports: list[InstanceComparison]) -> list[Any]:
    return [
        (
            *(r.index, r.pressure, r.window, r.digest, r.bound),
            [(n, replace(o, seconds=0.0)) for n, o in r.outcomes.items()],
        )
        for r in reports
    ]


@pytest.fixture(scope="module")
def alone() -> list[InstanceComparison]:
    return compare(SOURCE, POLICIES, jobs=1)


def test_reports_are_those_of_single_runs(alone) -> None:
    assert [report.index for report in alone] == [0, 1]
    for report in alone:
        instance = SOURCE.instance(report.index)
        assert report.digest == instance.digest()
        assert report.pressure == instance.pressure()
        assert report.window == (instance.window.begin, instance.window.end)
        assert report.bound == min_yield_bound(instance)
        assert list(report.outcomes) == list(POLICIES)
        for name, outcome in report.outcomes.items():
            run = simulate(instance, name)
            assert outcome.metrics == measure(run)
            assert outcome.yields == tuple(run.yields.tolist())
            assert (outcome.events, outcome.decisions) == (run.events, run.decisions)
            assert outcome.seconds > 0


def test_no_policy_beats_the_bound(alone) -> None:
    for report in alone:
        for outcome in report.outcomes.values():
            assert outcome.metrics.min_yield <= report.bound.min_yield + 1e-9


def test_two_workers_give_the_same_as_one(alone) -> None:
    assert _timeless(compare(SOURCE, POLICIES, jobs=2)) == _timeless(alone)


def test_the_order_of_results_does_not_matter(alone, monkeypatch) -> None:
    straight = module._results
    monkeypatch.setattr(
        module, "_results", lambda *given: reversed(list(straight(*given)))
    )
    assert _timeless(compare(SOURCE, POLICIES, jobs=1)) == _timeless(alone)


def test_the_order_of_policies_is_that_asked_for() -> None:
    (report, _) = compare(SOURCE, POLICIES[::-1], bounded=False)
    assert list(report.outcomes) == list(POLICIES[::-1])
    assert report.bound is None
    assert report.pressure > 0


def test_progress_counts_up_to_all() -> None:
    seen: list[tuple[float, float, str]] = []
    compare(
        SOURCE, ["fcfs"], bounded=False, progress=lambda *counts: seen.append(counts)
    )
    assert seen == [(n, 4, "") for n in range(5)]


def test_parameters_at_their_default_leave_the_plain_name() -> None:
    (report, _) = compare(SOURCE, ["set-10:update=completion"], bounded=False)
    assert list(report.outcomes) == ["set-10"]


def test_an_unknown_policy_is_said_before_any_work() -> None:
    seen: list[Any] = []
    with pytest.raises(InputError, match="unknown policy 'x'"):
        compare(SOURCE, ["fcfs", "x"], progress=lambda *c: seen.append(c))
    assert seen == []


def test_open_runs_are_allowed_if_asked_for(tmp_path) -> None:
    path = str(tmp_path / "open.json")
    write_instance(make(app("a", ("work", 1.0), ("io", 2.0))), path)
    with pytest.raises(InputError, match=r"open\.json: applications\[0\]: 'a' ends at"):
        compare(FileSource(path), ["fcfs"])
    (report,) = compare(FileSource(path), ["fcfs"], steady=False)
    assert report.outcomes["fcfs"].metrics.min_yield == 1.0


@pytest.mark.parametrize("name", ["set-10", "set-fair-share", "share-priority"])
def test_periods_that_a_policy_must_be_given_are_asked_for(tmp_path, name) -> None:
    path, phases = str(tmp_path / "some.json"), [("work", 1.0), ("io", 2.0)] * 9
    known, unknown = app("a", *phases, period=3.0), app("b", *phases)
    write_instance(make(known, unknown), path)
    policy = f"{name}:update=post,period=given"
    with pytest.raises(
        InputError, match=r"some\.json: applications\[1\]: 'b' has no period"
    ):
        compare(FileSource(path), [policy])
    write_instance(make(known), path := str(tmp_path / "all.json"))
    (report,) = compare(FileSource(path), [policy])
    assert report.outcomes[f"{name}:period=given,update=post"].metrics.min_yield == 1.0


def test_errors_come_back_from_workers(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_failing.py").write_text(
        "def allocate(view, rates):\n    raise ValueError('no idea')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    with pytest.raises(PolicyError, match=r"policy my_failing\.allocate failed at t"):
        compare(SOURCE, ["my_failing.allocate"], bounded=False, jobs=2)


def test_a_worker_that_dies_is_said_so(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_dying.py").write_text(
        "import os\n\n\ndef allocate(view, rates):\n    os._exit(9)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    said: list[str] = []
    with pytest.raises(
        InputError, match=r"my_dying\.allocate on instance \d has killed"
    ):
        compare(
            SOURCE,
            ["my_dying.allocate"],
            bounded=False,
            jobs=2,
            progress=lambda _done, _total, message: said.append(message),
        )
    assert any("exit status 9" in message for message in said)


def test_a_file_gives_one_report(tmp_path) -> None:
    path = str(tmp_path / "pair.json")
    write_instance(pair(), path)
    (report,) = compare(FileSource(path), ["fcfs", "fair-share"], jobs=1)
    assert report.applications == ("a", "b")
    assert report.outcomes["fcfs"].yields == (1.0, 0.7)
    assert report.outcomes["fair-share"].yields == (0.7, 0.7)
    assert report.bound.min_yield == pytest.approx(0.7, abs=1e-8)
