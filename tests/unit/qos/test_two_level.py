# SPDX-License-Identifier: MIT
"""The two-level scheduler: levels, windows, latency bounds, overload."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from penstock.qos import Request, Slo
from penstock.qos.two_level import FIRST_DEPTH, TwoLevel
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import RequestRun, simulate_requests
from penstock.workloads.clients import MB, Clients, saturating, steady

SERVER = ServerSpec(50e6)
SEND = "two-level:credit=1,overload=send"


def kept(run: RequestRun, application: str, bound: float, after: float = 5.0) -> float:
    """Return the fraction of seconds whose 95th percentile is within the bound."""
    answered = run.requests_of(application) & (run.answered_s > after)
    times, windows = (
        (run.answered_s - run.issued_s)[answered],
        run.answered_s[answered] // 1.0,
    )
    percentiles = [
        np.sort(times[windows == w])[int(np.ceil(0.95 * np.sum(windows == w))) - 1]
        for w in np.unique(windows)
    ]
    return float(np.mean(np.array(percentiles) <= bound))


def calm(name: str, rate: float, until: float) -> Clients:
    return replace(steady(name, rate, until), jitter=0.5)


BOTH = {"a": Slo(15e6, 0.1), "b": Slo(25e6, 0.3)}


def test_latencies_hold_while_all_applications_keep_to_their_throughput() -> None:
    clients = [calm("a", 14e6, 60.0), calm("b", 24e6, 60.0)]
    run = simulate_requests("two-level", BOTH, clients, [SERVER], 60.0)
    for name, slo in BOTH.items():
        assert kept(run, name, slo.latency_s) >= 0.9


def test_an_application_that_issues_too_much_does_not_harm_another() -> None:
    clients = [calm("a", 14e6, 60.0), saturating("b", 60.0)]
    run = simulate_requests("two-level", BOTH, clients, [SERVER], 60.0)
    plain = simulate_requests("fifo", BOTH, clients, [SERVER], 60.0)
    assert kept(run, "a", 0.1) >= 0.9
    assert kept(plain, "a", 0.1) == 0.0
    assert run.size_bytes.sum() >= 0.98 * plain.size_bytes.sum()


def test_a_small_reader_beside_a_flood_is_answered_ten_times_sooner() -> None:
    """Compared with fifo; the flood keeps 95 % of its throughput."""
    slos = {"reader": Slo(1e6, 0.02), "writer": Slo(40e6, 1.0)}
    clients = [
        saturating("reader", 30.0, processes=1, size=4096),
        saturating("writer", 30.0),
    ]
    times, moved = {}, {}
    for name in ("fifo", "two-level"):
        run = simulate_requests(name, slos, clients, [SERVER], 30.0)
        answered = run.requests_of("reader") & (run.answered_s > 5.0)
        times[name] = float(
            np.quantile((run.answered_s - run.issued_s)[answered], 0.95)
        )
        moved[name] = run.size_bytes[run.requests_of("writer")].sum()
    assert times["two-level"] <= 0.1 * times["fifo"]
    assert moved["two-level"] >= 0.95 * moved["fifo"]


def test_under_overload_shares_hold_and_the_tight_bound_is_favoured() -> None:
    """90 MB/s are issued, the SLOs add up to 60, the storage has 50."""
    slos = {"a": Slo(40e6, 0.1), "b": Slo(20e6, 0.3)}
    clients = [calm("a", 50e6, 100.0), calm("b", 40e6, 100.0)]
    run = simulate_requests("two-level", slos, clients, [SERVER], 100.0)
    a, b = (run.size_bytes[run.requests_of(name)].sum() for name in "ab")
    assert a / b == pytest.approx(2.0, rel=0.1)
    assert a + b >= 0.98 * 50e6 * 100
    assert kept(run, "a", 0.1) >= 10 * kept(run, "b", 0.1)
    assert kept(run, "a", 0.1) > 0.05


@pytest.mark.parametrize("name", ["two-level", SEND])
def test_the_depth_follows_a_step_in_capacity(name: str) -> None:
    """Half the capacity allows half the depth at the same latency."""
    slos = {"a": Slo(20e6, 0.4)}
    server = ServerSpec(50e6, changes=((60.0, 0.5),))
    run = simulate_requests(name, slos, [calm("a", 15e6, 120.0)], [server], 120.0)
    changes = run.depths[0]

    def median(begin: float, end: float) -> float:
        times = np.arange(begin, end, 0.5)
        where = np.searchsorted(changes[:, 0], times + 0.25, side="right") - 1
        return float(np.median(changes[where, 1]))

    before, after = median(30, 60), median(70, 120)
    full = 20.0 if name == SEND else 10.0
    assert before == pytest.approx(full, rel=0.3)
    assert after / before == pytest.approx(0.5, abs=0.2)
    # The new depth is reached within 5 s and stays.
    assert median(65, 70) == pytest.approx(after, rel=0.35)


def test_with_overload_send_the_depth_is_infinite_until_the_overload_ends() -> None:
    slos = {"a": Slo(40e6, 0.1), "b": Slo(20e6, 0.3)}
    clients = [calm("a", 50e6, 30.0), calm("b", 20e6, 90.0)]
    run = simulate_requests(SEND, slos, clients, [SERVER], 90.0)
    depths = run.depths[0]
    during = depths[(depths[:, 0] > 2) & (depths[:, 0] < 30)]
    assert len(during) == 0
    assert np.isinf(depths[depths[:, 0] <= 2][-1, 1])
    assert np.isfinite(depths[depths[:, 0] > 40][:, 1]).all()


# --- Both variants: lower level, windows, local shares ----------------------------

SLOS = {"a": Slo(10e6, 0.1), "b": Slo(10e6, 1.0)}

both_variants = pytest.mark.parametrize("holds", [True, False])


@both_variants
def test_admitted_requests_go_by_deadline(holds: bool) -> None:
    """The first 8 fill the storage; of the others the tight bound goes first."""
    scheduler = TwoLevel(SLOS, 0.0, 10.0, 10.0, holds=holds)
    for name in "bbbbbbbbbaa":
        scheduler.arrive(Request("write", 1000, name), 0.0)
    sent = scheduler.dispatch(0.0)
    assert len(sent) == FIRST_DEPTH
    assert [request.application for request in sent[:2]] == ["a", "a"]


@both_variants
def test_nothing_to_do_means_no_wake_up(holds: bool) -> None:
    scheduler = TwoLevel(SLOS, 0.0, 0.5, 0.0, holds=holds)
    assert scheduler.dispatch(0.0) == []
    assert scheduler.wake_s == inf
    scheduler.arrive(Request("write", MB, "a"), 0.1)
    (request,) = scheduler.dispatch(0.1)
    assert scheduler.wake_s == pytest.approx(0.5)
    scheduler.complete(request, MB, 0.2)
    assert scheduler.dispatch(0.2) == []
    assert scheduler.wake_s == inf
    assert scheduler.waiting == scheduler.outstanding == 0
