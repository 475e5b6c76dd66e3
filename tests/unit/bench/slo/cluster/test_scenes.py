# SPDX-License-Identifier: MIT
"""The scenes of the cluster benchmark: who runs where, and what adds up."""

from __future__ import annotations

import pytest

from penstock.bench.slo.clients import rate_at
from penstock.bench.slo.cluster.scenes import (
    CAPACITY_SCENE,
    FULL,
    LATENCY_SCENE,
    NODES,
    QUICK,
    SERVERS,
    SETTINGS,
    ClusterScene,
    scenes,
)
from penstock.errors import InputError
from penstock.qos import get_scheduler

ALL = {scene.name: scene for scene in scenes(FULL)}


def share_scenes() -> list[ClusterScene]:
    measuring = {CAPACITY_SCENE.name, LATENCY_SCENE.name}
    return [s for s in ALL.values() if s.is_saturated and s.name not in measuring]


def test_names_are_unique_and_the_storage_is_measured_first() -> None:
    assert len(ALL) == len(list(scenes(FULL)))
    assert list(ALL)[:2] == [CAPACITY_SCENE.name, LATENCY_SCENE.name]
    assert {scene.name for scene in scenes(QUICK)} <= set(ALL)


def test_scenes_are_chosen_by_parts_of_their_names() -> None:
    names = [scene.name for scene in scenes(FULL, ["reader", "3 : 1, 4"])]
    assert names[:2] == [CAPACITY_SCENE.name, LATENCY_SCENE.name]
    assert len(names) == 2 + 3 + 2
    assert all("reader" in name or "3 : 1, 4" in name for name in names[2:])
    with pytest.raises(InputError, match=r"'none' is in no name .*same node"):
        scenes(FULL, ["reader", "none"])


@pytest.mark.parametrize("scene", ALL.values(), ids=ALL)
def test_a_scene_can_be_run_and_simulated(scene: ClusterScene) -> None:
    assert get_scheduler(SETTINGS[scene.setting].scheduler)
    assert set(scene.nodes) <= set(range(1, NODES + 1))
    assert {group.application for group in scene.groups} == set(scene.promises)
    for group in scene.groups:
        # See `model`: all servers have equally many processes, or there is only one.
        assert group.processes == 1 or group.processes % SERVERS == 0
        assert group.first % SERVERS == 0
    numbers = [
        (group.application, group.first + number)
        for group in scene.groups
        for number in range(group.processes)
    ]
    assert len(numbers) == len(set(numbers))


def test_promises_fit_and_shares_are_as_named() -> None:
    for scene in share_scenes():
        total = sum(promise.share for promise in scene.promises.values())
        assert total == pytest.approx(0.95)
        few, many = scene.promises.values()
        first, second = scene.name.split(",")[0].split(" : ")
        assert few.share / many.share == pytest.approx(int(first) / int(second))


def test_a_single_process_is_promised_less_than_one_server_has() -> None:
    single = [
        scene.promises[group.application].share
        for scene in share_scenes()
        for group in scene.groups
        if group.processes == 1
    ]
    assert single
    assert max(single) < 1 / SERVERS


def test_every_number_of_processes_is_on_the_same_and_on_different_nodes() -> None:
    places = {
        tuple(group.processes for group in scene.groups): scene.nodes
        for scene in share_scenes()
    }
    assert places[4, 32] == (1,)
    assert places[4, 16, 16] == (1, 2, 3)
    assert places[1, 64] == (1,)
    assert places[1, 32, 32] == (1, 2, 3)


def test_the_rates_of_the_experiment_are_those_of_the_paper() -> None:
    scene = ALL["experiment of two-level scheduling, different nodes"]
    assert scene.is_overloaded
    app1, half1, half2 = scene.groups
    assert half1.rates == half2.rates
    end_s = scene.end_s
    assert 2 * rate_at(half1.rates, end_s) == pytest.approx(1.0)
    assert 2 * rate_at(half1.rates, 0.0) == pytest.approx(0.4)
    # At first below the promise, then off and on.
    times = (0.0, FULL.calm_s + 1.0, FULL.calm_s + FULL.half_s + 1.0)
    assert [rate_at(app1.rates, t) for t in times] == [0.5, 0.0, 1.0]


def test_every_node_has_a_mount_for_each_server_that_it_uses() -> None:
    scene = ALL["1 : 4, 1 and 64 processes, different nodes"]
    servers = range(1, SERVERS + 1)
    others = [(node, server) for node in (2, 3) for server in servers]
    assert scene.mounts == ((1, 1), *others)
