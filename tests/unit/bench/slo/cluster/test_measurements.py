# SPDX-License-Identifier: MIT
"""Measurements of a scene, their goals, and what is missing on a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench import BenchSettings, Measurement, moosefs
from penstock.bench.slo import measure
from penstock.bench.slo.cluster.measurements import measurements_of
from penstock.bench.slo.cluster.results import SceneResult, result_of
from penstock.bench.slo.cluster.scenes import (
    SIZE_BYTES,
    AppGroup,
    ClusterScene,
    Promise,
)
from penstock.bench.slo.windows import AnsweredRequest
from penstock.errors import InputError

SHARES = ClusterScene(
    "shares",
    "alone",
    {"few": Promise(0.75, 1.0), "many": Promise(0.25, 1.0)},
    (AppGroup("few", 1, 4), AppGroup("many", 1, 4)),
    *(0.0, 10.0),
)
PACED = replace(
    SHARES,
    groups=(
        AppGroup("few", 1, 4, rates=((0.0, 0.75), (10.0, 0.75))),
        AppGroup("many", 1, 4),
    ),
)
CAPACITY = 10.0 * SIZE_BYTES


def answers(per_s: int, response_s: float) -> list[AnsweredRequest]:
    """Return evenly spaced answers in 10 s."""
    times = [number / per_s for number in range(10 * per_s)]
    return [AnsweredRequest(time - response_s, time) for time in times]


def result(
    scene: ClusterScene, rates: Sequence[int], response_s: float = 0.1
) -> SceneResult:
    """Return a result that differs from an exact simulation of 30 and 10 per s."""
    live = {
        name: answers(rate, response_s)
        for name, rate in zip(scene.promises, rates, strict=True)
    }
    simulated = {"few": answers(30, 0.1), "many": answers(10, 0.1)}
    return result_of(scene, CAPACITY, live, [simulated])


def by_name(result: SceneResult) -> dict[str, Measurement]:
    return {
        measurement.name.split(": ", 1)[1]: measurement
        for measurement in measurements_of(result)
    }


def test_what_is_as_agreed_and_as_simulated_reaches_all_goals() -> None:
    measured = by_name(result(SHARES, (30, 10)))
    assert measured["share of few, live / agreed"].value == pytest.approx(1.0)
    assert measured["p95 of many, live / simulated"].value == pytest.approx(1.0)
    without_goal = {name for name, m in measured.items() if not m.has_goal}
    assert without_goal == {
        f"service of {n}, live / simulated" for n in SHARES.promises
    }
    assert all(m.is_reached for m in measured.values())


def test_equal_shares_miss_an_agreement_of_three_to_one() -> None:
    measured = by_name(result(SHARES, (20, 20)))
    share = measured["share of few, live / agreed"]
    assert share.value == pytest.approx(2 / 3)
    assert share.parts == pytest.approx(
        {"agreed": 0.75, "live": 0.5, "simulated": 0.75}
    )
    assert not share.is_reached
    assert not measured["share of many, live / simulated"].is_reached


def test_a_faster_storage_with_the_same_shares_reaches_the_goals() -> None:
    """Shares are compared with the simulation; service has no goal of its own."""
    measured = by_name(result(SHARES, (60, 20)))
    assert measured["share of few, live / simulated"].value == pytest.approx(1.0)
    assert measured["share of few, live / simulated"].is_reached
    service = measured["service of few, live / simulated"]
    assert service.value == pytest.approx(2.0)
    assert not service.has_goal


def test_a_promise_is_kept_by_the_application_that_gets_least_of_it() -> None:
    kept = by_name(result(SHARES, (5, 5)))["served / promised, least"]
    assert kept.parts == pytest.approx({"few": 5 / 7.5, "many": 5 / 2.5})
    assert kept.value == pytest.approx(5 / 7.5)
    assert not kept.is_reached


def test_bounds_are_checked_for_applications_that_keep_to_a_rate() -> None:
    good = by_name(result(PACED, (30, 10), 0.9))
    name = "windows with p95 in its bound (few)"
    assert good[name].value == 100.0
    late = by_name(result(PACED, (30, 10), 1.1))
    assert (late[name].value, late[name].is_reached) == (0.0, False)
    assert "share of few, live / agreed" not in good


def test_promises_that_do_not_fit_are_not_checked() -> None:
    scene = replace(SHARES, promises={"few": Promise(0.8, 1), "many": Promise(0.4, 1)})
    assert "served / promised, least" not in by_name(result(scene, (30, 10)))


def test_a_short_scene_has_no_goals() -> None:
    short = measurements_of(result(SHARES, (20, 20)), has_goals=False)
    alone = measurements_of(result(replace(SHARES, has_goals=False), (20, 20)))
    for measurement in (*short, *alone):
        assert not measurement.has_goal


def test_an_application_without_answers_misses_its_goals() -> None:
    measured = by_name(result(SHARES, (30, 0)))
    assert not measured["p95 of many, live / simulated"].is_reached
    assert not measured["served / promised, least"].is_reached


def test_what_is_missing_is_said_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(moosefs, "_TOOLS", ("mfsnothing",))
    with pytest.raises(InputError, match="not installed: mfsnothing"):
        next(measure(BenchSettings(1, tmp_path, cluster=True)))
    assert list(tmp_path.iterdir()) == []
