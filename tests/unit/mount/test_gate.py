# SPDX-License-Identifier: MIT
"""The gate, on a mock clock: exact times, no real waiting."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable

import pytest

trio = pytest.importorskip("trio")
pytest.importorskip("trio.testing")

from penstock.mount.gate import Gate  # noqa: E402 - trio may be missing
from penstock.mount.limiter import SLACK_S, Limiter, Limits  # noqa: E402
from penstock.qos import Request  # noqa: E402


def run(
    body: Callable[[Gate, Limiter], Awaitable[None]], limits: Limits
) -> tuple[Gate, float]:
    """Run `body` beside a gate; return the gate and the time it took (s)."""

    async def main() -> tuple[Gate, float]:
        began = trio.current_time()
        limiter = Limiter(limits, began)
        gate = Gate(limiter)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gate.run)
            await body(gate, limiter)
            nursery.cancel_scope.cancel()
        return gate, trio.current_time() - began

    clock = trio.testing.MockClock(autojump_threshold=0)
    result: tuple[Gate, float] = trio.run(main, clock=clock)
    return result


async def move(gate: Gate, size: int, times: int = 1) -> None:
    for _ in range(times):
        request = Request("write", size)
        admitted = await gate.admit(request)
        admitted.complete(size)


def test_many_writers_move_exactly_the_limit() -> None:
    async def body(gate: Gate, limiter: Limiter) -> None:
        async with trio.open_nursery() as writers:
            for _ in range(100):
                writers.start_soon(move, gate, 1000, 10)

    gate, took = run(body, Limits(total=100e3))
    assert took == pytest.approx(10.0, abs=2 * SLACK_S)
    assert gate.tallies["write"].moved_bytes == 1_000_000
    assert gate.tallies["write"].requests == 1000
    assert gate.tallies["write"].held_up_s > 100.0


def test_without_a_limit_no_request_is_held_up() -> None:
    async def body(gate: Gate, limiter: Limiter) -> None:
        await move(gate, 1 << 30, 1000)

    gate, took = run(body, Limits())
    assert took == 0.0
    assert gate.tallies["write"].held_up_s == 0.0


def test_a_higher_limit_holds_at_once_for_requests_that_wait() -> None:
    async def body(gate: Gate, limiter: Limiter) -> None:
        async with trio.open_nursery() as writers:
            writers.start_soon(move, gate, 1000)
            await trio.sleep(1.0)
            limiter.set_limits(Limits(), trio.current_time())
            gate.dispatch()

    _, took = run(body, Limits(total=1.0))
    assert took == pytest.approx(1.0)


def test_a_closed_gate_fails_requests_that_wait_and_later_ones() -> None:
    errors: list[int | None] = []

    async def refused(gate: Gate) -> None:
        try:
            await move(gate, 1000)
        except OSError as error:
            errors.append(error.errno)

    async def body(gate: Gate, limiter: Limiter) -> None:
        async with trio.open_nursery() as writers:
            writers.start_soon(refused, gate)
            await trio.sleep(1.0)
            gate.close()
            writers.start_soon(refused, gate)

    run(body, Limits(total=1.0))
    assert errors == [errno.ENOTCONN] * 2
