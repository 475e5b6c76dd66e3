# SPDX-License-Identifier: MIT
"""Scenes, verdicts and measurements of the benchmark of advice, without real jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.advice.importing.importer import Imported
from penstock.advice.importing.instances import Assumptions
from penstock.advice.recommendation import Answer, Recommendation, recommend
from penstock.bench.accuracy.advice import (
    _SCENES,
    AdviceRun,
    AdviceScene,
    _gain_measurements,
    _without_goal,
    _yield_measurement,
    alternative,
    is_right,
)
from penstock.policies import RECOMMENDED
from penstock.sim import simulate


@pytest.mark.parametrize("scene", _SCENES, ids=lambda scene: scene.name)
def test_scenes_are_jobs_that_arrive_one_after_the_other(scene: AdviceScene) -> None:
    releases = [app.release for app in scene.instance.applications]
    # Live jobs are numbered by arrival: ties are broken as in a simulation.
    assert releases == sorted(set(releases))
    # Without hints, silence ends an operation (setting `gap`): work must be longer.
    assert min(float(app.work.min()) for app in scene.instance.applications) >= 0.3


def test_some_scenes_gain_and_some_do_not() -> None:
    verdicts = {
        scene.name: recommend([scene.instance], scene.now).verdict for scene in _SCENES
    }
    assert set(verdicts.values()) == {Answer.CHANGE, Answer.KEEP}
    assert verdicts["one job alone"] is verdicts["light load"] is Answer.KEEP


def test_a_verdict_is_right_if_the_measured_gain_agrees() -> None:
    assert is_right(Answer.CHANGE, 0.01)
    assert not is_right(Answer.CHANGE, 0.009)
    assert is_right(Answer.KEEP, 0.019)
    assert is_right(Answer.KEEP, -0.3)
    assert not is_right(Answer.KEEP, 0.02)
    assert not is_right(Answer.THIN_EVIDENCE, 0.0)


def _advice(scene: AdviceScene) -> Recommendation:
    return recommend([scene.instance], scene.now, ["fcfs", RECOMMENDED])


def test_a_policy_that_is_kept_is_compared_with_the_recommended_one() -> None:
    alone, long_beside_short, *_ = _SCENES
    kept = _advice(alone)
    assert kept.candidate.policy == kept.present.policy == "fcfs"
    assert alternative(kept).policy == RECOMMENDED
    changed = _advice(long_beside_short)
    assert alternative(changed) is changed.candidate


def _run(scene: AdviceScene, policy: str, factor: float = 1.0) -> AdviceRun:
    """Return a run whose live yields are `factor` times the simulated ones."""
    # An archive lists jobs by the instant at which they joined, or in any order.
    applications = tuple(reversed(scene.instance.applications))
    imported = Imported(
        replace(scene.instance, applications=applications),
        [],
        [],
        [],
        [],
        Assumptions(),
    )
    yields = simulate(scene.instance, policy, steady=False).yields
    return AdviceRun(policy, factor * yields, imported)


def test_yields_are_compared_job_by_job() -> None:
    scene = _SCENES[1]
    run = _run(scene, "fcfs", 1.03)
    assert run.simulated == pytest.approx(run.yields / 1.03)
    assert run.difference == pytest.approx(0.03)
    measurement = _yield_measurement(scene, run, "with hints", 2.0)
    assert measurement.value == pytest.approx(3.0)
    assert not measurement.is_reached
    assert _yield_measurement(scene, run, "without hints", 5.0).is_reached
    assert _without_goal(measurement).is_reached
    assert np.isclose(measurement.parts["live"] / measurement.parts["simulated"], 1.03)


def test_a_wrong_prediction_and_a_wrong_verdict_miss_their_goals() -> None:
    scene = _SCENES[1]
    advice = _advice(scene)
    before, after = _run(scene, "fcfs"), _run(scene, RECOMMENDED)
    gain, verdict = _gain_measurements(scene, advice, before, after)
    assert gain.value == pytest.approx(0.0, abs=1e-9)
    assert gain.is_reached
    assert verdict.is_reached
    # The jobs do not gain anything after all.
    gain, verdict = _gain_measurements(scene, advice, before, before)
    assert gain.value == pytest.approx(100 * advice.gain)
    assert not gain.is_reached
    assert not verdict.is_reached
