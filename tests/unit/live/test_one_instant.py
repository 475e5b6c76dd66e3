# SPDX-License-Identifier: MIT
"""What is heard and the decision on it have one time: ties of the model stay ties."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

from penstock.live.coordinator import Outcome
from penstock.live.messages import Hello
from penstock.live.server import Hub


class _Times:
    """A coordinator that only notes when it is told something."""

    def __init__(self) -> None:
        self.heard: list[float] = []
        self.settled: list[float] = []

    def hear(self, _agent: str, _message: Hello, now: float) -> None:
        self.heard.append(now)

    def settle(self, now: float) -> Outcome:
        self.settled.append(now)
        return Outcome([], inf, {})


def test_messages_and_their_decision_have_one_time() -> None:
    times: Any = _Times()

    async def run() -> None:
        hub = Hub(times, None)
        for _ in range(2):
            hub.hear("a", Hello([]))
            hub.hear("b", Hello([]))
            await asyncio.sleep(0.01)
        hub.close()

    asyncio.run(run())
    first, second = times.settled
    assert times.heard == [first, first, second, second]
    assert first < second
