# SPDX-License-Identifier: MIT
"""Scheduler, limiter and gate together, on a mock clock.

The same arrivals go through the live parts (gate, event loop) and through a plain event
loop over the same pure objects: both must decide the same at the same times.
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
from penstock.mount.service import MountService  # noqa: E402
from penstock.mount.slo_settings import slo_settings_from  # noqa: E402
from penstock.qos import KINDS, SCHEDULERS, Request  # noqa: E402

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


def on_mock_clock(main: Callable[[], Awaitable[Any]]) -> Any:
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def service(scheduler: str, limits: Limits = LIMITS) -> MountService:
    settings = slo_settings_from(document(scheduler))
    return MountService(limits, settings, trio.current_time())


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
#: Times (ms) and sizes for which the closing time of a window matters.
WINDOWS = ((0, 0), (501, 32_200), (1000, 0), (1560, 20_701), (1561, 0))
#: Service time of the storage behind the limit.
SERVICE_S = 0.000_3


def request_of(arrival: Arrival) -> Request:
    _, application, kind, size = arrival
    return Request(kind, 0 if kind == "sync" else size, application)


def live(scheduler: str, arrivals: list[Arrival]) -> list[tuple[int, float]]:
    """Return (number, time) of requests as the live parts send them."""
    sent: list[tuple[int, float]] = []

    async def client(service: MountService, number: int) -> None:
        request = request_of(arrivals[number])
        await trio.sleep_until(START_S + arrivals[number][0] / 1e3)
        admitted = await service.gate.admit(request)
        sent.append((number, trio.current_time()))
        await trio.sleep(SERVICE_S)
        admitted.complete(request.size_bytes)

    async def main() -> None:
        await trio.sleep_until(START_S)
        made = service(scheduler)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.gate.run)
            async with trio.open_nursery() as clients:
                for number in range(len(arrivals)):
                    clients.start_soon(client, made, number)
            nursery.cancel_scope.cancel()

    on_mock_clock(main)
    return sent


def simulated(scheduler: str, arrivals: list[Arrival]) -> list[tuple[int, float]]:
    """Return (number, time) of requests from a plain event loop, without a gate."""
    settings = slo_settings_from(document(scheduler))
    cascade = Cascade(
        settings.scheduler.make(settings.slos, START_S), Limiter(LIMITS, START_S)
    )
    events: list[tuple[float, int, bool]] = []
    requests = [request_of(arrival) for arrival in arrivals]
    numbers = {request: number for number, request in enumerate(requests)}
    for number, arrival in enumerate(arrivals):
        heappush(events, (START_S + arrival[0] / 1e3, number, True))
    sent: list[tuple[int, float]] = []
    while len(sent) < len(arrivals):
        now = min(cascade.wake_s, events[0][0] if events else inf)
        if events and events[0][0] <= now:
            _, number, is_arrival = heappop(events)
            request = requests[number]
            if is_arrival:
                cascade.arrive(request, now)
            else:
                cascade.complete(request, request.size_bytes, now)
        for request in cascade.dispatch(now):
            sent.append((numbers[request], now))
            heappush(events, (now + SERVICE_S, numbers[request], False))
    return sent


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=40, deadline=None)
@given(arrivals=ARRIVALS)
@example(arrivals=[(t, "tight", "read", size) for t, size in WINDOWS])
def test_live_and_simulated_decisions_are_equal(
    scheduler: str, arrivals: list[Arrival]
) -> None:
    actual, expected = live(scheduler, arrivals), simulated(scheduler, arrivals)
    assert sorted(number for number, _ in actual) == list(range(len(arrivals)))
    assert dict(actual) == pytest.approx(dict(expected), abs=1e-6)


# --- Shares and limits ------------------------------------------------------------


async def writer(
    service: MountService, application: str, size: int, times: int
) -> None:
    for _ in range(times):
        request = Request("write", size, application)
        admitted = await service.gate.admit(request)
        admitted.complete(size)


def test_the_total_is_the_limit_for_every_scheduler() -> None:
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

        took = on_mock_clock(main)
        assert took == pytest.approx(15 * 20 * 10_000 / RATE, abs=2 * SLACK_S)


def test_without_a_limit_all_kinds_pass_at_once() -> None:
    async def main() -> None:
        made = service("sfq:depth=1", Limits())
        for kind in KINDS:
            request = Request(kind, 10**9, "tight")
            admitted = await made.gate.admit(request)
            admitted.complete(10**9)
        assert trio.current_time() == 0.0

    on_mock_clock(main)


def test_a_sync_waits_in_the_queue_but_takes_no_bandwidth() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        made = service("sfq:depth=1")

        async def one(kind: Any, size: int) -> None:
            request = Request(kind, size, "bulk")
            admitted = await made.gate.admit(request)
            await trio.sleep(0.001)
            order.append(kind)
            admitted.complete(size)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.gate.run)
            async with trio.open_nursery() as clients:
                clients.start_soon(one, "write", 1_000_000)
                await trio.sleep(0.1)
                clients.start_soon(one, "sync", 0)
            nursery.cancel_scope.cancel()
        assert trio.current_time() == pytest.approx(1.002, abs=2 * SLACK_S)
        return order

    assert on_mock_clock(main) == ["write", "sync"]


# --- Status and changes -----------------------------------------------------------


def test_the_status_shows_the_service_of_applications() -> None:
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
                status = made.scheduler_status()
                assert status is not None
                lines = {line.name: line for line in status.applications}
                assert lines["tight"].queued == 1
                assert lines["bulk"].bytes_per_s == pytest.approx(RATE, rel=0.05)
                assert lines["bulk"].p95_s == pytest.approx(0.01, rel=0.05)
                assert lines["tight"].p95_s is None
                assert status.scheduler == "sfq"
                assert status.depth == 8
            nursery.cancel_scope.cancel()

    on_mock_clock(main)


def test_slos_can_change_while_meters_keep_their_counts() -> None:
    async def main() -> None:
        made = service("edf")
        await writer(made, "bulk", 0, 3)
        changed = document("edf")
        del changed["applications"]["tight"]
        changed["applications"]["new"] = {"throughput": 1, "latency": 9}
        changed["applications"]["bulk"]["latency"] = 7
        settings = made.set_slo(changed)
        assert settings.known_or_default("tight") == "bulk"
        status = made.scheduler_status()
        assert status is not None
        lines = {a.name: (a.latency_s, a.requests) for a in status.applications}
        assert lines == {"bulk": (7.0, 3), "new": (9.0, 0)}

    on_mock_clock(main)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheduler": "fifo"}, "scheduler: cannot be changed"),
        ({"exchange": {}}, "exchange: cannot be changed"),
        ({"default": "no"}, "unknown application"),
    ],
)
def test_a_refused_change_changes_nothing(
    changes: dict[str, Any], message: str
) -> None:
    async def main() -> None:
        made = service("edf")
        before = made.slo_settings
        with pytest.raises(InputError, match=message):
            made.set_slo(document("edf") | changes)
        assert made.slo_settings is before
        with pytest.raises(InputError, match="without --slo"):
            MountService(LIMITS, None, 0.0).set_slo(document("edf"))

    on_mock_clock(main)


def test_no_request_starves() -> None:
    """A single request is answered, however much other applications issue."""
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

        on_mock_clock(main)
