# SPDX-License-Identifier: MIT
"""The request simulator: exact times, closed and open loops, stripes, same bytes."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.qos import Slo
from penstock.qos.scheduler import KernelScheduler
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import Exchange, RequestRun, simulate_requests
from penstock.workloads.clients import MB, Clients, RateSegment, saturating, steady

SLOS = {"a": Slo(10e6, 0.1)}
SERVER = ServerSpec(10e6)


def simulate(clients: list[Clients], server: ServerSpec = SERVER) -> RequestRun:
    return simulate_requests("fifo", SLOS, clients, [server], 100.0)


def test_a_capacity_change_affects_requests_in_service() -> None:
    spec = replace(SERVER, changes=((1.0, 0.5),))
    only_one = Clients("a", 1, 20 * MB, (RateSegment(0.0, 0.5, np.inf),))
    assert simulate([only_one], spec).answered_s.tolist() == [3.0]


def test_an_answer_comes_after_its_delay_and_the_server_goes_on() -> None:
    spec = replace(SERVER, delays_s=(0.1,))
    alone = simulate([saturating("a", 10.0, processes=1)], spec)
    assert alone.answered_s - alone.issued_s == pytest.approx(0.2)
    assert alone.size_bytes.sum() == pytest.approx(5e6 * 10, rel=0.03)
    both = simulate([saturating("a", 10.0, processes=2)], spec)
    assert both.size_bytes.sum() == pytest.approx(10e6 * 10, rel=0.03)


def test_delays_are_drawn_from_those_given() -> None:
    spec = replace(SERVER, delays_s=(0.1, 0.4))
    runs = [
        simulate_requests(
            "fifo", SLOS, [saturating("a", 50.0, processes=1)], [spec], 60.0, seed=seed
        )
        for seed in (1, 1, 2)
    ]
    times_s = [(run.answered_s - run.issued_s).round(6).tolist() for run in runs]
    assert set(times_s[0]) == {0.2, 0.5}
    assert times_s[0] == times_s[1] != times_s[2]


# --- Clients ------------------------------------------------------------------------


def test_a_closed_loop_waits_for_its_answers() -> None:
    """2 processes want 20 MB/s of 10, and each waits for its previous request."""
    run = simulate([steady("a", 20e6, 10.0, processes=2)])
    assert run.size_bytes.sum() == pytest.approx(10e6 * 10, rel=0.03)
    assert (run.answered_s - run.issued_s).max() == pytest.approx(0.2)


def test_requests_can_be_answered_after_the_last_one_is_issued() -> None:
    clients = [saturating("a", 10.0, processes=4), steady("a", 1e6, 10.0)]

    def run(answers_until: float) -> RequestRun:
        return simulate_requests(
            "fifo", SLOS, clients, [SERVER], 1.0, answers_until=answers_until
        )

    cut, later, whole = run(0.0), run(1.15), run(9.0)
    assert 4 <= cut.unanswered <= 5
    assert cut.unanswered > later.unanswered > whole.unanswered == 0
    assert len(whole.issued_s) == len(cut.issued_s) + cut.unanswered
    assert whole.issued_s.max() <= 1.0
    assert later.answered_s.max() <= 1.15


def test_an_open_loop_does_not_wait_for_answers() -> None:
    clients = replace(steady("a", 20e6, 9.99, processes=2), closed=False)
    run = simulate([clients])
    assert len(run.issued_s) == 200
    assert run.issued_s.max() < 10.0
    assert run.answered_s.max() == pytest.approx(20.0)


def test_clients_issue_at_the_rates_of_their_segments() -> None:
    stages = (RateSegment(0.0, 10.0, 2e6, 6e6), RateSegment(20.0, 30.0, 8e6))
    run = simulate([Clients("a", 4, MB // 10, stages)])
    for begin, wanted in ((0, 40e6), (10, 0.0), (20, 80e6)):
        between = (run.issued_s >= begin) & (run.issued_s < begin + 10)
        assert run.size_bytes[between].sum() == pytest.approx(wanted, rel=0.05)


def test_a_striped_request_is_answered_when_its_last_part_is_complete() -> None:
    clients = Clients(
        "a", 1, 3 * MB, (RateSegment(0.0, 0.1, np.inf),), servers=(0, 1), stripe=MB
    )
    assert clients.pieces(0) == {0: 2 * MB, 1: MB}
    assert clients.pieces(1) == {1: 2 * MB, 0: MB}
    run = simulate_requests("fifo", SLOS, [clients], [SERVER, SERVER], 10.0)
    assert run.answered_s.tolist() == [pytest.approx(0.2)]
    assert run.size_bytes.tolist() == [3 * MB]


def test_whole_requests_go_to_the_servers_in_turn() -> None:
    clients = Clients("a", 1, MB, (RateSegment(0.0, 1.0, 1e6),), servers=(2, 0))
    assert [clients.pieces(n) for n in range(3)] == [{2: MB}, {0: MB}, {2: MB}]


def test_impossible_clients_are_refused() -> None:
    with pytest.raises(InputError, match="no server 3"):
        simulate([replace(saturating("a", 1.0), servers=(3,))])
    with pytest.raises(InputError, match="no clients"):
        simulate([])
    with pytest.raises(InputError, match="needs a finite rate"):
        replace(saturating("a", 1.0), closed=False)
    with pytest.raises(InputError, match="jitter"):
        replace(saturating("a", 1.0), jitter=2.0)
    with pytest.raises(InputError, match="stripe"):
        replace(saturating("a", 1.0), stripe=0)
    with pytest.raises(InputError, match="no process"):
        saturating("a", 1.0, processes=0)
    with pytest.raises(InputError, match="rate"):
        RateSegment(0.0, 1.0, 0.0)
    with pytest.raises(InputError, match="is empty"):
        RateSegment(1.0, 1.0, 1.0)


@pytest.mark.parametrize("closed", [True, False])
def test_requests_without_a_size_would_never_end(closed: bool) -> None:
    with pytest.raises(InputError, match="no process, size, server or segment"):
        Clients("a", 1, 0, (RateSegment(0.0, 1.0, 1e3),), closed=closed)


@pytest.mark.parametrize(
    "rates", [(1.0, np.inf), (np.inf, 1.0), (1.0, 0.0), (1.0, np.nan), (np.nan, None)]
)
def test_a_rate_that_changes_is_finite(rates: tuple[float, float | None]) -> None:
    with pytest.raises(InputError, match="the rate changes from"):
        RateSegment(0.0, 1.0, *rates)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold_bytes", -5.0),
        ("threshold_bytes", 0.0),
        ("threshold_bytes", np.nan),
        ("max_delay_s", -1.0),
        ("max_delay_s", np.inf),
        ("loss_share", 2.0),
        ("loss_share", np.nan),
    ],
)
def test_impossible_exchanges_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"exchange.{name}: {value!r} is out of range"):
        Exchange(**{name: value})  # type: ignore[arg-type]


def test_the_layout_factor_counts_the_servers_of_all_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layouts: list[dict[str, int]] = []
    monkeypatch.setattr(
        KernelScheduler, "set_layout", lambda _, factors: layouts.append(factors)
    )
    stages = (RateSegment(0.0, 0.1, 1e6),)
    clients = [
        Clients("a", 1, MB, stages, servers=(0, 1)),
        Clients("a", 1, MB, stages, servers=(1, 2)),
        Clients("b", 1, MB, stages, servers=(2,)),
    ]
    by_layout = Exchange(layout=True)
    simulate_requests("sfq", SLOS, clients, [SERVER] * 3, 1.0, exchange=by_layout)
    assert layouts == [{"a": 3, "b": 1}] * 3


# --- Same seed, same bytes ----------------------------------------------------------


def noisy(seed: int) -> RequestRun:
    slos = {"a": Slo(20e6, 0.1), "b": Slo(20e6, 0.3)}
    clients = [
        replace(steady("a", 30e6, 5.0), jitter=1.0, servers=(0, 1), stripe=MB // 2),
        replace(steady("b", 30e6, 5.0), jitter=1.0, servers=(1,)),
    ]
    exchange = Exchange(threshold_bytes=3e6, max_delay_s=0.3, loss_share=0.3)
    servers = [ServerSpec(30e6), ServerSpec(20e6, threads=4)]
    return simulate_requests(
        "two-level", slos, clients, servers, 6.0, exchange=exchange, seed=seed
    )


def test_same_seed_same_bytes() -> None:
    first, again, other = noisy(3), noisy(3), noisy(4)
    for field in fields(first):
        column, same = (getattr(run, field.name) for run in (first, again))
        if field.name == "depths":
            assert [d.tobytes() for d in column] == [d.tobytes() for d in same]
        elif isinstance(column, np.ndarray):
            assert column.tobytes() == same.tobytes()
        else:
            assert column == same
    assert first.answered_s.tobytes() != other.answered_s.tobytes()


def test_no_request_is_faster_than_the_server() -> None:
    run = noisy(1)
    assert (run.answered_s - run.issued_s >= MB / 2 / 30e6 - 1e-9).all()
    assert run.answered_s.max() <= 6.0
