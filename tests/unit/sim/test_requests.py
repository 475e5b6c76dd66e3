# SPDX-License-Identifier: MIT
"""Requests one by one: exact times, closed and open loops, stripes, same bytes."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.qos import Request, Slo
from penstock.qos.sfq import StartTags
from penstock.sim.requests import Exchange, RequestRun, simulate_requests
from penstock.sim.requests_server import Server, ServerSpec
from penstock.workloads.clients import MB, Clients, RateSegment, saturating, steady

SLOS = {"a": Slo(10e6, 0.1)}
SERVER = ServerSpec(10e6)


def simulate(clients: list[Clients], server: ServerSpec = SERVER) -> RequestRun:
    return simulate_requests("fifo", SLOS, clients, [server], 100.0)


# --- A server -----------------------------------------------------------------------


def times(spec: ServerSpec, *arrivals: tuple[float, int]) -> list[tuple[int, float]]:
    """Return (size, when it is done) in the order of completion."""
    server, done, left = Server(spec), [], list(arrivals)
    while left or server.next < np.inf:
        if left and left[0][0] < server.next:
            now, size = left.pop(0)
            server.put(Request("write", size), now)
        else:
            now = server.next
            done.append((server.take(now).size, now))
    return done


def test_one_thread_serves_one_after_the_other() -> None:
    done = times(SERVER, (0.0, 10 * MB), (0.5, 5 * MB))
    assert done == [(10 * MB, 1.0), (5 * MB, 1.5)]


def test_many_threads_share() -> None:
    """The small one has half of 10 MB/s from 0.5 s on: done at 0.5 + 2 x 0.2."""
    spec = replace(SERVER, threads=np.inf)
    done = times(spec, (0.0, 10 * MB), (0.5, 2 * MB))
    assert done[0] == (2 * MB, pytest.approx(0.9))
    assert done[1] == (10 * MB, pytest.approx(1.2))


def test_overhead_takes_time() -> None:
    assert times(replace(SERVER, overhead=5e6), (0.0, 5 * MB)) == [(5 * MB, 1.0)]


def test_the_curve_says_how_fast_many_are_served() -> None:
    spec = replace(SERVER, curve=((1.0, 0.5), (3.0, 1.0)))
    assert [spec.rate(n, 0.0) for n in (1, 2, 3, 9)] == [5e6, 7.5e6, 10e6, 10e6]
    assert times(spec, (0.0, 5 * MB)) == [(5 * MB, 1.0)]


def test_a_change_of_capacity_counts_from_then_on() -> None:
    spec = replace(SERVER, changes=((1.0, 0.5),))
    only_one = Clients("a", 1, 20 * MB, (RateSegment(0.0, 0.5, np.inf),))
    assert simulate([only_one], spec).answered.tolist() == [3.0]


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": 0.0},
        {"threads": 0.5},
        {"overhead": -1.0},
        {"curve": ()},
        {"curve": ((2.0, 1.0), (1.0, 1.0))},
        {"curve": ((1.0, 0.0),)},
        {"curve": ((1.0, np.nan),)},
        {"overhead": np.inf},
        {"changes": ((10.0, 0.5), (5.0, 1.0))},
        {"changes": ((1.0, np.nan),)},
        {"changes": ((1.0, 0.0),)},
        {"changes": ((-1.0, 0.5),)},
        {"changes": ((np.nan, 0.5),)},
    ],
)
def test_impossible_servers_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(SERVER, **change)  # type: ignore[arg-type]


# --- Clients ------------------------------------------------------------------------


def test_a_closed_loop_waits_for_its_answers() -> None:
    """Asked for: 20 MB/s, there: 10; each of 2 processes waits for its last one."""
    run = simulate([steady("a", 20e6, 10.0, processes=2)])
    assert run.size.sum() == pytest.approx(10e6 * 10, rel=0.03)
    assert (run.answered - run.issued).max() == pytest.approx(0.2)


def test_an_open_loop_does_not() -> None:
    clients = replace(steady("a", 20e6, 9.99, processes=2), closed=False)
    run = simulate([clients])
    assert len(run.issued) == 200
    assert run.issued.max() < 10.0
    assert run.answered.max() == pytest.approx(20.0)


def test_rates_are_those_asked_for() -> None:
    stages = (RateSegment(0.0, 10.0, 2e6, 6e6), RateSegment(20.0, 30.0, 8e6))
    run = simulate([Clients("a", 4, MB // 10, stages)])
    for begin, wanted in ((0, 40e6), (10, 0.0), (20, 80e6)):
        between = (run.issued >= begin) & (run.issued < begin + 10)
        assert run.size[between].sum() == pytest.approx(wanted, rel=0.05)


def test_a_striped_request_is_answered_with_its_last_piece() -> None:
    clients = Clients(
        "a", 1, 3 * MB, (RateSegment(0.0, 0.1, np.inf),), servers=(0, 1), stripe=MB
    )
    assert clients.pieces(0) == {0: 2 * MB, 1: MB}
    assert clients.pieces(1) == {1: 2 * MB, 0: MB}
    run = simulate_requests("fifo", SLOS, [clients], [SERVER, SERVER], 10.0)
    assert run.answered.tolist() == [pytest.approx(0.2)]
    assert run.size.tolist() == [3 * MB]


def test_whole_requests_go_to_one_server_after_the_other() -> None:
    clients = Clients("a", 1, MB, (RateSegment(0.0, 1.0, 1e6),), servers=(2, 0))
    assert [clients.pieces(n) for n in range(3)] == [{2: MB}, {0: MB}, {2: MB}]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="no server 3"):
        simulate([replace(saturating("a", 1.0), servers=(3,))])
    with pytest.raises(InputError, match="nobody"):
        simulate([])
    with pytest.raises(InputError, match="never ends"):
        replace(saturating("a", 1.0), closed=False)
    with pytest.raises(InputError, match="jitter"):
        replace(saturating("a", 1.0), jitter=2.0)
    with pytest.raises(InputError, match="stripe"):
        replace(saturating("a", 1.0), stripe=0)
    with pytest.raises(InputError, match="no process"):
        saturating("a", 1.0, processes=0)
    with pytest.raises(InputError, match="rate"):
        RateSegment(0.0, 1.0, 0.0)
    with pytest.raises(InputError, match="stage"):
        RateSegment(1.0, 1.0, 1.0)


@pytest.mark.parametrize("closed", [True, False])
def test_requests_without_a_size_would_never_end(closed: bool) -> None:
    with pytest.raises(InputError, match="no process, size, server or stage"):
        Clients("a", 1, 0, (RateSegment(0.0, 1.0, 1e3),), closed=closed)


@pytest.mark.parametrize(
    "rates", [(1.0, np.inf), (np.inf, 1.0), (1.0, 0.0), (1.0, np.nan), (np.nan, None)]
)
def test_a_rate_that_changes_is_finite(rates: tuple[float, float | None]) -> None:
    with pytest.raises(InputError, match="a rate of"):
        RateSegment(0.0, 1.0, *rates)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("threshold", -5.0), ("threshold", 0.0), ("threshold", np.nan)),
        *(("late", -1.0), ("late", np.inf), ("lost", 2.0), ("lost", np.nan)),
    ],
)
def test_impossible_exchanges_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"exchange.{name}: {value!r} is out of range"):
        Exchange(**{name: value})  # type: ignore[arg-type]


def test_what_is_wrong_with_a_server_is_named() -> None:
    with pytest.raises(InputError, match=r"^changes: "):
        replace(SERVER, changes=((1.0, 0.0),))
    with pytest.raises(InputError, match=r"^curve: "):
        replace(SERVER, curve=((1.0, 0.0),))


def test_an_application_lies_on_the_servers_of_all_its_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[dict[str, int]] = []
    monkeypatch.setattr(StartTags, "spread", lambda _, factors: told.append(factors))
    stages = (RateSegment(0.0, 0.1, 1e6),)
    clients = [
        Clients("a", 1, MB, stages, servers=(0, 1)),
        Clients("a", 1, MB, stages, servers=(1, 2)),
        Clients("b", 1, MB, stages, servers=(2,)),
    ]
    by_layout = Exchange(layout=True)
    simulate_requests("sfq", SLOS, clients, [SERVER] * 3, 1.0, exchange=by_layout)
    assert told == [{"a": 3, "b": 1}] * 3


# --- Same seed, same bytes ----------------------------------------------------------


def noisy(seed: int) -> RequestRun:
    slos = {"a": Slo(20e6, 0.1), "b": Slo(20e6, 0.3)}
    clients = [
        replace(steady("a", 30e6, 5.0), jitter=1.0, servers=(0, 1), stripe=MB // 2),
        replace(steady("b", 30e6, 5.0), jitter=1.0, servers=(1,)),
    ]
    exchange = Exchange(threshold=3e6, late=0.3, lost=0.3)
    servers = [ServerSpec(30e6), ServerSpec(20e6, threads=4)]
    return simulate_requests(
        "two-level", slos, clients, servers, 6.0, exchange=exchange, seed=seed
    )


def test_same_seed_same_bytes() -> None:
    first, again, other = noisy(3), noisy(3), noisy(4)
    for field in fields(first):
        mine, same = (getattr(run, field.name) for run in (first, again))
        if field.name == "depths":
            assert [d.tobytes() for d in mine] == [d.tobytes() for d in same]
        elif isinstance(mine, np.ndarray):
            assert mine.tobytes() == same.tobytes()
        else:
            assert mine == same
    assert first.answered.tobytes() != other.answered.tobytes()


def test_nothing_is_answered_before_it_can_be() -> None:
    run = noisy(1)
    assert (run.answered - run.issued >= MB / 2 / 30e6 - 1e-9).all()
    assert run.answered.max() <= 6.0
