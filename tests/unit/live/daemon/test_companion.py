# SPDX-License-Identifier: MIT
"""A process beside the daemon: started again, stopped, and never left behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.live.daemon.companion import companion
from support.waiting import LIMIT_S, until, until_async

#: Adds its process id to a file, then waits for the end of its standard input.
WAITS = """
import os, sys
with open(sys.argv[1], "a") as stream:
    stream.write(f"{os.getpid()}\\n")
sys.stdin.read()
"""
#: The same, but ends at once.
ENDS = WAITS.replace("sys.stdin.read()", "sys.exit(3)")
#: The same, but does not read its input.
STUBBORN = WAITS.replace("sys.stdin.read()", "import time; time.sleep(1000)")

#: A daemon that ends without stopping its companion, when that has started.
DAEMON = """
import asyncio, os, pathlib, sys
from penstock.live.daemon.companion import companion
async def act():
    async with companion("it", [sys.executable, "-c", *sys.argv[1:]]):
        path = pathlib.Path(sys.argv[2])
        while not (path.exists() and path.read_text()):
            await asyncio.sleep(0.01)
        os._exit(9)
asyncio.run(act())
"""


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
    daemon = [sys.executable, "-c", DAEMON, WAITS, str(path)]
    assert subprocess.run(daemon, check=False, timeout=LIMIT_S).returncode == 9
    (pid,) = started(path)
    until(lambda: not is_there(pid))
