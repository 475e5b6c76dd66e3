# SPDX-License-Identifier: MIT
"""Where calls run: in the loop until one has slept, then in threads for a while."""

from __future__ import annotations

import threading
import time

import pytest

trio = pytest.importorskip("trio")
pytest.importorskip("trio.testing")

from penstock.mount.filesystem.calls import Calls  # noqa: E402 - trio may be missing


def test_who_sleeps_is_not_tried_again_for_longer_and_longer() -> None:
    async def main() -> None:
        calls, loop = Calls(), threading.get_ident()

        async def in_loop() -> bool:
            return await calls.short(threading.get_ident) == loop

        for wait_s in (1.0, 2.0, 4.0, 8.0):
            assert await in_loop()
            await calls.short(time.sleep, 0.01)
            clock.jump(wait_s - 0.1)
            assert not await in_loop()
            clock.jump(0.2)
        assert await in_loop()
        # Long after the last one the first wait is short again.
        clock.jump(100.0)
        await calls.short(time.sleep, 0.01)
        clock.jump(1.1)
        assert await in_loop()

    clock = trio.testing.MockClock()
    trio.run(main, clock=clock)


def test_errors_come_from_where_they_arise() -> None:
    async def main() -> None:
        calls = Calls()
        for run in (calls.short, calls.long):
            with pytest.raises(ZeroDivisionError):
                await run(divmod, 1, 0)

    trio.run(main)
