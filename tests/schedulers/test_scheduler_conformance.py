# SPDX-License-Identifier: MIT
"""Rules for every scheduler, and all its guarantees: one test suite.

A new scheduler is tested by being in the table of schedulers. One from outside is named
in the environment variable SCHEDULERS, as `get_scheduler` takes it::

    SCHEDULERS=my_module.make python -m pytest tests/schedulers -k my_module

A scheduler is tested for what its
attribute ``guarantees`` says (`penstock.qos.interface`), and for the rules that all
must keep: nobody starves, and work is conserved.
"""

from __future__ import annotations

import os
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.qos import SCHEDULERS, Guarantees, Request, Slo, get_scheduler
from penstock.qos.interface import THINK_S
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import Exchange, RequestRun, simulate_requests
from penstock.workloads.clients import MB, Clients, saturating, steady

#: Further schedulers: dotted names, names of installed ones, any with parameters.
EXTRA = tuple(os.environ.get("SCHEDULERS", "").split())
#: The built-in ones, with the parameters that change what they guarantee.
ALL = (
    *SCHEDULERS,
    "two-level:overload=send",
    "two-level:credit=1,overload=send",
    "penstock.qos._template",
    *EXTRA,
)
SLOS = {"a": Slo(3e6, 1.0), "b": Slo(1e6, 2.0)}
KB64 = 65_536
#: Before this time schedulers measure the storage (s).
WARM_S = 12.0
UNTIL_S = 42.0

every_scheduler = pytest.mark.parametrize("name", ALL)


def guarantees_of(name: str) -> Guarantees:
    return get_scheduler(name).make(SLOS, 0.0).guarantees


def those_that_guarantee(what: str) -> pytest.MarkDecorator:
    """Parametrise a test by the schedulers that guarantee something."""
    return pytest.mark.parametrize(
        "name", [n for n in ALL if getattr(guarantees_of(n), what)]
    )


def served(run: RequestRun, application: str, since_s: float = WARM_S) -> float:
    """Return the throughput of an application from a time to the end (bytes/s)."""
    counted = run.requests_of(application) & (run.answered_s > since_s)
    return float(run.size_bytes[counted].sum()) / (UNTIL_S - since_s)


def flood(application: str, processes: int, size: int, *, node: int = 0) -> Clients:
    """Return processes that only wait for their answers."""
    clients = saturating(application, UNTIL_S, processes=processes, size=size)
    return replace(clients, node=node)


def test_every_guarantee_is_given_by_some_schedulers() -> None:
    guarantees = [guarantees_of(name) for name in ALL]
    for what in Guarantees.__dataclass_fields__:
        assert any(getattr(g, what) for g in guarantees), what
        assert not all(getattr(g, what) for g in guarantees), what


# --- Promises ---------------------------------------------------------------------


SERVERS = {
    "one after the other": ServerSpec(6e6),
    "four at once": ServerSpec(6e6, threads=4),
    "needs four": ServerSpec(8e6, curve=((1.0, 0.75), (4.0, 1.0)), threads=4),
}
LATENCIES_S = ((1.0, 2.0), (0.02, 5.0), (5.0, 0.02))
PROMISES = ((3e6, 1e6), (1e6, 3e6), (3e6, 2.8e6))
PROCESSES = ((4, 32), (32, 4), (1, 32), (1, 1), (32, 32))
SIZES = ((KB64, KB64), (KB64, MB), (MB, KB64), (4096, KB64))


def grid() -> list[tuple[str, int, int, int, int]]:
    """Return cases in which every pair of settings of two columns occurs."""
    return [
        (server, p, s, (row + p + s) % 3, (row + p + 2 * s) % 3)
        for row, server in enumerate(SERVERS)
        for p in range(len(PROCESSES))
        for s in range(len(SIZES))
    ]


@those_that_guarantee("promises")
@pytest.mark.parametrize(("server", "p", "s", "latency", "promise"), grid())
def test_a_backlogged_application_gets_its_promise(
    name: str, server: str, p: int, s: int, latency: int, promise: int
) -> None:
    """It may miss 0.3 s of its promise in 30 s, and two of the largest requests."""
    slos = {
        application: Slo(PROMISES[promise][k], LATENCIES_S[latency][k])
        for k, application in enumerate("ab")
    }
    clients = [flood(a, PROCESSES[p][k], SIZES[s][k]) for k, a in enumerate("ab")]
    run = simulate_requests(name, slos, clients, [SERVERS[server]], UNTIL_S)
    edges = 2 * max(SIZES[s]) / (UNTIL_S - WARM_S)
    for application, slo in slos.items():
        least = slo.throughput_bytes_per_s * (1 - 0.3 / (UNTIL_S - WARM_S)) - edges
        assert served(run, application) >= least


@those_that_guarantee("promises")
@pytest.mark.parametrize("processes", [(4, 32), (1, 32), (2, 64)])
def test_few_writers_keep_their_promise_beside_many(
    name: str, processes: tuple[int, int]
) -> None:
    """6 MB/s; 3 MB/s within 1 s and 1 MB/s within 2 s; 4 against 32 writers."""
    clients = [flood(a, n, KB64) for a, n in zip("ab", processes, strict=True)]
    run = simulate_requests(name, SLOS, clients, [ServerSpec(6e6)], UNTIL_S)
    assert served(run, "a") >= 3e6
    assert served(run, "b") >= 1e6
    assert served(run, "a") + served(run, "b") >= 5.99e6


@those_that_guarantee("promises")
@pytest.mark.parametrize("processes", [(16, 16), (4, 32)])
@pytest.mark.parametrize("share", [0.5, 0.75])
def test_a_client_node_keeps_several_servers_busy(
    name: str, processes: tuple[int, int], share: float
) -> None:
    """One scheduler, four servers of 1.5 MB/s; every process writes to one of them.

    All requests are within promises, so they wait for the depth, not for admission. A
    scheduler that stays at a depth of 1 uses one server at a time.
    """
    slos = {"a": Slo(share * 5.7e6, 1.0), "b": Slo((1 - share) * 5.7e6, 1.0)}
    clients = [
        replace(flood(a, n, KB64), servers=(0, 1, 2, 3))
        for a, n in zip("ab", processes, strict=True)
    ]
    run = simulate_requests(
        name, slos, clients, [ServerSpec(1.5e6)] * 4, UNTIL_S, schedulers_at="nodes"
    )
    for application, slo in slos.items():
        assert served(run, application) >= 0.93 * slo.throughput_bytes_per_s


@those_that_guarantee("promises")
def test_an_application_that_comes_later_gets_its_promise(name: str) -> None:
    """B has had all for 12 s; that must not be counted against it or for it."""
    late = replace(
        flood("a", 4, KB64), segments=(steady("a", inf, UNTIL_S, begin=WARM_S)).segments
    )
    run = simulate_requests(
        name, SLOS, [late, flood("b", 32, KB64)], [ServerSpec(6e6)], UNTIL_S
    )
    for since in (WARM_S, WARM_S + 5.0, WARM_S + 15.0):
        assert served(run, "a", since) >= 3e6 * (1 - 1.0 / (UNTIL_S - since))
        assert served(run, "b", since) >= 1e6 * (1 - 1.0 / (UNTIL_S - since))


@pytest.mark.parametrize("name", ["fifo", "two-level:overload=send"])
def test_the_storage_of_the_paper_serves_in_order_of_arrival_under_overload(
    name: str,
) -> None:
    """So 4 of 36 writers get a ninth: the reason why `send` guarantees no promise."""
    clients = [flood("a", 4, KB64), flood("b", 32, KB64)]
    run = simulate_requests(name, SLOS, clients, [ServerSpec(6e6)], UNTIL_S)
    assert served(run, "a") == pytest.approx(6e6 / 9, rel=0.01)


# --- Shares -----------------------------------------------------------------------


def ratio(run: RequestRun) -> float:
    return served(run, "a") / served(run, "b")


@those_that_guarantee("shares")
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("capacity", [3e6, 6e6])
def test_shares_are_those_of_the_promises(
    name: str, sizes: tuple[int, int], capacity: float
) -> None:
    """Also if the storage cannot keep the promises."""
    clients = [flood(a, 32, size) for a, size in zip("ab", sizes, strict=True)]
    run = simulate_requests(name, SLOS, clients, [ServerSpec(capacity)], UNTIL_S)
    edges = 4 * max(sizes) / (UNTIL_S - WARM_S)
    assert served(run, "a") == pytest.approx(
        0.75 * capacity, abs=edges + 0.02 * capacity
    )
    assert served(run, "b") == pytest.approx(
        0.25 * capacity, abs=edges + 0.02 * capacity
    )


REPORTS = (
    Exchange(threshold_bytes=2e5),
    Exchange(threshold_bytes=2e5, max_delay_s=0.2),
    Exchange(threshold_bytes=2e5, max_delay_s=0.2, loss_share=0.3),
)


@those_that_guarantee("shares")
@pytest.mark.parametrize("exchange", REPORTS)
def test_shares_of_the_total_over_servers_with_reports(
    name: str, exchange: Exchange
) -> None:
    """A is on both servers, B on the first; equal promises give equal totals.

    B then has the first server and A the second, after a time in which A has more.
    """
    slos = {"a": Slo(2e6, 0.5), "b": Slo(2e6, 0.5)}
    clients = [
        replace(flood("a", 64, KB64), servers=(0, 1)),
        replace(flood("b", 32, KB64), servers=(0,)),
    ]
    servers = [ServerSpec(5e6), ServerSpec(5e6)]
    run = simulate_requests(name, slos, clients, servers, UNTIL_S, exchange=exchange)
    assert ratio(run) == pytest.approx(1.0, abs=0.05)
    alone = simulate_requests(name, slos, clients, servers, UNTIL_S)
    assert ratio(alone) == pytest.approx(3.0, rel=0.1)


@those_that_guarantee("shares")
def test_shares_of_the_total_over_servers_with_a_layout(name: str) -> None:
    """Each request of A is split evenly over both servers."""
    slos = {"a": Slo(2e6, 0.5), "b": Slo(2e6, 0.5)}
    clients = [
        replace(flood("a", 64, KB64), servers=(0, 1), stripe=KB64 // 2),
        replace(flood("b", 32, KB64), servers=(0,)),
    ]
    servers = [ServerSpec(5e6), ServerSpec(5e6)]
    run = simulate_requests(
        name, slos, clients, servers, UNTIL_S, exchange=Exchange(layout=True)
    )
    assert ratio(run) == pytest.approx(1.0, abs=0.05)


# --- Latency and order ------------------------------------------------------------


@those_that_guarantee("latency")
@pytest.mark.parametrize("processes", [8, 32])
@pytest.mark.parametrize("bounds_s", [(0.1, 0.3), (0.2, 2.0)])
def test_latencies_hold_while_all_keep_to_their_promises(
    name: str, processes: int, bounds_s: tuple[float, float]
) -> None:
    """Promises are 80 % of the capacity, a request takes 20 ms."""
    slos = {"a": Slo(15e6, bounds_s[0]), "b": Slo(25e6, bounds_s[1])}
    clients = [
        replace(steady(a, rate, UNTIL_S, processes=processes), jitter=0.5)
        for a, rate in (("a", 13.5e6), ("b", 22.5e6))
    ]
    run = simulate_requests(name, slos, clients, [ServerSpec(50e6)], UNTIL_S)
    times_s = run.answered_s - run.issued_s
    for application, slo in slos.items():
        counted = run.requests_of(application) & (run.answered_s > WARM_S)
        assert np.quantile(times_s[counted], 0.95) <= slo.latency_s


@those_that_guarantee("deadlines")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    script=st.lists(
        st.tuples(st.sampled_from("ab"), st.floats(0, 1.0), st.integers(0, 2)),
        max_size=60,
    )
)
def test_the_earliest_deadline_goes_first(
    name: str, script: list[tuple[str, float, int]]
) -> None:
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    now = 0.0
    waiting: list[tuple[float, int]] = []
    sent: list[Request] = []
    for number, (application, gap, completed) in enumerate(script):
        now += gap
        scheduler.arrive(Request("write", KB64, application, number), now)
        waiting.append((now + SLOS[application].latency_s, number))
        for request in sent[:completed]:
            scheduler.complete(request, KB64, now)
        sent = sent[completed:]
        for request in scheduler.dispatch(now):
            waiting.sort()
            assert waiting.pop(0)[1] == request.pid
            sent.append(request)


# --- Rules for all ----------------------------------------------------------------


@every_scheduler
def test_nobody_starves(name: str) -> None:
    """Also one process without an SLO beside floods of large and small requests."""
    slos = {"a": Slo(40e6, 0.1), "b": Slo(20e6, 0.3)}
    clients = [flood("a", 64, MB), flood("b", 32, 4096), flood("stranger", 1, KB64)]
    run = simulate_requests(name, slos, clients, [ServerSpec(30e6)], UNTIL_S + 20.0)
    assert run.unanswered == 0
    for application in ("a", "b", "stranger"):
        own = run.requests_of(application)
        thirds = np.histogram(run.answered_s[own], 3, (0.0, UNTIL_S))[0]
        assert thirds.min() >= 1, f"{name} starves {application}"


@every_scheduler
@pytest.mark.parametrize("processes", [(1, 1), (4, 32)])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_storage_with_demand_is_never_idle(
    name: str, processes: tuple[int, int], sizes: tuple[int, int]
) -> None:
    """All that the storage can do is done: what is not answered is at the storage."""
    clients = [
        flood(a, n, size) for a, n, size in zip("ab", processes, sizes, strict=True)
    ]
    run = simulate_requests(name, SLOS, clients, [ServerSpec(6e6)], UNTIL_S)
    assert run.size_bytes.sum() >= 6e6 * UNTIL_S - 2 * max(sizes)


@every_scheduler
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "stranger"]),
            st.integers(0, 2 * MB),
            st.floats(0, 0.3),
            st.integers(0, 3),
        ),
        max_size=80,
    )
)
def test_requests_wait_at_an_idle_storage_only_for_the_next_of_a_short_application(
    name: str, script: list[tuple[str, int, float, int]]
) -> None:
    """An idle storage with waiting requests is tried again within `THINK_S`."""
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    now = 0.0
    sent: list[Request] = []
    for application, size, gap, completed in script:
        now += gap
        scheduler.arrive(Request("write", size, application), now)
        sent += scheduler.dispatch(now)
        for _ in range(min(completed, len(sent))):
            request = sent.pop(0)
            scheduler.complete(request, request.size_bytes, now)
            sent += scheduler.dispatch(now)
        if not sent and scheduler.waiting:
            assert guarantees_of(name).promises
            assert now < scheduler.wake_s <= now + THINK_S
            now = scheduler.wake_s
            sent += scheduler.dispatch(now)
            assert sent
