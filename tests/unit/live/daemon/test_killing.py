# SPDX-License-Identifier: MIT
"""Nobody waits for ever for a process that cannot be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import UnavailableError
from penstock.live.daemon import companion, killing, prediction
from penstock.live.daemon.killing import kill_process, start_process
from penstock.web.pictures import what_if
from support.waiting import LIMIT_S, until_async


async def _start() -> Process:
    return await asyncio.create_subprocess_exec("sleep", "600", stdin=PIPE)


def test_a_process_is_killed() -> None:
    async def act() -> None:
        process = await _start()
        await kill_process(process)
        assert process.returncode == -signal.SIGKILL
        # One that has ended is no error.
        await kill_process(process)

    asyncio.run(act())


def test_a_process_whose_start_is_cancelled_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the watcher of asyncio reads its exit status."""
    made, read = list[int](), list[int]()

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            made.append(self.pid)

        def poll(self) -> int | None:
            read.append(self.pid)
            return super().poll()

    monkeypatch.setattr(subprocess, "Popen", Noted)

    async def act() -> None:
        start = asyncio.create_task(start_process("sleep", "600", stdin=PIPE))
        while not made:
            await asyncio.sleep(0)
        assert not start.done()
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        assert not Path(f"/proc/{made[0]}").exists()

    asyncio.run(act())
    assert len(made) == 1
    assert read == []


def test_a_start_that_is_cancelled_may_fail() -> None:
    async def act() -> None:
        start = asyncio.create_task(start_process("/nowhere/program"))
        await asyncio.sleep(0)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start

    asyncio.run(act())


async def _companion(waited_for: list[Process]) -> None:
    async with companion.companion("it", [sys.executable]):
        # Before that, the process would be killed at once.
        await until_async(lambda: bool(waited_for))


async def _predictor(_: list[Process]) -> None:
    async with prediction.ftio_predictor(lambda _job, _volume: None):
        pass


async def _simulation(_: list[Process]) -> None:
    with pytest.raises(UnavailableError, match="takes too long"):
        await what_if.ask_what_if({})


async def _killed(_: list[Process]) -> None:
    await kill_process(await _start())


@pytest.mark.parametrize("use", [_killed, _companion, _predictor, _simulation])
def test_a_process_that_cannot_be_killed_is_abandoned(
    use: Callable[[list[Process]], Awaitable[None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A process in state D ends long after it was killed."""
    killed, waited_for = list[int](), list[Process]()
    wait = Process.wait

    async def noted_wait(process: Process) -> int:
        waited_for.append(process)
        return await wait(process)

    monkeypatch.setattr(killing, "_send_kill", killed.append)
    monkeypatch.setattr(Process, "wait", noted_wait)
    monkeypatch.setattr(killing, "KILL_S", 0.01)
    monkeypatch.setattr(companion, "_STOP_S", 0.01)
    monkeypatch.setattr(what_if, "_LIMIT_S", 0.01)
    monkeypatch.setattr(prediction, "find_spec", lambda name: name)
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    async def act() -> None:
        try:
            await asyncio.wait_for(use(waited_for), LIMIT_S)
        finally:
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            # The event loop reaps it.
            await until_async(
                lambda: not any(Path(f"/proc/{pid}").exists() for pid in killed)
            )

    asyncio.run(act())
    assert len(killed) == 1
    assert "cannot be killed and is abandoned" in caplog.text
