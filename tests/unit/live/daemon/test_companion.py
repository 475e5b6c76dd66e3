# SPDX-License-Identifier: MIT
"""A process beside the daemon: started again, stopped, and never left behind."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from penstock.live.daemon.companion import companion
from support.waiting import until, until_async

#: Adds its process id to a file, then waits for the end of its standard input.
WAITS = """
import os, sys
with open(sys.argv[1], "a") as stream:
    stream.write(f"{os.getpid()}\\n")
sys.stdin.read()
"""
#: The same, but ends at once.
ENDS = WAITS.replace("sys.stdin.read()", "sys.exit(3)")
#: The same, but does not listen to SIGTERM.
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS


def started(path: Path) -> list[int]:
    """Return the processes that were started."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_runs_during_the_block(tmp_path: Path) -> None:
    path = tmp_path / "started"

    async def act() -> None:
        async with companion("it", [sys.executable, "-c", WAITS, str(path)]):
            await until_async(lambda: started(path))
            assert is_there(*started(path))
        assert not is_there(*started(path))

    asyncio.run(act())


def test_it_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("penstock.live.daemon.companion._PAUSE_S", 0.01)
    path = tmp_path / "started"

    async def act() -> None:
        async with companion("the page", [sys.executable, "-c", ENDS, str(path)]):
            await until_async(lambda: len(started(path)) >= 3)

    asyncio.run(act())
    assert "the page has ended with status 3; next start in 0.01 s" in caplog.messages
    assert "the page has ended with status 3; next start in 0.02 s" in caplog.messages


def test_a_program_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    async def act() -> None:
        async with companion("the page", ["/nowhere/program"]):
            await until_async(lambda: caplog.messages)

    asyncio.run(act())
    (message,) = caplog.messages
    assert message.startswith("the page cannot be started: No such file")


def test_one_that_does_not_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.daemon.companion._STOP_S", 0.1)
    path = tmp_path / "started"

    async def act() -> None:
        async with companion("it", [sys.executable, "-c", STUBBORN, str(path)]):
            await until_async(lambda: started(path))

    asyncio.run(act())
    assert not is_there(*started(path))


def test_it_does_not_outlive_a_killed_daemon(tmp_path: Path) -> None:
    path = tmp_path / "started"
    child = os.fork()
    if child == 0:

        async def act() -> None:
            async with companion("it", [sys.executable, "-c", WAITS, str(path)]):
                await until_async(lambda: started(path))
                os._exit(0)

        asyncio.run(act())
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    (pid,) = started(path)
    until(lambda: not is_there(pid))
