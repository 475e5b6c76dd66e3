# SPDX-License-Identifier: MIT
"""Simulated scenes: the groups, and closed forms of what they get."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from numpy.random import default_rng

from penstock.bench.slo.cluster.model import (
    MeasuredStorage,
    clients_of,
    delays_of,
    simulate_scene,
)
from penstock.bench.slo.cluster.results import figures_of
from penstock.bench.slo.cluster.scenes import (
    FULL,
    LATENCY_SCENE,
    QUICK,
    SERVERS,
    SIZE_BYTES,
    AppGroup,
    ClusterScene,
    Promise,
    scenes,
)
from penstock.bench.slo.windows import AnsweredRequest
from penstock.errors import InputError
from penstock.workloads.clients import Clients, RateSegment

CAPACITY = 100.0 * SIZE_BYTES
STORAGE = MeasuredStorage(CAPACITY)


def clients(group: AppGroup, end_s: float = 5.0) -> list[Clients]:
    return clients_of(group, end_s, CAPACITY, default_rng(1))


def test_processes_without_rates_begin_at_different_times() -> None:
    every = clients(AppGroup("a", 2, 8, first=4))
    begins = [one.segments[0].begin for one in every]
    assert len(set(begins)) == len(every) == 8
    assert max(begins) < 0.1
    assert {one.segments[0].rate for one in every} == {inf}
    assert {(one.processes, one.node, one.closed) for one in every} == {(1, 2, True)}
    assert [one.servers for one in every] == [(n % SERVERS,) for n in range(8)]


def test_jumps_and_pauses_are_no_segments() -> None:
    rates = ((0.0, 0.5), (1.0, 0.5), (1.000001, 0.0), (2.0, 0.0), (2.000001, 1.0))
    (group,) = clients(AppGroup("a", 1, 4, rates=(*rates, (3.0, 0.5))))
    assert group.segments == (
        RateSegment(0.0, 1.0, 0.5 * CAPACITY, 0.5 * CAPACITY),
        RateSegment(2.000001, 3.0, CAPACITY, 0.5 * CAPACITY),
    )


@pytest.mark.parametrize("processes", [1, 4, 32])
def test_a_process_stays_at_its_server(processes: int) -> None:
    rates = ((0.0, 0.5), (5.0, 0.5))
    (group,) = clients(AppGroup("a", 1, processes, rates=rates))
    for number in range(processes):
        servers = {
            server
            for request in range(5)
            for server in group.pieces(request * processes + number)
        }
        assert servers == {number % SERVERS}


def test_the_same_seed_gives_the_same_answers() -> None:
    scene = next(s for s in scenes(QUICK) if s.name.startswith("4 KiB"))
    first, again, other = (simulate_scene(scene, STORAGE, seed) for seed in (1, 1, 2))
    assert first == again != other


def run(setting: str, few: int, *nodes: int) -> tuple[float, float]:
    """Return the share of the first of two applications, 3 : 1, and the total."""
    scene = ClusterScene(
        "scene",
        setting,
        {"few": Promise(0.7, 1.0), "many": Promise(0.7 / 3, 1.0)},
        (AppGroup("few", nodes[0], few), AppGroup("many", nodes[1], 32)),
        *(2.0, 22.0),
    )
    done = figures_of(scene, CAPACITY, simulate_scene(scene, STORAGE))
    total = sum(figures.bytes_per_s for figures in done.applications.values())
    return done.share("few"), total / CAPACITY


@pytest.mark.parametrize("few", [4, 16])
def test_shares_hold_on_one_node(few: int) -> None:
    share, total = run("together", few, 1, 1)
    assert share == pytest.approx(0.75, rel=0.03)
    assert total > 0.97


def test_one_process_gets_at_most_one_server() -> None:
    share, total = run("fifo", 1, 1, 2)
    assert share <= 1 / SERVERS
    assert total == pytest.approx(1.0, rel=0.05)


def test_without_a_scheduler_every_process_has_the_same() -> None:
    share, total = run("fifo", 16, 1, 2)
    assert share == pytest.approx(16 / 48, rel=0.05)
    assert total == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("setting", ["fifo", "together"])
def test_every_request_of_a_scene_is_answered_as_live(setting: str) -> None:
    """At the end each process waits for an answer; it gets it later."""
    scene = ClusterScene(
        "scene",
        setting,
        {"few": Promise(0.7, 1.0), "many": Promise(0.2, 1.0)},
        (AppGroup("few", 1, 4), AppGroup("many", 1, 32)),
        *(1.0, 4.0),
    )
    answers = simulate_scene(scene, STORAGE)
    for name, processes in (("few", 4), ("many", 32)):
        late = [a for a in answers[name] if a.answered >= scene.end_s]
        assert len(late) == processes
        assert all(a.issued < scene.end_s for a in late)


def test_delays_are_what_a_lone_request_takes_besides_its_service() -> None:
    # 25 requests per second and server: a service takes 40 ms.
    scene = replace(LATENCY_SCENE, warm_s=1.0, end_s=2.0)
    times = [(0.5, 0.6), (1.0, 1.041), (1.1, 1.139), (1.9, 2.0)]
    answers = {"all": [AnsweredRequest(*pair) for pair in times]}
    assert delays_of(scene, answers, CAPACITY) == pytest.approx([1e-3, 0.0])
    with pytest.raises(InputError, match="answered no request"):
        delays_of(scene, {"all": []}, CAPACITY)


def test_a_single_process_cannot_use_the_time_between_its_requests() -> None:
    scene = replace(LATENCY_SCENE, warm_s=1.0, end_s=21.0)
    storage = MeasuredStorage(CAPACITY, (0.009, 0.011))
    done = figures_of(scene, CAPACITY, simulate_scene(scene, storage))
    assert done.applications["all"].bytes_per_s == pytest.approx(
        CAPACITY * 0.04 / 0.05, rel=0.02
    )
    assert done.applications["all"].p95_s == pytest.approx(0.051)


@pytest.mark.parametrize("place", ["same node", "different nodes"])
@pytest.mark.parametrize("seed", [1, 2])
def test_response_times_follow_little(place: str, seed: int) -> None:
    """P processes that get X bytes/s have a mean response time of P c / X.

    All processes are alike, so none waits much longer: the 95th percentile is near.
    """
    capacity = 200.0 * SIZE_BYTES
    name = f"10 : 1, 4 and 32 processes, {place}"
    scene = scenes(FULL, [name])[-1]
    storage = MeasuredStorage(capacity, (0.0003, 0.0008))
    done = figures_of(scene, capacity, simulate_scene(scene, storage, seed))
    many = done.applications["many"]
    assert many.p95_s == pytest.approx(32 * SIZE_BYTES / many.bytes_per_s, rel=0.2)
