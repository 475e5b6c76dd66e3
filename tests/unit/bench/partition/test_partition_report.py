# SPDX-License-Identifier: MIT
"""Measurements of ``penstock bench partition``, their goals, and its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from penstock.bench import BenchSettings, Measurement, moosefs
from penstock.bench.partition import measure, report
from penstock.bench.partition.report import SettingResult, comparisons
from penstock.bench.partition.scenes import PartitionPlan
from penstock.errors import InputError, UnknownNameError


def _result(setting: str, live: float, simulated: float) -> SettingResult:
    return SettingResult("two", setting, {"a": live}, {"a": simulated})


def _named(results: list[SettingResult]) -> dict[str, Measurement]:
    return {m.name.removeprefix("two: "): m for m in comparisons(results)}


def test_another_order_than_simulated_is_counted() -> None:
    measured = _named(
        [
            _result("none", 1.5, 2.0),
            _result("1a", 1.6, 1.5),
            # A tie in the simulation.
            _result("2a", 1.4, 1.52),
        ]
    )
    order = measured["pairs of settings in another order than simulated"]
    assert order.value == 1
    assert not order.is_reached
    assert order.parts == {"1a / none": pytest.approx(1.6 / 1.5)}


def test_auto_is_compared_with_the_best_single_strategy() -> None:
    measured = _named(
        [_result("none", 2.0, 2.0), _result("2a", 1.5, 1.5), _result("auto", 1.6, 1.5)]
    )
    auto = measured["mean slowdown, auto / best single strategy"]
    assert auto.value == pytest.approx(1.6 / 1.5)
    assert not auto.is_reached


@pytest.mark.parametrize(("simulated", "most"), [(1.9, 1.05), (2.1, inf)])
def test_a_placement_must_help_where_the_simulation_says_so(
    simulated: float, most: float
) -> None:
    name = "t-cpu+greedy-non-clairvoyant"
    measured = _named([_result("none", 2.0, 2.0), _result(name, 1.8, simulated)])
    placed = measured[f"mean slowdown, {name} / all targets"]
    assert placed.value == pytest.approx(0.9)
    assert placed.most == most


def _lines(*_: object) -> Iterator[dict[str, object]]:
    yield {"profile": [5e6, 10e6, 15e6, 20e6]}
    yield {"alone": {"micro": 1.0, "ior": 1.0}}
    phases_s = {"micro": [[0.0, 1.0], [3.0, 3.5]], "ior": [[0.5, 2.5]]}
    for setting in ("none", "2a"):
        yield {"scene": "two", "setting": setting, "phases_s": phases_s}


def test_slowdowns_are_compared_and_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(report, "run_module", _lines)
    monkeypatch.setattr(report, "check_requirements", lambda: None)
    monkeypatch.setattr(report, "shim_path", lambda: None)
    monkeypatch.setattr(report, "program_path", lambda _: None)
    settings = BenchSettings(1, tmp_path, ("2a",), tmp_path / "out", quick=True)
    measured = list(measure(settings))
    assert not any(m.has_goal for m in measured)
    first = next(m for m in measured if m.name.startswith("two, none"))
    assert first.parts["micro"] == 1.5
    assert first.parts["micro:simulated"] > 1.0
    document = json.loads((tmp_path / "out" / "partition.json").read_text())
    assert [row["setting"] for row in document["slowdowns"]] == ["none", "2a"]
    assert document["slowdowns"][0]["live"] == {"micro": 1.5, "ior": 2.0}
    assert (tmp_path / "out" / "partition.svg").stat().st_size > 5_000


def test_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="strategy or placement"):
        next(measure(BenchSettings(1, tmp_path, ("4a",))))


def test_what_is_missing_is_said_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(moosefs, "_TOOLS", ("mfsnothing",))
    with pytest.raises(InputError, match="not installed: mfsnothing"):
        next(measure(BenchSettings(1, tmp_path)))


def test_only_the_scenes_that_are_named_are_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[PartitionPlan] = []

    def lines(plan: PartitionPlan) -> Iterator[dict[str, object]]:
        plans.append(plan)
        return iter(())

    monkeypatch.setattr(report, "run_plan", lines)
    list(measure(BenchSettings(1, tmp_path, ("2a",), scenes=("fo",))))
    assert list(plans[0].scenes) == ["four"]
    assert plans[0].settings == ("none", "2a")
    with pytest.raises(UnknownNameError, match="scene"):
        list(measure(BenchSettings(1, tmp_path, scenes=("three",))))
