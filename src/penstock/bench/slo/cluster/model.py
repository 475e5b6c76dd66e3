# SPDX-License-Identifier: MIT
"""Simulate a scene of the cluster benchmark.

Every client node has a scheduler for each chunk server, as it has mounts. Each chunk
server is a server with an equal part of the measured capacity that serves requests in
the order of arrival, as its link does. The answer comes a little later: what else a
request takes (kernel, mounts, network, the chunk server) is drawn from times that were
measured with one request at a time. Processes that write as fast as they can begin at
random times of the first 0.1 s. As live, all requests that were issued are answered,
also after the end of the scene.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

from numpy.random import Generator, default_rng

from penstock.bench.slo.cluster.scenes import (
    SERVERS,
    SETTINGS,
    SIZE_BYTES,
    AppGroup,
    ClusterScene,
)
from penstock.bench.slo.windows import AnsweredRequest
from penstock.errors import InputError
from penstock.qos import Slo
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import Exchange, simulate_requests
from penstock.workloads.clients import Clients, RateSegment

__all__ = ["MeasuredStorage", "clients_of", "delays_of", "simulate_scene"]

#: Shorter intervals are the jumps of a rate (s).
_SHORTEST_S: Final = 1e-3
#: The first requests of processes without a rate are issued until then (s).
_FIRST_S: Final = 0.1
#: Requests of a scene are answered at most so long after its end (s).
_ANSWERS_S: Final = 60.0


class MeasuredStorage(NamedTuple):
    """What the simulation takes from measurements."""

    capacity_bytes_per_s: float
    delays_s: Sequence[float] = (0.0,)
    """What requests took besides their service."""


def delays_of(
    scene: ClusterScene,
    answers: Mapping[str, Sequence[AnsweredRequest]],
    capacity_bytes_per_s: float,
) -> list[float]:
    """Return what writes that waited for no other took besides their service (s)."""
    service_s = SIZE_BYTES * SERVERS / capacity_bytes_per_s
    delays_s = [
        max(0.0, a.answered - a.issued - service_s)
        for times in answers.values()
        for a in times
        if scene.warm_s <= a.answered < scene.end_s
    ]
    if not delays_s:
        raise InputError("the cluster answered no request")
    return delays_s


def simulate_scene(
    scene: ClusterScene, storage: MeasuredStorage, seed: int = 1
) -> dict[str, list[AnsweredRequest]]:
    """Return the simulated answers by application."""
    capacity_bytes_per_s, delays_s = storage
    server = ServerSpec(capacity_bytes_per_s / SERVERS, delays_s=tuple(delays_s))
    draw = default_rng(seed)
    setting = SETTINGS[scene.setting]
    slos = {
        name: Slo(promise.share * capacity_bytes_per_s, promise.latency_s)
        for name, promise in scene.promises.items()
    }
    run = simulate_requests(
        setting.scheduler,
        slos,
        [
            clients
            for group in scene.groups
            for clients in clients_of(group, scene.end_s, capacity_bytes_per_s, draw)
        ],
        [server] * SERVERS,
        scene.end_s,
        exchange=Exchange(credit=setting.exchange),
        schedulers_at="mounts",
        answers_until=scene.end_s + _ANSWERS_S,
        seed=seed,
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


def clients_of(
    group: AppGroup, end_s: float, capacity_bytes_per_s: float, draw: Generator
) -> list[Clients]:
    """Return a group as simulated clients."""
    if group.rates:
        return [_with_rates(group, capacity_bytes_per_s)]
    return [
        Clients(
            *(group.application, 1, group.size_bytes),
            (RateSegment(draw.uniform(0.0, _FIRST_S), end_s, inf),),
            servers=((group.first + number) % SERVERS,),
            node=group.node,
        )
        for number in range(group.processes)
    ]


def _with_rates(group: AppGroup, capacity_bytes_per_s: float) -> Clients:
    """Return clients with a common rate.

    Each process has one file on one server. In a simulation, request k of process n is
    request k P + n of P processes, and goes to the server at that position in the list,
    modulo its length. So P must be 1 or a multiple of the length.
    """
    count = min(group.processes, SERVERS)
    segments = tuple(
        RateSegment(begin, end, low * capacity_bytes_per_s, high * capacity_bytes_per_s)
        for (begin, low), (end, high) in pairwise(group.rates)
        if end - begin > _SHORTEST_S and low > 0.0 and high > 0.0
    )
    return Clients(
        *(group.application, group.processes, group.size_bytes, segments),
        servers=tuple((group.first + number) % SERVERS for number in range(count)),
        node=group.node,
    )
