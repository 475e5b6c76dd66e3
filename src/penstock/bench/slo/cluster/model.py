# SPDX-License-Identifier: MIT
"""Simulate a scene of the cluster benchmark.

Every client node has a scheduler, as it has a mount. Each chunk server is a server with
an equal part of the measured capacity that serves requests in the order of arrival, as
its link does. A request takes no time besides.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

from penstock.bench.slo.cluster.scenes import (
    SERVERS,
    SETTINGS,
    AppGroup,
    ClusterScene,
    report_threshold,
)
from penstock.bench.slo.windows import AnsweredRequest
from penstock.qos import Slo
from penstock.sim.requests import Exchange, simulate_requests
from penstock.sim.requests_server import ServerSpec
from penstock.workloads.clients import Clients, RateSegment

__all__ = ["clients_of", "simulate_scene"]

#: Shorter intervals are the jumps of a rate (s).
_SHORTEST_S = 1e-3


def simulate_scene(
    scene: ClusterScene, capacity_bytes_per_s: float
) -> dict[str, list[AnsweredRequest]]:
    """Return the simulated answers by application."""
    setting = SETTINGS[scene.setting]
    slos = {
        name: Slo(promise.share * capacity_bytes_per_s, promise.latency_s)
        for name, promise in scene.promises.items()
    }
    threshold = report_threshold(scene, capacity_bytes_per_s)
    run = simulate_requests(
        setting.scheduler,
        slos,
        [
            clients_of(group, scene.end_s, capacity_bytes_per_s)
            for group in scene.groups
        ],
        [ServerSpec(capacity_bytes_per_s / SERVERS)] * SERVERS,
        scene.end_s,
        exchange=Exchange(threshold if setting.exchange else inf),
        schedulers_at="nodes",
    )
    return {
        name: [
            AnsweredRequest(float(issued), float(answered))
            for issued, answered in zip(
                run.issued_s[run.requests_of(name)],
                run.answered_s[run.requests_of(name)],
                strict=True,
            )
        ]
        for name in scene.promises
    }


def clients_of(group: AppGroup, end_s: float, capacity_bytes_per_s: float) -> Clients:
    """Return a group as simulated clients."""
    return Clients(
        group.application,
        group.processes,
        group.size_bytes,
        _segments(group, end_s, capacity_bytes_per_s),
        servers=_servers_of(group),
        node=group.node,
    )


def _servers_of(group: AppGroup) -> tuple[int, ...]:
    """Return the servers of the processes 0, 1, ... of a group.

    Each process has one file on one server. In a simulation, request k of process n is
    request k P + n of the group, for P processes, and goes to the server at that
    position in the list, modulo its length. So P is 1 or a multiple of the length.
    """
    count = min(group.processes, SERVERS)
    return tuple((group.first + number) % SERVERS for number in range(count))


def _segments(
    group: AppGroup, end_s: float, capacity_bytes_per_s: float
) -> tuple[RateSegment, ...]:
    """Return the intervals in which a group issues requests."""
    if not group.rates:
        return (RateSegment(0.0, end_s, inf),)
    return tuple(
        RateSegment(begin, end, low * capacity_bytes_per_s, high * capacity_bytes_per_s)
        for (begin, low), (end, high) in pairwise(group.rates)
        if end - begin > _SHORTEST_S and low > 0.0 and high > 0.0
    )
