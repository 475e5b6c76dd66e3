# SPDX-License-Identifier: MIT
"""Simulated scenes: the groups, and closed forms of what they get."""

from __future__ import annotations

from math import inf

import pytest

from penstock.bench.slo.cluster.model import clients_of, simulate_scene
from penstock.bench.slo.cluster.results import figures_of
from penstock.bench.slo.cluster.scenes import (
    SERVERS,
    SIZE_BYTES,
    AppGroup,
    ClusterScene,
    Promise,
)
from penstock.workloads.clients import RateSegment

CAPACITY = 100.0 * SIZE_BYTES


def test_a_group_without_rates_is_as_fast_as_its_answers() -> None:
    clients = clients_of(AppGroup("a", 2, 8), 5.0, CAPACITY)
    assert clients.segments == (RateSegment(0.0, 5.0, inf),)
    assert (clients.node, clients.closed) == (2, True)


def test_jumps_and_pauses_are_no_segments() -> None:
    rates = ((0.0, 0.5), (1.0, 0.5), (1.000001, 0.0), (2.0, 0.0), (2.000001, 1.0))
    group = AppGroup("a", 1, 4, rates=(*rates, (3.0, 0.5)))
    begin = 2.000001
    assert clients_of(group, 3.0, CAPACITY).segments == (
        RateSegment(0.0, 1.0, 0.5 * CAPACITY, 0.5 * CAPACITY),
        RateSegment(begin, 3.0, CAPACITY, 0.5 * CAPACITY),
    )


@pytest.mark.parametrize("processes", [1, 4, 32])
def test_a_process_stays_at_its_server(processes: int) -> None:
    clients = clients_of(AppGroup("a", 1, processes), 5.0, CAPACITY)
    for number in range(processes):
        servers = {
            server
            for request in range(5)
            for server in clients.pieces(request * processes + number)
        }
        assert servers == {number % SERVERS}


def run(setting: str, few: int, *nodes: int) -> tuple[float, float]:
    """Return the share of the first of two applications, 3 : 1, and the total."""
    scene = ClusterScene(
        "scene",
        setting,
        {"few": Promise(0.7, 1.0), "many": Promise(0.7 / 3, 1.0)},
        (AppGroup("few", nodes[0], few), AppGroup("many", nodes[1], 32)),
        *(2.0, 22.0),
    )
    done = figures_of(scene, CAPACITY, simulate_scene(scene, CAPACITY))
    total = sum(figures.bytes_per_s for figures in done.applications.values())
    return done.share("few"), total / CAPACITY


@pytest.mark.parametrize("few", [4, 16])
def test_shares_hold_on_one_node(few: int) -> None:
    share, total = run("alone", few, 1, 1)
    assert share == pytest.approx(0.75, rel=0.05)
    assert total > 0.9


def test_one_process_gets_at_most_one_server() -> None:
    share, total = run("fifo", 1, 1, 2)
    assert share <= 1 / SERVERS
    assert total == pytest.approx(1.0, rel=0.05)


def test_without_a_scheduler_every_process_has_the_same() -> None:
    share, total = run("fifo", 16, 1, 2)
    assert share == pytest.approx(16 / 48, rel=0.05)
    assert total == pytest.approx(1.0, rel=0.02)
