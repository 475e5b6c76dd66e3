# SPDX-License-Identifier: MIT
"""Start-time fair queueing: the bound of the theory, on one server and on several."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.qos import QosScheduler, Request, Slo, get_scheduler
from penstock.sim.requests import Exchange, RequestRun, simulate_requests
from penstock.sim.requests_server import ServerSpec
from penstock.workloads.clients import MB, Clients, RateSegment, saturating


@dataclass
class Watch:
    """Normalised service of two flows while both wait, and its bound."""

    weights: tuple[float, float]
    largest: list[int] = field(default_factory=lambda: [0, 0])
    waiting: list[int] = field(default_factory=lambda: [0, 0])
    apart: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def comes(self, flow: int, size: int) -> None:
        self.waiting[flow] += 1
        self.largest[flow] = max(self.largest[flow], size)
        if self.waiting[flow] == 1:
            self.restart()

    def goes(self, flow: int, size: int) -> None:
        both = all(self.waiting)
        self.waiting[flow] -= 1
        if not both:
            return
        self.apart += (1 - 2 * flow) * size / self.weights[flow]
        self.low, self.high = min(self.low, self.apart), max(self.high, self.apart)
        bound = sum(c / w for c, w in zip(self.largest, self.weights, strict=True))
        assert self.high - self.low <= bound * (1 + 1e-9)
        if not self.waiting[flow]:
            self.restart()

    def restart(self) -> None:
        self.apart = self.low = self.high = 0.0


@settings(max_examples=150, deadline=None)
@given(
    weights=st.tuples(st.floats(1e5, 1e8), st.floats(1e5, 1e8)),
    script=st.lists(
        st.tuples(st.sampled_from([0, 0, 1, 2, 2]), st.integers(4096, 4 * MB)),
        min_size=20,
        max_size=300,
    ),
)
def test_service_differs_by_no_more_than_the_theory_says(
    weights: tuple[float, float], script: list[tuple[int, int]]
) -> None:
    """|W_0 / t_0 - W_1 / t_1| <= c_0 / t_0 + c_1 / t_1 while both wait."""
    slos = {str(k): Slo(w, 1.0) for k, w in enumerate(weights)}
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    watch = Watch(weights)
    running: Request | None = None
    for what, size in script:
        if what < 2:
            scheduler.arrive(Request("write", size, str(what)), 0.0)
            watch.comes(what, size)
        elif running is not None:
            scheduler.complete(running, running.size, 0.0)
            running = None
        for request in scheduler.dispatch(0.0):
            running = request
            watch.goes(int(request.application), request.size)


def test_shares_are_those_of_the_slos() -> None:
    slos = {"a": Slo(40e6, 0.1), "b": Slo(10e6, 0.1)}
    run = simulate_requests(
        "sfq",
        slos,
        [saturating("a", 60.0), saturating("b", 60.0)],
        [ServerSpec(50e6)],
        60.0,
    )
    assert ratio(run) == pytest.approx(4.0, rel=0.02)


def ratio(run: RequestRun) -> float:
    late = run.answered > 10.0
    a, b = (run.size[run.of(name) & late].sum() for name in "ab")
    return float(a / b)


def test_who_was_idle_has_saved_nothing() -> None:
    slos = {"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)}
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    for _ in range(50):
        scheduler.arrive(Request("write", MB, "a"), 0.0)
        (request,) = scheduler.dispatch(0.0)
        scheduler.complete(request, MB, 0.0)
    assert tagged(scheduler) in ("ababab", "bababa", "baabab")


def test_what_was_not_used_is_given_back() -> None:
    slos = {"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)}

    def order(moved: int) -> str:
        scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
        for name in "ababab":
            size = MB if name == "a" else MB * 9 // 10
            scheduler.arrive(Request("read", size, name), 0.0)
        gone = ""
        while scheduler.waiting:
            (request,) = scheduler.dispatch(0.0)
            scheduler.complete(request, request.size if gone else moved, 0.0)
            gone += request.application
        return gone

    assert order(MB) == "abbaba"
    assert order(0) == "abbaab"


@pytest.mark.parametrize("depth", [1, 8])
def test_who_retries_what_fails_does_not_starve_the_other(depth: int) -> None:
    """A program over its quota; a call that fails counts as 4096 bytes.

    What the two were charged differs by no more than the theory says, depth + 1
    requests of each, and depth more that are given back only with the next ones.
    """
    slos = {"fails": Slo(1e6, 1.0), "works": Slo(1e6, 1.0)}
    scheduler = get_scheduler(f"sfq:depth={depth}").make(slos, 0.0)
    charged = dict.fromkeys(slos, 0)
    sent: list[Request] = []
    for name in [*slos] * 8:
        scheduler.arrive(Request("write", MB, name), 0.0)
    for _ in range(20_000):
        sent += scheduler.dispatch(0.0)
        request = sent.pop(0)
        name, moved = request.application, 0
        if name == "works":
            moved = request.size
        charged[name] += max(moved, 4096)
        scheduler.complete(request, moved, 0.0)
        scheduler.arrive(Request("write", MB, name), 0.0)
    assert charged["fails"] > 70 * MB
    assert abs(charged["fails"] - charged["works"]) <= 2 * (2 * depth + 1) * MB


# --- Several servers ----------------------------------------------------------------

BOTH = (0, 1)


def wide(stripe: int | None) -> list[Clients]:
    """Return A on both servers, B on the first, all as fast as they can."""
    stage = (RateSegment(0.0, 60.0, float("inf")),)
    return [
        Clients("a", 64, MB, stage, servers=BOTH, stripe=stripe),
        Clients("b", 32, MB, stage, servers=(0,)),
    ]


def shared(
    exchange: Exchange, stripe: int | None = None, scheduler: str = "sfq"
) -> float:
    slos = {"a": Slo(20e6, 0.1), "b": Slo(20e6, 0.1)}
    servers = [ServerSpec(50e6), ServerSpec(50e6)]
    run = simulate_requests("sfq", slos, wide(stripe), servers, 60.0, exchange=exchange)
    return ratio(run)


def test_alone_a_server_knows_only_its_own_share() -> None:
    assert shared(Exchange()) == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("scheduler", ["sfq", "two-level"])
@pytest.mark.parametrize(
    "exchange",
    [
        Exchange(threshold=2e6),
        Exchange(threshold=2e6, late=0.5),
        Exchange(threshold=2e6, lost=0.5),
        Exchange(threshold=2e6, late=1.0, lost=0.5),
    ],
)
def test_total_service_is_shared_by_broadcast(
    exchange: Exchange, scheduler: str
) -> None:
    """Equal weights, equal totals: B has the first server, A the second."""
    assert shared(exchange, None, scheduler) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("scheduler", ["sfq", "two-level"])
def test_total_service_is_shared_by_layout(scheduler: str) -> None:
    """A's requests lie on both servers, half and half, as the layout factor says."""
    stripe = MB // 2
    assert shared(Exchange(layout=True), stripe, scheduler) == pytest.approx(
        1.0, rel=0.1
    )
    assert shared(Exchange(), stripe) > 1.8


def tagged(scheduler: QosScheduler) -> str:
    """Return the order in which three requests each of a and b go."""
    for name in "ababab":
        scheduler.arrive(Request("write", MB, name), 0.0)
    gone = ""
    while scheduler.waiting:
        for request in scheduler.dispatch(0.0):
            gone += request.application
            scheduler.complete(request, MB, 0.0)
    return gone


def test_service_elsewhere_delays_what_is_here() -> None:
    slos = {"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)}
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    assert tagged(scheduler) == "ababab"
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    scheduler.hear("other", {"a": 2.5 * MB})
    scheduler.hear("other", {"a": 1.0 * MB})  # Late: says nothing new.
    assert tagged(scheduler) == "bbbaaa"
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    scheduler.spread({"a": 3})
    assert np.array_equal(list(tagged(scheduler)), list("abbbaa"))
