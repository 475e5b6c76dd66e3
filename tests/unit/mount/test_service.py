# SPDX-License-Identifier: MIT
"""Requests in the order of a scheduler, within a limit, on a clock that jumps.

The same arrivals go through the live parts (gate, event loop) and through a bare loop
over the same pure objects: same decisions at the same times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

trio = pytest.importorskip("trio")
pytest.importorskip("trio.testing")

from penstock.errors import InputError  # noqa: E402 - trio may be missing
from penstock.mount.cascade import Cascade  # noqa: E402
from penstock.mount.limiter import SLACK_S, Limiter, Limits  # noqa: E402
from penstock.mount.objectives import objectives_from  # noqa: E402
from penstock.mount.service import Service  # noqa: E402
from penstock.qos import KINDS, SCHEDULERS, Request, get_scheduler  # noqa: E402

RATE = 1e6
LIMITS = Limits(total=RATE)
START_S = 5.0


def document(scheduler: str) -> dict[str, Any]:
    return {
        "scheduler": scheduler,
        "default": "bulk",
        "applications": {
            "tight": {"throughput": 0.2 * RATE, "latency": 0.05},
            "bulk": {"throughput": 0.7 * RATE, "latency": 2.0},
        },
    }


def on_jumping_clock(main: Callable[[], Awaitable[Any]]) -> Any:
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def service(scheduler: str, limits: Limits = LIMITS) -> Service:
    return Service(limits, objectives_from(document(scheduler)), trio.current_time())


# --- Live and simulated -----------------------------------------------------------

#: Time after the start (ms), application, kind, size.
ARRIVALS = st.lists(
    st.tuples(
        st.integers(0, 3000),
        st.sampled_from(["tight", "bulk", "unknown"]),
        st.sampled_from(["read", "write", "sync"]),
        st.integers(0, 200_000),
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda arrival: arrival[0],
)
Arrival = tuple[int, str, Any, int]
#: Times (ms) and sizes with which it matters when a window was closed.
WINDOWS = ((0, 0), (501, 32_200), (1000, 0), (1560, 20_701), (1561, 0))
#: What the storage behind the limit takes (s).
SERVICE_S = 0.000_3


def request_of(arrival: Arrival) -> Request:
    _, application, kind, size = arrival
    return Request(kind, 0 if kind == "sync" else size, application)


def live(scheduler: str, arrivals: list[Arrival]) -> list[tuple[int, float]]:
    """Return in which order and when requests go through the parts of a mount."""
    gone: list[tuple[int, float]] = []

    async def client(service: Service, number: int) -> None:
        request = request_of(arrivals[number])
        await trio.sleep_until(START_S + arrivals[number][0] / 1e3)
        came = await service.gate.enter(request)
        gone.append((number, trio.current_time()))
        await trio.sleep(SERVICE_S)
        service.gate.leave(request, request.size_bytes, came)

    async def main() -> None:
        await trio.sleep_until(START_S)
        made = service(scheduler)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.gate.run)
            async with trio.open_nursery() as clients:
                for number in range(len(arrivals)):
                    clients.start_soon(client, made, number)
            nursery.cancel_scope.cancel()

    on_jumping_clock(main)
    return gone


def simulated(scheduler: str, arrivals: list[Arrival]) -> list[tuple[int, float]]:
    """Return the same from a loop over events, without clock or gate."""
    objectives = objectives_from(document(scheduler))
    cascade = Cascade(
        objectives.scheduler.make(objectives.slos, START_S), Limiter(LIMITS, START_S)
    )
    events: list[tuple[float, int, bool]] = []
    requests = [request_of(arrival) for arrival in arrivals]
    numbers = {request: number for number, request in enumerate(requests)}
    for number, arrival in enumerate(arrivals):
        heappush(events, (START_S + arrival[0] / 1e3, number, True))
    gone: list[tuple[int, float]] = []
    while len(gone) < len(arrivals):
        now = min(cascade.wake_s, events[0][0] if events else inf)
        if events and events[0][0] <= now:
            _, number, comes = heappop(events)
            request = requests[number]
            if comes:
                cascade.arrive(request, now)
            else:
                cascade.complete(request, request.size_bytes, now)
        for request in cascade.dispatch(now):
            gone.append((numbers[request], now))
            heappush(events, (now + SERVICE_S, numbers[request], False))
    return gone


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=40, deadline=None)
@given(arrivals=ARRIVALS)
@example(arrivals=[(t, "tight", "read", size) for t, size in WINDOWS])
def test_live_and_simulated_decide_alike(
    scheduler: str, arrivals: list[Arrival]
) -> None:
    found, expected = live(scheduler, arrivals), simulated(scheduler, arrivals)
    assert sorted(number for number, _ in found) == list(range(len(arrivals)))
    assert dict(found) == pytest.approx(dict(expected), abs=1e-6)


# --- Shares and limits ------------------------------------------------------------


async def writer(service: Service, application: str, size: int, times: int) -> None:
    for _ in range(times):
        request = Request("write", size, application)
        came = await service.gate.enter(request)
        service.gate.leave(request, size, came)


def test_the_total_is_that_of_the_limit_whoever_schedules() -> None:
    for scheduler in SCHEDULERS:

        async def main(scheduler: str = scheduler) -> float:
            made = service(scheduler)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(made.gate.run)
                began: float = trio.current_time()
                async with trio.open_nursery() as writers:
                    for name in ("tight", "bulk", "unknown"):
                        for _ in range(5):
                            writers.start_soon(writer, made, name, 10_000, 20)
                took: float = trio.current_time() - began
                nursery.cancel_scope.cancel()
                return took

        took = on_jumping_clock(main)
        assert took == pytest.approx(15 * 20 * 10_000 / RATE, abs=2 * SLACK_S)


def test_without_a_limit_all_kinds_pass_at_once() -> None:
    async def main() -> None:
        made = service("sfq:depth=1", Limits())
        for kind in KINDS:
            request = Request(kind, 10**9, "tight")
            came = await made.gate.enter(request)
            made.gate.leave(request, 10**9, came)
        assert trio.current_time() == 0.0

    on_jumping_clock(main)


def test_syncs_take_their_turn_but_no_bandwidth() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        made = service("sfq:depth=1")

        async def one(kind: Any, size: int) -> None:
            request = Request(kind, size, "bulk")
            came = await made.gate.enter(request)
            await trio.sleep(0.001)
            order.append(kind)
            made.gate.leave(request, size, came)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.gate.run)
            async with trio.open_nursery() as clients:
                clients.start_soon(one, "write", 1_000_000)
                await trio.sleep(0.1)
                clients.start_soon(one, "sync", 0)
            nursery.cancel_scope.cancel()
        assert trio.current_time() == pytest.approx(1.002, abs=2 * SLACK_S)
        return order

    assert on_jumping_clock(main) == ["write", "sync"]


# --- What is told and changed -----------------------------------------------------


def test_how_applications_are_served() -> None:
    async def main() -> None:
        made = service("sfq")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.gate.run)
            async with trio.open_nursery() as writers:
                writers.start_soon(writer, made, "bulk", 10_000, 100)
                await trio.sleep(0.99)
                writers.start_soon(writer, made, "bulk", 500_000, 1)
                writers.start_soon(writer, made, "tight", 500_000, 1)
                await trio.sleep(0.02)
                order = made.order()
                assert order is not None
                told = {line.name: line for line in order.applications}
                assert told["tight"].queued == 1
                assert told["bulk"].bytes_per_s == pytest.approx(RATE, rel=0.05)
                assert told["bulk"].p95_s == pytest.approx(0.01, rel=0.05)
                assert told["tight"].p95_s is None
                assert order.scheduler == "sfq"
                assert order.depth == 8
            nursery.cancel_scope.cancel()

    on_jumping_clock(main)


def test_promises_change_and_meters_go_on() -> None:
    async def main() -> None:
        made = service("edf")
        await writer(made, "bulk", 0, 3)
        changed = document("edf")
        del changed["applications"]["tight"]
        changed["applications"]["new"] = {"throughput": 1, "latency": 9}
        changed["applications"]["bulk"]["latency"] = 7
        objectives = made.promise(changed)
        assert objectives.present("tight") == "bulk"
        order = made.order()
        assert order is not None
        told = {line.name: (line.latency, line.requests) for line in order.applications}
        assert told == {"bulk": (7.0, 3), "new": (9.0, 0)}

    on_jumping_clock(main)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"scheduler": "fifo"}, "scheduler: cannot be changed"),
        ({"exchange": {}}, "exchange: cannot be changed"),
        ({"default": "no"}, "unknown application"),
    ],
)
def test_what_cannot_be_promised_changes_nothing(
    changes: dict[str, Any], what: str
) -> None:
    async def main() -> None:
        made = service("edf")
        before = made.objectives
        with pytest.raises(InputError, match=what):
            made.promise(document("edf") | changes)
        assert made.objectives is before
        with pytest.raises(InputError, match="without --slo"):
            Service(LIMITS, None, 0.0).promise(document("edf"))

    on_jumping_clock(main)


def test_nothing_starves() -> None:
    """A lone request of each application is answered, however much others issue."""
    for scheduler in SCHEDULERS:

        async def main(scheduler: str = scheduler) -> None:
            made = service(scheduler)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(made.gate.run)
                for name in ("tight", "bulk"):
                    for _ in range(20):
                        nursery.start_soon(writer, made, name, 50_000, 10**6)
                await trio.sleep(5.0)
                with trio.fail_after(60.0):
                    await writer(made, "unknown", 50_000, 1)
                nursery.cancel_scope.cancel()

        on_jumping_clock(main)


def test_every_scheduler_is_found_by_name() -> None:
    assert {get_scheduler(name).name for name in SCHEDULERS} == set(SCHEDULERS)
