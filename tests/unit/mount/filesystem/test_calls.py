# SPDX-License-Identifier: MIT
"""Where calls run: in the event loop until one has slept, then in threads."""

from __future__ import annotations

import threading
import time

import pytest

trio = pytest.importorskip("trio")
pytest.importorskip("trio.testing")

from penstock.mount.filesystem.calls import CallRunner  # noqa: E402 - trio may be missing


def test_each_call_that_sleeps_doubles_the_pause() -> None:
    async def main() -> None:
        calls, loop = CallRunner(), threading.get_ident()

        async def in_loop() -> bool:
            return await calls.inline(threading.get_ident) == loop

        for wait_s in (1.0, 2.0, 4.0, 8.0):
            assert await in_loop()
            await calls.inline(time.sleep, 0.01)
            clock.jump(wait_s - 0.1)
            assert not await in_loop()
            clock.jump(0.2)
        assert await in_loop()
        # Long after the last pause the next one is short again.
        clock.jump(100.0)
        await calls.inline(time.sleep, 0.01)
        clock.jump(1.1)
        assert await in_loop()

    clock = trio.testing.MockClock()
    trio.run(main, clock=clock)


def test_errors_of_a_call_are_passed_on() -> None:
    async def main() -> None:
        calls = CallRunner()
        for run in (calls.inline, calls.in_thread):
            with pytest.raises(ZeroDivisionError):
                await run(divmod, 1, 0)

    trio.run(main)
