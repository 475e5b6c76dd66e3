# SPDX-License-Identifier: MIT
"""Several mounts in front of one storage, simulated with central credit.

The simulated nodes run the same stage, and the same allocator decides, as in real
mounts and in ``penstock serve``.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, cycle
from math import inf
from unittest.mock import Mock

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from penstock.qos import CreditScheduler, QosScheduler, Slo, percentile
from penstock.qos.credit.allocator import LEASE_S, PERIOD_S
from penstock.sim.requests.credit import (
    CENTRAL,
    Action,
    CreditMember,
    CreditMessages,
)
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import Exchange, RequestRun, simulate_requests
from penstock.workloads.clients import Clients, saturating, steady

KB64 = 65_536
CAPACITY = 6e6
WARM_S = 10.0
UNTIL_S = 40.0


def flood(application: str, processes: int, node: int) -> Clients:
    """Return processes that only wait for their answers."""
    clients = saturating(application, UNTIL_S, processes=processes, size=KB64)
    return replace(clients, node=node)


def slos_of(weights: tuple[int, ...]) -> dict[str, Slo]:
    """Return promises that add up to 90 % of the capacity."""
    unit = 0.9 * CAPACITY / sum(weights)
    return {
        name: Slo(weight * unit, 1.0)
        for name, weight in zip("abc", weights, strict=False)
    }


def simulate(
    clients: list[Clients],
    slos: dict[str, Slo],
    exchange: Exchange,
    scheduler: str = "two-level",
    server: ServerSpec | None = None,
) -> RequestRun:
    return simulate_requests(
        scheduler,
        slos,
        clients,
        [server or ServerSpec(CAPACITY)],
        UNTIL_S,
        exchange=exchange,
        schedulers_at="nodes",
    )


def rate(
    run: RequestRun,
    application: str,
    since_s: float = WARM_S,
    until_s: float = UNTIL_S,
) -> float:
    """Return the throughput of an application in an interval (bytes/s)."""
    counted = run.requests_of(application)
    counted &= (run.answered_s > since_s) & (run.answered_s <= until_s)
    return float(run.size_bytes[counted].sum()) / (until_s - since_s)


@pytest.mark.parametrize("scheduler", ["fifo:depth=0", "sfq", "two-level"])
@pytest.mark.parametrize("processes", [(4, 32), (32, 4), (1, 64), (64, 1)])
@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (10, 1)])
def test_one_application_per_node(
    weights: tuple[int, int], processes: tuple[int, int], scheduler: str
) -> None:
    """Shares within 3 %, and the storage is fully used."""
    clients = [flood("a", processes[0], 0), flood("b", processes[1], 1)]
    exchange = Exchange(credit=True, max_delay_s=0.02, loss_share=0.05)
    run = simulate(clients, slos_of(weights), exchange, scheduler)
    rates = [rate(run, "a"), rate(run, "b")]
    assert sum(rates) >= 0.99 * CAPACITY
    for share, weight in zip(rates, weights, strict=True):
        assert share / sum(rates) == pytest.approx(weight / sum(weights), rel=0.03)


def test_without_credit_the_node_with_more_processes_gets_more() -> None:
    clients = [flood("a", 4, 0), flood("b", 32, 1)]
    run = simulate(clients, slos_of((3, 1)), Exchange(), "fifo:depth=0")
    assert rate(run, "b") > 4 * rate(run, "a")


@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    weights=st.tuples(*[st.sampled_from([1, 3, 10])] * 3),
    groups=st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from([1, 4, 32]), st.integers(0, 3)
        ),
        min_size=2,
        max_size=6,
    ),
    delay_s=st.floats(0.001, 0.02),
    loss_share=st.sampled_from([0.0, 0.1, 0.3]),
    server=st.sampled_from(
        [ServerSpec(CAPACITY), ServerSpec(CAPACITY, threads=4)],
    ),
)
def test_random_placements(
    weights: tuple[int, int, int],
    groups: list[tuple[str, int, int]],
    delay_s: float,
    loss_share: float,
    server: ServerSpec,
) -> None:
    # On a single node the scheduler sees all applications.
    assume(len({node for _, _, node in groups}) > 1)
    clients = [flood(*group) for group in groups]
    exchange = Exchange(credit=True, max_delay_s=delay_s, loss_share=loss_share)
    slos = slos_of(weights)
    run = simulate(clients, slos, exchange, "sfq", server)
    present = sorted({name for name, _, _ in groups})
    rates = {name: rate(run, name) for name in present}
    total = sum(slos[name].throughput_bytes_per_s for name in present)
    assert sum(rates.values()) >= 0.97 * CAPACITY
    for name in present:
        share = slos[name].throughput_bytes_per_s / total
        assert rates[name] / sum(rates.values()) == pytest.approx(share, rel=0.03)


def test_unused_credit_flows_to_others() -> None:
    """A draws 1 MB/s of its 4.5: B gets the rest."""
    small = replace(steady("a", 1e6, UNTIL_S, processes=4, size=KB64), node=0)
    clients = [small, flood("b", 32, 1)]
    run = simulate(clients, slos_of((3, 1)), Exchange(credit=True, max_delay_s=0.02))
    assert rate(run, "a") == pytest.approx(1e6, rel=0.03)
    assert rate(run, "a") + rate(run, "b") >= 0.97 * CAPACITY


def test_an_application_that_comes_back_has_its_share_at_once() -> None:
    late = replace(
        flood("a", 4, 0), segments=steady("a", inf, UNTIL_S, begin=20.0).segments
    )
    clients = [late, flood("b", 32, 1)]
    run = simulate(clients, slos_of((3, 1)), Exchange(credit=True, max_delay_s=0.02))
    assert rate(run, "b", 5.0, 20.0) >= 0.97 * CAPACITY
    assert rate(run, "a", 20.0) == pytest.approx(0.75 * CAPACITY, rel=0.06)


def test_messages_that_were_overtaken_are_dropped() -> None:
    """The messages of even periods take 4 periods: three later ones arrive before."""
    arrived: list[int] = []
    plan: list[tuple[float, int, Action]] = []
    order = count()
    credit = Mock(spec=CreditScheduler)
    credit.use.return_value = {}
    credit.set_credit.side_effect = lambda granted, lease_s, now: arrived.append(
        round(now / PERIOD_S)
    )
    random = Mock(spec=Generator)
    random.random.side_effect = ((1.0, delay) for delay in cycle((0.0, 0.0, 1.0, 1.0)))
    CreditMessages(
        {"0": CreditMember("s", Mock(spec=QosScheduler), credit)},
        {"a": 1.0},
        Exchange(credit=True, max_delay_s=4 * PERIOD_S),
        random,
        lambda at, action: heappush(plan, (at, next(order), action)),
    )
    while plan[0][0] < 10.5 * PERIOD_S:
        now, _, action = heappop(plan)
        action(now)
    assert arrived == [3, 5, 7, 9]


def test_a_mount_that_dies_costs_at_most_one_lease() -> None:
    """Its application had 3 of 4 parts; then the other has all."""
    dies = replace(flood("a", 4, 0), segments=steady("a", inf, 20.0).segments)
    clients = [dies, flood("b", 32, 1)]
    exchange = Exchange(credit=True, max_delay_s=0.02, silent_s={"0": 20.0})
    run = simulate(clients, slos_of((3, 1)), exchange)
    assert rate(run, "b", 10.0, 20.0) == pytest.approx(0.25 * CAPACITY, rel=0.03)
    assert rate(run, "b", 20.0 + 1.5 * LEASE_S) >= 0.97 * CAPACITY


def test_the_central_part_that_dies_costs_fairness_and_no_service() -> None:
    clients = [flood("a", 4, 0), flood("b", 32, 1)]
    exchange = Exchange(credit=True, max_delay_s=0.02, silent_s={CENTRAL: 20.0})
    run = simulate(clients, slos_of((3, 1)), exchange, "fifo:depth=0")
    before = [rate(run, name, 10.0, 20.0) for name in "ab"]
    assert before[0] / before[1] == pytest.approx(3.0, rel=0.06)
    for begin_s in (20.0, 20.5, 21.0, 25.0):
        both = sum(rate(run, name, begin_s, begin_s + 3.0) for name in "ab")
        assert both >= 0.97 * CAPACITY
    assert rate(run, "b", 25.0) > 4 * rate(run, "a", 25.0)


def test_a_slower_storage_is_shared_too() -> None:
    clients = [flood("a", 4, 0), flood("b", 32, 1)]
    server = ServerSpec(2 * CAPACITY, changes=((15.0, 0.5),))
    exchange = Exchange(credit=True, max_delay_s=0.02)
    run = simulate(clients, slos_of((3, 1)), exchange, server=server)
    rates = [rate(run, name, 25.0) for name in "ab"]
    assert sum(rates) >= 0.97 * CAPACITY
    assert rates[0] / rates[1] == pytest.approx(3.0, rel=0.06)


@pytest.mark.parametrize("processes", [(4, 32), (32, 4)])
def test_a_storage_that_needs_several_requests_is_fully_used(
    processes: tuple[int, int],
) -> None:
    """Alone, the search for the depth of each mount would be content with one."""
    clients = [flood("a", processes[0], 0), flood("b", processes[1], 1)]
    server = ServerSpec(CAPACITY, curve=((1.0, 0.75), (4.0, 1.0)), threads=4)
    exchange = Exchange(credit=True, max_delay_s=0.02)
    run = simulate(clients, slos_of((3, 1)), exchange, server=server)
    rates = [rate(run, name) for name in "ab"]
    assert sum(rates) >= 0.97 * CAPACITY
    assert rates[0] / rates[1] == pytest.approx(3.0, rel=0.03)


def test_the_same_seed_gives_the_same_run() -> None:
    clients = [flood("a", 4, 0), flood("b", 8, 1)]
    exchange = Exchange(credit=True, max_delay_s=0.02, loss_share=0.2)
    first, second = (simulate(clients, slos_of((3, 1)), exchange) for _ in range(2))
    assert (first.answered_s == second.answered_s).all()


@pytest.mark.parametrize("nodes", [(1, 1), (1, 2)])
def test_one_process_at_one_of_four_servers_beside_many_at_all(
    nodes: tuple[int, int],
) -> None:
    """Its server must serve it three of four times, and others make up elsewhere."""
    slos = {"one": Slo(0.19 * CAPACITY, 1.0), "many": Slo(0.76 * CAPACITY, 1.0)}
    clients = [replace(flood("one", 1, nodes[0]), servers=(0,))]
    clients += [
        replace(flood("many", 16, nodes[1]), servers=(server,)) for server in range(4)
    ]
    run = simulate_requests(
        "two-level",
        slos,
        clients,
        [ServerSpec(CAPACITY / 4)] * 4,
        UNTIL_S,
        exchange=Exchange(credit=True),
        schedulers_at="mounts",
    )
    for name, slo in slos.items():
        assert rate(run, name) >= 0.97 * slo.throughput_bytes_per_s
    assert rate(run, "one") + rate(run, "many") >= 0.97 * CAPACITY


def test_an_application_is_served_evenly_on_all_servers() -> None:
    """None of its processes waits much longer than the others.

    The totals alone would also allow that one server gives it all that it is promised.
    """
    slos = {"few": Slo(0.72 * CAPACITY, 1.0), "many": Slo(0.24 * CAPACITY, 1.0)}
    clients = [
        replace(flood(name, count, 1), servers=(server,))
        for name, count in (("few", 1), ("many", 8))
        for server in range(4)
    ]
    run = simulate_requests(
        "two-level",
        slos,
        clients,
        [ServerSpec(CAPACITY / 4)] * 4,
        UNTIL_S,
        exchange=Exchange(credit=True),
        schedulers_at="mounts",
    )
    counted = run.requests_of("many") & (run.answered_s > WARM_S)
    times_s = run.answered_s[counted] - run.issued_s[counted]
    assert percentile(list(times_s)) < 1.6 * times_s.mean()
    assert rate(run, "many") == pytest.approx(0.25 * CAPACITY, rel=0.03)


# --- Latency bounds across nodes ------------------------------------------------------

#: A chunk server of the cluster benchmark that needs four requests at once.
DEEP_SERVER = ServerSpec(3.3e6, curve=((1.0, 0.5), (2.0, 0.75), (4.0, 1.0)))
BOUND_S = 0.05
READER_SLOS = {"reader": Slo(16.5e3, BOUND_S), "writers": Slo(0.7 * 3.3e6, 2.0)}


def reader_beside_writers(exchange: Exchange) -> RequestRun:
    """One reader of 4 KiB on a node, and 4 writers of 64 KiB on each of two others."""
    reader = replace(steady("reader", 16.5e3, UNTIL_S, processes=1, size=4096), node=0)
    writers = [flood("writers", 4, node) for node in (1, 2)]
    clients = [reader, *writers]
    return simulate(clients, READER_SLOS, exchange, server=DEEP_SERVER)


def reader_p95_s(run: RequestRun, since_s: float, until_s: float) -> float:
    counted = run.requests_of("reader")
    counted &= (run.answered_s > since_s) & (run.answered_s <= until_s)
    return percentile(list(run.answered_s[counted] - run.issued_s[counted]))


def test_a_bound_holds_against_the_writers_of_other_nodes() -> None:
    """The mounts of the writers learn that the reader misses its bound.

    With the two requests at once that the bound allows, the storage does 75 % of its
    capacity: what the writers lose is beyond their promise.
    """
    exchange = Exchange(credit=True, max_delay_s=0.02, loss_share=0.05)
    run = reader_beside_writers(exchange)
    assert reader_p95_s(run, WARM_S, UNTIL_S) <= BOUND_S
    assert rate(run, "reader") >= 0.97 * 16.5e3
    assert rate(run, "writers") >= 0.97 * 0.7 * 3.3e6


def test_without_the_controller_a_bound_is_missed_and_nobody_is_slowed_down() -> None:
    """After a lease the writers use the whole storage again."""
    exchange = Exchange(credit=True, max_delay_s=0.02, silent_s={CENTRAL: 20.0})
    run = reader_beside_writers(exchange)
    assert reader_p95_s(run, WARM_S, 20.0) <= BOUND_S
    assert reader_p95_s(run, 25.0, UNTIL_S) > 2 * BOUND_S
    assert rate(run, "writers", 20.0 + 3 * LEASE_S) >= 0.97 * 3.3e6


def test_a_reader_that_dies_slows_nobody_down_after_a_lease() -> None:
    exchange = Exchange(credit=True, max_delay_s=0.02, silent_s={"0": 20.0})
    reader = replace(steady("reader", 16.5e3, 20.0, processes=1, size=4096), node=0)
    writers = [flood("writers", 4, node) for node in (1, 2)]
    clients = [reader, *writers]
    run = simulate(clients, READER_SLOS, exchange, server=DEEP_SERVER)
    assert rate(run, "writers", 20.0 + 3 * LEASE_S) >= 0.97 * 3.3e6
