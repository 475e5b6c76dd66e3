# SPDX-License-Identifier: MIT
"""Every scheduler decides the same, interpreted and as machine code called by C.

One random sequence of requests, reports, credit, caps and new SLOs goes to two
schedulers: to one as
the simulator drives it, with its kernels interpreted; to the other through the function
pointers that a mount hands to its data path, in a thread of its own.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from ctypes import CFUNCTYPE, c_double, c_int64, c_void_p
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.qos import ApplicationUse, Credit, Kind, Request, Slo, get_scheduler
from penstock.qos.scheduler import KernelScheduler
from penstock.workloads.clients import MB

NAMES = (
    "fifo:depth=3",
    "sfq:depth=2",
    "edf:depth=2",
    "two-level:window=0.05",
    "two-level:window=0.05,overload=send",
    "penstock.qos.metadata:depth=3",
)
APPLICATIONS = ("a", "b", "c", "stranger")
SLOS = {"a": Slo(4e6, 0.05), "b": Slo(2e6, 0.2), "c": Slo(1e6, 0.2)}
OTHER_SLOS = {"a": Slo(1e6, 0.1), "b": Slo(9e6, 0.02)}

_ARRIVE = CFUNCTYPE(c_int64, c_void_p, c_int64, c_int64, c_int64, c_double)
_NEXT = CFUNCTYPE(c_int64, c_void_p, c_double)
_COMPLETE = CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_double)
_WAKE = CFUNCTYPE(c_double, c_void_p)


class Step(NamedTuple):
    """A request arrives, others complete, and perhaps the control plane acts."""

    application: str
    size_bytes: int
    gap_s: float
    completed: int
    control: int


class Answer(NamedTuple):
    """What a scheduler says after a step."""

    sent: list[int]
    wake_s: float
    depth: float
    served_bytes: dict[str, int]
    used: dict[str, ApplicationUse]


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(APPLICATIONS),
        st.sampled_from((0, 4096, 65_536, MB)),
        st.floats(0, 0.1),
        st.integers(0, 3),
        st.integers(0, 20),
    ),
    min_size=30,
    max_size=120,
)


def request_of(name: str, step: Step, number: int) -> Request:
    """Return a read or a write; for metadata an operation, which may be urgent."""
    is_large = step.size_bytes >= MB
    if name.startswith("penstock.qos.metadata"):
        return Request("metadata", 0, step.application, number, is_urgent=is_large)
    kind: Kind = "write" if is_large else "read"
    return Request(kind, step.size_bytes, step.application, number)


def kind_number(name: str, step: Step) -> int:
    """Return the kind as the data path calls it: enum kind of gate.h."""
    is_large = step.size_bytes >= MB
    if name.startswith("penstock.qos.metadata"):
        return 4 if is_large else 3
    return 1 if is_large else 0


def new_scheduler(name: str) -> KernelScheduler:
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    assert isinstance(scheduler, KernelScheduler)
    return scheduler


def control(scheduler: KernelScheduler, step: Step, total: int, now: float) -> None:
    """Report service elsewhere, set rates or caps, or replace the SLOs, sometimes."""
    if step.control in (1, 2, 3):
        reported = dict.fromkeys(APPLICATIONS[: step.control], total)
        scheduler.record_remote_service("other", reported, now)
    elif step.control == 5:
        scheduler.share_storage(now + 0.2, total % 7 / 4)
    elif step.control == 4:
        scheduler.set_slos(OTHER_SLOS if total % 2 else SLOS, now)
    elif step.control in (6, 7, 8):
        rates = dict.fromkeys(APPLICATIONS[: step.control - 6], 1e5 + total / 10)
        parts = dict.fromkeys(rates, 0.5 + total % 3 / 4)
        scheduler.set_credit(Credit(rates, parts, total % 5 / 2), 0.5, now)
    elif step.control == 9:
        scheduler.set_caps({"b": 2e6, "stranger": 1e5} if total % 2 else {}, now)


def answer(
    scheduler: KernelScheduler, sent: list[int], wake_s: float, now: float
) -> Answer:
    served = dict(scheduler.served_bytes)
    return Answer(sent, wake_s, scheduler.depth, served, scheduler.use(now))


def simulated(name: str, script: list[Step]) -> list[Answer]:
    """Return the answers of interpreted kernels, driven by the methods."""
    scheduler = new_scheduler(name)
    scheduler.run_interpreted()
    now, answers = 0.0, []
    at_storage: list[Request] = []
    for number, step in enumerate(script):
        now += step.gap_s
        request = request_of(name, step, number)
        scheduler.arrive(request, now)
        sent = scheduler.dispatch(now)
        control(scheduler, step, 100_000 * number, now)
        sent += scheduler.dispatch(now)
        at_storage += sent
        done, at_storage = at_storage[: step.completed], at_storage[step.completed :]
        for request in done:
            scheduler.complete(request, request.size_bytes // 2, now)
            more = scheduler.dispatch(now)
            sent, at_storage = sent + more, at_storage + more
        pids = [request.pid for request in sent]
        answers.append(answer(scheduler, pids, scheduler.wake_s, now))
    return answers


def live(name: str, script: list[Step]) -> list[Answer]:
    """Return the answers of the machine code, called as the data path calls it."""
    scheduler = new_scheduler(name)
    pointers = scheduler.pointers()
    table = pointers.state
    arrive, send_next = _ARRIVE(pointers.arrive), _NEXT(pointers.next_request)
    complete, wake_s = _COMPLETE(pointers.complete), _WAKE(pointers.wake_s)
    requests: dict[int, tuple[int, int]] = {}
    now, answers = 0.0, []
    at_storage: list[int] = []

    def dispatch() -> list[int]:
        sent = []
        while (slot := send_next(table, now)) >= 0:
            at_storage.append(slot)
            sent.append(requests[slot][0])
        return sent

    for number, step in enumerate(script):
        now += step.gap_s
        index = scheduler.index_of(step.application)
        slot = arrive(table, index, kind_number(name, step), step.size_bytes, now)
        requests[slot] = (number, step.size_bytes)
        pids = dispatch()
        control(scheduler, step, 100_000 * number, now)
        pids += dispatch()
        done = at_storage[: step.completed]
        del at_storage[: step.completed]
        for slot in done:
            complete(table, slot, requests.pop(slot)[1] // 2, now)
            pids += dispatch()
        answers.append(answer(scheduler, pids, wake_s(table), now))
    assert scheduler.refused == 0
    return answers


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(script=steps)
def test_simulated_and_live_schedulers_take_the_same_decisions(
    name: str, script: list[Step]
) -> None:
    expected = simulated(name, script)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(live, name, script).result() == expected
