# SPDX-License-Identifier: MIT
"""Rules for every scheduler: table row, parameters, no lost request, no starvation."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, UnknownNameError
from penstock.qos import (
    KINDS,
    MIN_COST_BYTES,
    SCHEDULERS,
    Kind,
    Request,
    Slo,
    get_scheduler,
)
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import simulate_requests
from penstock.workloads.clients import MB, Clients, saturating, steady

SLOS = {"a": Slo(2e6, 0.1), "b": Slo(1e6, 0.3)}
#: All schedulers, and the two-level scheduler as in the paper.
NAMES = [*SCHEDULERS, "two-level:credit=1,overload=send"]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_summary_in_the_table_is_the_first_line_of_the_module(name: str) -> None:
    row = SCHEDULERS[name]
    module = importlib.import_module(f"penstock.qos.{row.module}")
    assert str(module.__doc__).split("\n")[0] == row.summary


def test_names_and_parameters() -> None:
    assert get_scheduler("sfq:depth=3").label == "sfq:depth=3"
    assert get_scheduler("two-level:window=0.5").label == "two-level"
    assert get_scheduler("sfq:depth=3").make(SLOS, 0.0).depth == 3
    assert get_scheduler("fifo").make(SLOS, 0.0).depth == float("inf")
    with pytest.raises(UnknownNameError, match="two-level"):
        get_scheduler("two-levels")
    with pytest.raises(InputError, match="hold"):
        get_scheduler("two-level:overload=maybe")
    with pytest.raises(InputError, match="window"):
        get_scheduler("two-level:window=0")


def test_a_request_costs_something_even_if_it_moves_nothing() -> None:
    assert {Request(kind, 0).cost_bytes for kind in KINDS} == {MIN_COST_BYTES}
    assert Request("read", MB).cost_bytes == MB


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    script=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "stranger"]),
            st.integers(0, 4 * MB),
            st.floats(0, 0.2),
            st.booleans(),
        ),
        max_size=60,
    ),
)
def test_every_request_is_sent_once(
    name: str, script: list[tuple[str, int, float, bool]]
) -> None:
    scheduler = get_scheduler(name).make(SLOS, 5.0)
    now = 5.0
    arrived: list[Request] = []
    sent: list[Request] = []
    done: list[Request] = []
    served: dict[str, int] = {}
    for application, size, gap, completes in script:
        now += gap
        request = Request("write", size, application)
        arrived.append(request)
        scheduler.arrive(request, now)
        sent += scheduler.dispatch(now)
        if completes and len(sent) > len(done):
            request = sent[len(done)]
            done.append(request)
            scheduler.complete(request, request.size_bytes // 2, now)
            charge(served, request, request.size_bytes // 2)
            sent += scheduler.dispatch(now)
        assert scheduler.outstanding == len(sent) - len(done)
        assert scheduler.waiting == len(arrived) - len(sent)
        assert scheduler.outstanding <= max(scheduler.depth, 8)
        assert scheduler.wake_s > now
    while len(done) < len(arrived):
        now = min(scheduler.wake_s, now + 0.01)
        for request in sent[len(done) :]:
            done.append(request)
            scheduler.complete(request, request.size_bytes, now)
            charge(served, request, request.size_bytes)
        sent += scheduler.dispatch(now)
        assert now < 1000, "a request is never sent"
    assert {id(r) for r in sent} == {id(r) for r in arrived}
    assert len(sent) == len(arrived)
    assert scheduler.dispatch(now + 1) == []
    assert scheduler.wake_s == float("inf")
    assert scheduler.served_bytes == served


def charge(served: dict[str, int], request: Request, moved: int) -> None:
    """Add the moved bytes of a request, at least 4096, to the totals."""
    before = served.get(request.application, 0)
    served[request.application] = before + max(moved, 4096)


@pytest.mark.parametrize("name", NAMES)
def test_the_reported_service_counts_only_what_was_used(name: str) -> None:
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    calls: tuple[tuple[Kind, int, int], ...] = (
        ("write", 10**6, 0),  # It failed.
        ("read", 10**6, 250_000),  # End of file.
        ("write", 10**6, 10**6),
        ("sync", 0, 0),
    )
    for kind, size, moved in calls:
        scheduler.arrive(Request(kind, size, "a"), 0.0)
        (request,) = scheduler.dispatch(0.0)
        scheduler.complete(request, moved, 0.0)
    assert scheduler.served_bytes == {"a": 4096 + 250_000 + 10**6 + 4096}


def overload(until: float) -> tuple[Clients, ...]:
    """Return two applications that issue twice the capacity, and one without an SLO."""
    return (
        replace(steady("a", 60e6, until), jitter=0.5),
        replace(steady("b", 40e6, until), jitter=0.5),
        saturating("stranger", until, processes=2),
    )


@pytest.mark.parametrize("name", NAMES)
def test_no_application_starves(name: str) -> None:
    """Every application gets service under overload, and all requests are answered."""
    until = 30.0
    slos = {"a": Slo(40e6, 0.1), "b": Slo(20e6, 0.3)}
    run = simulate_requests(
        name, slos, overload(until), [ServerSpec(50e6)], until + 60.0
    )
    assert run.unanswered == 0
    times_s = run.answered_s - run.issued_s
    for application in ("a", "b", "stranger"):
        answered = run.requests_of(application) & (run.answered_s < until)
        assert run.size_bytes[answered].sum() >= 2 * MB
        assert times_s[run.requests_of(application)].max() < until + 20
    total = run.size_bytes[run.answered_s < until].sum()
    assert total >= 0.97 * until * 50e6


@pytest.mark.parametrize("name", NAMES)
def test_slos_can_be_changed(name: str) -> None:
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    scheduler.arrive(Request("write", MB, "a"), 0.0)
    scheduler.set_slos({"c": Slo(1e6, 0.2)}, 1.0)
    scheduler.arrive(Request("write", MB, "c"), 1.0)
    sent = scheduler.dispatch(1.0)
    for request in sent:
        scheduler.complete(request, MB, 1.1)
    assert len(sent + scheduler.dispatch(1.1)) == 2
