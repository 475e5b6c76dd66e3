# SPDX-License-Identifier: MIT
"""What is heard and the decision on it have one time: ties of the model stay ties."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pytest

from penstock.live.control.coordinator import CoordinatorOutput
from penstock.live.daemon import control_loop as hub
from penstock.live.daemon.control_loop import ControlLoop
from penstock.live.wire.messages import AgentHello
from support.waiting import LIMIT_S


class _Times:
    """A coordinator that only notes when it is told something."""

    def __init__(self) -> None:
        self.heard: list[float] = []
        self.settled: list[float] = []
        self.failing: set[int] = set()

    def hear(self, _agent: str, _message: AgentHello, now: float) -> None:
        self.heard.append(now)

    def settle(self, now: float) -> CoordinatorOutput:
        self.settled.append(now)
        if len(self.settled) in self.failing:
            raise ZeroDivisionError
        return CoordinatorOutput([], inf, {}, set())


def test_messages_and_their_decision_have_one_time() -> None:
    times: Any = _Times()

    async def run() -> None:
        it = ControlLoop(times, None)
        for _ in range(2):
            it.hear("a", AgentHello([]))
            it.hear("b", AgentHello([]))
            await asyncio.sleep(0.01)
        it.close()

    asyncio.run(run())
    first, second = times.settled
    assert times.heard == [first, first, second, second]
    assert first < second


def test_a_decision_that_is_lost_is_taken_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hub, "_AGAIN_S", 0.001)
    times: Any = _Times()
    times.failing = {1, 2}

    async def run() -> None:
        it = ControlLoop(times, None)
        it.hear("a", AgentHello([]))
        while len(times.settled) < 3:
            await asyncio.sleep(0.001)
        it.close()

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))
    assert [record.message for record in caplog.records] == ["a decision was lost"] * 2
