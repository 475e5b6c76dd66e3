# SPDX-License-Identifier: MIT
"""Start-time fair queueing: the fairness bound, on one server and on several."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.qos import QosScheduler, Request, Slo, get_scheduler
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import Exchange, RequestRun, simulate_requests
from penstock.workloads.clients import MB, Clients, RateSegment, saturating


@dataclass
class FairnessCheck:
    """Checks the bound on the normalised service of two applications that wait."""

    weights: tuple[float, float]
    largest: list[int] = field(default_factory=lambda: [0, 0])
    waiting: list[int] = field(default_factory=lambda: [0, 0])
    difference: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def arrives(self, index: int, size: int) -> None:
        self.waiting[index] += 1
        self.largest[index] = max(self.largest[index], size)
        if self.waiting[index] == 1:
            self.restart()

    def is_sent(self, index: int, size: int) -> None:
        both = all(self.waiting)
        self.waiting[index] -= 1
        if not both:
            return
        self.difference += (1 - 2 * index) * size / self.weights[index]
        self.low, self.high = (
            min(self.low, self.difference),
            max(self.high, self.difference),
        )
        bound = sum(c / w for c, w in zip(self.largest, self.weights, strict=True))
        assert self.high - self.low <= bound * (1 + 1e-9)
        if not self.waiting[index]:
            self.restart()

    def restart(self) -> None:
        self.difference = self.low = self.high = 0.0


@settings(max_examples=150, deadline=None)
@given(
    weights=st.tuples(st.floats(1e5, 1e8), st.floats(1e5, 1e8)),
    script=st.lists(
        st.tuples(st.sampled_from([0, 0, 1, 2, 2]), st.integers(4096, 4 * MB)),
        min_size=20,
        max_size=300,
    ),
)
def test_normalised_service_differs_by_at_most_the_bound_of_sfq(
    weights: tuple[float, float], script: list[tuple[int, int]]
) -> None:
    """|W_0 / t_0 - W_1 / t_1| <= c_0 / t_0 + c_1 / t_1 while both wait."""
    slos = {str(k): Slo(w, 1.0) for k, w in enumerate(weights)}
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    check = FairnessCheck(weights)
    running: Request | None = None
    for action, size in script:
        if action < 2:
            scheduler.arrive(Request("write", size, str(action)), 0.0)
            check.arrives(action, size)
        elif running is not None:
            scheduler.complete(running, running.size_bytes, 0.0)
            running = None
        for request in scheduler.dispatch(0.0):
            running = request
            check.is_sent(int(request.application), request.size_bytes)


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
    warm = run.answered_s > 10.0
    a, b = (run.size_bytes[run.requests_of(name) & warm].sum() for name in "ab")
    return float(a / b)


def test_an_idle_application_saves_no_service() -> None:
    slos = {"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)}
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    for _ in range(50):
        scheduler.arrive(Request("write", MB, "a"), 0.0)
        (request,) = scheduler.dispatch(0.0)
        scheduler.complete(request, MB, 0.0)
    assert sending_order(scheduler) in ("ababab", "bababa", "baabab")


def test_unused_cost_is_refunded() -> None:
    slos = {"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)}

    def order(moved: int) -> str:
        scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
        for name in "ababab":
            size = MB if name == "a" else MB * 9 // 10
            scheduler.arrive(Request("read", size, name), 0.0)
        sent = ""
        while scheduler.waiting:
            (request,) = scheduler.dispatch(0.0)
            scheduler.complete(request, request.size_bytes if sent else moved, 0.0)
            sent += request.application
        return sent

    assert order(MB) == "abbaba"
    assert order(0) == "abbaab"


@pytest.mark.parametrize("depth", [1, 8])
def test_an_application_that_retries_failing_requests_does_not_starve_another(
    depth: int,
) -> None:
    """A program over its quota retries for ever; each failed call costs 4096 bytes.

    The charges of the two applications differ by at most depth + 1 requests of each
    (the bound of SFQ(D)) plus depth requests whose refund is still outstanding.
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
            moved = request.size_bytes
        charged[name] += max(moved, 4096)
        scheduler.complete(request, moved, 0.0)
        scheduler.arrive(Request("write", MB, name), 0.0)
    assert charged["fails"] > 70 * MB
    assert abs(charged["fails"] - charged["works"]) <= 2 * (2 * depth + 1) * MB


# --- Several servers ----------------------------------------------------------------

BOTH = (0, 1)


def wide(stripe: int | None) -> list[Clients]:
    """Return clients of A on both servers and of B on the first, at full speed."""
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
    run = simulate_requests(
        scheduler, slos, wide(stripe), servers, 60.0, exchange=exchange
    )
    return ratio(run)


def test_without_an_exchange_each_server_shares_on_its_own() -> None:
    assert shared(Exchange()) == pytest.approx(3.0, rel=0.1)


REPORTS = (
    Exchange(threshold_bytes=2e6),
    Exchange(threshold_bytes=2e6, max_delay_s=0.5),
    Exchange(threshold_bytes=2e6, loss_share=0.5),
    Exchange(threshold_bytes=2e6, max_delay_s=1.0, loss_share=0.5),
)


@pytest.mark.parametrize("scheduler", ["sfq", "two-level"])
@pytest.mark.parametrize("exchange", REPORTS)
def test_reports_make_the_total_service_fair(
    exchange: Exchange, scheduler: str
) -> None:
    """Equal weights give equal totals: B gets the first server, A the second."""
    assert shared(exchange, None, scheduler) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("scheduler", ["sfq", "two-level"])
def test_the_layout_makes_the_total_service_fair(scheduler: str) -> None:
    """Each request of A is split evenly over both servers, so its factor is 2."""
    stripe = MB // 2
    assert shared(Exchange(layout=True), stripe, scheduler) == pytest.approx(
        1.0, rel=0.1
    )
    assert shared(Exchange(), stripe) > 1.8


def sending_order(scheduler: QosScheduler) -> str:
    """Return the order in which three requests each of a and b are sent."""
    for name in "ababab":
        scheduler.arrive(Request("write", MB, name), 0.0)
    sent = ""
    while scheduler.waiting:
        for request in scheduler.dispatch(0.0):
            sent += request.application
            scheduler.complete(request, MB, 0.0)
    return sent


def test_service_on_other_servers_delays_requests_here() -> None:
    slos = {"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)}
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    assert sending_order(scheduler) == "ababab"
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    scheduler.record_remote_service("other", {"a": 2.5 * MB}, 0.0)
    scheduler.record_remote_service("other", {"a": 1.0 * MB}, 0.0)  # A late report.
    assert sending_order(scheduler) == "bbbaaa"
    scheduler = get_scheduler("sfq:depth=1").make(slos, 0.0)
    scheduler.set_layout({"a": 3})
    assert np.array_equal(list(sending_order(scheduler)), list("abbbaa"))
