# SPDX-License-Identifier: MIT
"""Operations of jobs, from counters to the controller; volumes known and guessed."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from penstock.live.control.activity.phases import PhaseDetector
from penstock.live.control.activity.volumes import FIRST_S, VolumePredictor
from penstock.live.control.operations import OperationTracker
from penstock.live.control.records import JobRecord
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.wire.messages import JobCounters
from support.controllers import B, controller_with

GAP_S = 0.1


class Scene:
    """A job on node n that shares a storage of B bytes/s, and its tracker."""

    def __init__(self, hint_bytes: float = 0.0) -> None:
        storage = SharedStorage("", controller_with("fcfs", "7:a"), None)
        phases, predictor = PhaseDetector(GAP_S), VolumePredictor(hint_bytes)
        self.job = JobRecord("7:a", 7, 0, storage, phases, predictor, 0.0, 0.0)
        self.stale: set[str] = set()
        self.tracker = OperationTracker(GAP_S, self.stale)
        self.report(0.0, 0, 0.0, idle_s=inf)

    def report(
        self, now: float, begun: int, moved: float, idle_s: float = 0.0, **rest: Any
    ) -> None:
        """Take counters of the node."""
        facts = {"waiting": False, "quiet_s": idle_s, **rest}
        self.job.counters["n"] = JobCounters(
            "7:a", begun, moved, 0.0, idle_s=idle_s, **facts
        )
        self.tracker.read(self.job, "n", now)


def test_an_operation_begins_goes_on_and_ends() -> None:
    scene = Scene()
    assert scene.stale == set()
    scene.report(1.0, 1, 10.0)
    assert scene.job.controlled.volume_bytes > 0.0
    assert scene.stale == {"7:a"}
    assert scene.job.storage.active == {"7:a"}
    assert scene.job.busy_agents == ["n"]
    scene.report(2.0, 1, 60.0)
    assert scene.tracker.take_ended() == (set(), [])
    scene.report(3.0, 1, 60.0, idle_s=0.5)
    assert scene.job.controlled.volume_bytes == 0.0
    assert scene.job.storage.active == set()
    assert (scene.job.operations, list(scene.job.predictor.past_bytes)) == (1, [60.0])
    ended, ((run, operation),) = scene.tracker.take_ended()
    assert (ended, run.job_key, operation.moved_bytes) == ({"7:a"}, "7:a", 60.0)
    assert scene.tracker.take_ended() == (set(), [])


@pytest.mark.parametrize("is_free", [True, False])
def test_a_job_that_is_not_held_up_has_moved_nothing_ahead(is_free: bool) -> None:
    scene = Scene()
    scene.job.storage.is_free = is_free
    scene.report(1.0, 1, 10.0)
    scene.job.storage.controller.decide(1.0)
    scene.report(1.1, 1, 1000.0)
    scene.report(1.3, 1, 1000.0, idle_s=0.2)
    scene.report(1.4, 2, 1000.0)
    assert (scene.job.controlled.surplus_bytes > 0.0) is not is_free


def test_the_first_operation_is_guessed_and_a_hint_is_not() -> None:
    guessed, hinted = Scene(), Scene(hint_bytes=300.0)
    for scene in (guessed, hinted):
        scene.report(1.0, 1, 10.0)
    assert (hinted.job.controlled.volume_bytes, hinted.job.certain_bytes) == (300, 300)
    assert hinted.job.is_announced
    assert guessed.job.controlled.volume_bytes == pytest.approx(10.0 + FIRST_S * B)
    assert guessed.job.certain_bytes == 0.0
    assert not guessed.job.is_announced


def test_a_volume_like_the_last_ones_is_certain_but_was_not_announced() -> None:
    scene = Scene()
    for _ in range(2):
        scene.tracker.learn(scene.job, 80.0)
    scene.report(1.0, 1, 10.0)
    assert (scene.job.certain_bytes, scene.job.is_announced) == (80.0, False)


def test_a_hint_for_the_next_operation_holds_for_one() -> None:
    scene = Scene()
    scene.job.predictor.next_hint_bytes = 200.0
    scene.report(1.0, 1, 10.0)
    assert scene.job.is_announced
    scene.tracker.end(scene.job, 2.0)
    scene.report(3.0, 2, 20.0)
    assert not scene.job.is_announced


def test_an_operation_that_moved_nothing_is_not_learnt() -> None:
    scene = Scene()
    scene.tracker.learn(scene.job, 0.0)
    assert not scene.job.predictor.past_bytes
    assert scene.tracker.lengths.longest_s(7) == FIRST_S
    scene.tracker.learn(scene.job, 4.0 * B)
    assert scene.tracker.lengths.longest_s(7) == pytest.approx(4.0, rel=0.01)


def test_an_operation_ends_at_once_if_control_is_switched_off() -> None:
    scene = Scene()
    scene.report(1.0, 1, 10.0)
    scene.tracker.end(scene.job, 1.5)
    assert not scene.job.controlled.is_active
    assert scene.tracker.take_ended()[0] == {"7:a"}
