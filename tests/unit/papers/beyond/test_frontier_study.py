# SPDX-License-Identifier: MIT
"""The points of the frontier, and the changes to their instances."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.experiments.reproduction import Scale
from penstock.papers.beyond.frontier_study import FrontierPoint, frontier_study
from penstock.policies import POLICIES
from penstock.workloads import Apex


def _points(scale: Scale) -> list[FrontierPoint]:
    points = frontier_study(scale).points
    return [point for point in points if isinstance(point, FrontierPoint)]


def test_the_points_at_paper_scale() -> None:
    study = frontier_study(Scale.PAPER)
    groups = [point.group for point in _points(Scale.PAPER)]
    counts = {group: groups.count(group) for group in dict.fromkeys(groups)}
    assert counts == {
        "pressure": 6,
        "parameters": 12,
        "io-sets": 9,
        "NERSC": 11,
        "TRILAB": 11,
        "caps": 3,
        "history": 3,
    }
    assert study.instances >= 200
    assert study.bounded
    assert set(study.policies) == set(POLICIES)


def test_nothing_was_tuned_on_the_seed_of_paper_scale() -> None:
    assert frontier_study(Scale.PAPER).seed not in {101, 102, 103, 104}


@pytest.mark.parametrize("scale", Scale)
def test_schedules_have_the_number_of_windows_that_intervals_assume(
    scale: Scale,
) -> None:
    points = [point for point in _points(scale) if point.workload == "apex"]
    assert {point.family() for point in points} == {
        Apex(trace=trace, machine=machine)
        for trace in ("NERSC", "TRILAB")
        for machine in ((0, 8) if scale is Scale.SMOKE else range(11))
    }


def test_labels_are_unique() -> None:
    labels = [point.label for point in _points(Scale.PAPER)]
    assert len(set(labels)) == len(labels)
    assert {"W=0.8", "W=1"} < set(labels)


def _point(variant: str) -> FrontierPoint:
    settings = (("pressure", 0.8), ("horizon", 20_000.0))
    return FrontierPoint("synthetic", settings, "group", "label", variant)


def test_caps_are_unequal_and_phases_stay() -> None:
    plain, varied = (_point(v).family().instance(7, 0) for v in ("", "caps"))
    assert set(varied.caps) == {0.25, 0.5, 1.0}
    assert {a.nodes for a in varied.applications} == {1, 2, 4, 8}
    assert varied.window.end >= plain.window.end
    for after, before in zip(varied.applications, plain.applications, strict=True):
        np.testing.assert_array_equal(after.volume, before.volume)
        np.testing.assert_array_equal(after.work, before.work)


def test_history_loses_up_to_a_tenth_of_the_age() -> None:
    plain, varied = (_point(v).family().instance(7, 0) for v in ("", "history"))
    assert varied.window == plain.window
    for application, cap in varied.with_caps():
        age = application.start - application.release
        assert 0 <= age <= 0.25 * varied.window.length
        assert 0 <= application.lost_at_start(cap) <= 0.1 * age + 1e-9
    assert len({a.release for a in varied.applications}) == 60


@pytest.mark.parametrize("variant", ["caps", "history"])
def test_a_varied_instance_is_the_same_every_time(variant: str) -> None:
    first, again, other = (
        _point(variant).family().instance(7, index).digest() for index in (0, 0, 1)
    )
    assert first == again != other
