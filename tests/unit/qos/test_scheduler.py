# SPDX-License-Identifier: MIT
"""What every scheduler does: table, parameters, nothing lost, nobody starves."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, UnknownNameError
from penstock.qos import KINDS, LEAST_COST, SCHEDULERS, Request, Slo, get_scheduler
from penstock.sim.requests import simulate_requests
from penstock.sim.requests_server import ServerSpec
from penstock.workloads.clients import MB, Clients, saturating, steady

SLOS = {"a": Slo(2e6, 0.1), "b": Slo(1e6, 0.3)}
#: All schedulers, and the variant of the paper.
NAMES = [*SCHEDULERS, "two-level:credit=1,overload=send"]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_table_says_what_the_file_says(name: str) -> None:
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
    assert {Request(kind, 0).cost for kind in KINDS} == {LEAST_COST}
    assert Request("read", MB).cost == MB


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
def test_every_request_goes_once(
    name: str, script: list[tuple[str, int, float, bool]]
) -> None:
    scheduler = get_scheduler(name).make(SLOS, 5.0)
    now, came, sent, done = 5.0, [], [], []
    served: dict[str, int] = {}
    for application, size, gap, completes in script:
        now += gap
        request = Request("write", size, application)
        came.append(request)
        scheduler.arrive(request, now)
        sent += scheduler.dispatch(now)
        if completes and len(sent) > len(done):
            request = sent[len(done)]
            done.append(request)
            scheduler.complete(request, request.size // 2, now)
            charge(served, request, request.size // 2)
            sent += scheduler.dispatch(now)
        assert scheduler.outstanding == len(sent) - len(done)
        assert scheduler.waiting == len(came) - len(sent)
        assert scheduler.outstanding <= max(scheduler.depth, 8)
        assert scheduler.wake > now
    while len(done) < len(came):
        now = min(scheduler.wake, now + 0.01)
        for request in sent[len(done) :]:
            done.append(request)
            scheduler.complete(request, request.size, now)
            charge(served, request, request.size)
        sent += scheduler.dispatch(now)
        assert now < 1000, "a request waits for ever"
    assert {id(r) for r in sent} == {id(r) for r in came}
    assert len(sent) == len(came)
    assert scheduler.dispatch(now + 1) == []
    assert scheduler.wake == float("inf")
    assert scheduler.served == served


def charge(served: dict[str, int], request: Request, moved: int) -> None:
    """Count what a request moved, but 4096 bytes at least."""
    before = served.get(request.application, 0)
    served[request.application] = before + max(moved, 4096)


@pytest.mark.parametrize("name", NAMES)
def test_other_servers_are_told_of_what_was_used_alone(name: str) -> None:
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    for kind, size, moved in (
        ("write", 10**6, 0),  # It failed.
        ("read", 10**6, 250_000),  # End of file.
        ("write", 10**6, 10**6),
        ("sync", 0, 0),
    ):
        scheduler.arrive(Request(kind, size, "a"), 0.0)
        (request,) = scheduler.dispatch(0.0)
        scheduler.complete(request, moved, 0.0)
    assert scheduler.served == {"a": 4096 + 250_000 + 10**6 + 4096}


def overload(until: float) -> tuple[Clients, ...]:
    """Two who issue twice what the storage gives, and one without an SLO."""
    return (
        replace(steady("a", 60e6, until), jitter=0.5),
        replace(steady("b", 40e6, until), jitter=0.5),
        saturating("stranger", until, processes=2),
    )


@pytest.mark.parametrize("name", NAMES)
def test_nobody_starves(name: str) -> None:
    """All are answered once they stop issuing, and have had service before that."""
    until = 30.0
    slos = {"a": Slo(40e6, 0.1), "b": Slo(20e6, 0.3)}
    run = simulate_requests(
        name, slos, overload(until), [ServerSpec(50e6)], until + 60.0
    )
    assert run.unanswered == 0
    for application in ("a", "b", "stranger"):
        mine = run.of(application) & (run.answered < until)
        assert run.size[mine].sum() >= 2 * MB
        assert (run.answered - run.issued)[run.of(application)].max() < until + 20
    total = run.size[run.answered < until].sum()
    assert total >= 0.97 * until * 50e6


@pytest.mark.parametrize("name", NAMES)
def test_objectives_can_be_changed(name: str) -> None:
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    scheduler.arrive(Request("write", MB, "a"), 0.0)
    scheduler.change({"c": Slo(1e6, 0.2)}, 1.0)
    scheduler.arrive(Request("write", MB, "c"), 1.0)
    sent = scheduler.dispatch(1.0)
    for request in sent:
        scheduler.complete(request, MB, 1.1)
    assert len(sent + scheduler.dispatch(1.1)) == 2
