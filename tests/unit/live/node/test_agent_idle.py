# SPDX-License-Identifier: MIT
"""Idle jobs cost the agent next to nothing, and it notices their first call at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.live.node.agent import Agent
from penstock.live.node.bypass import WrittenBytes
from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import Page
from penstock.live.wire.frames import Peer
from penstock.live.wire.messages import (
    AgentConfig,
    AttachProcess,
    CounterReport,
    Grants,
    JobJoined,
)
from support.waiting import until_async

CONFIG = AgentConfig("control", [], 0.1, 0.05, 0.6, inf, reads=True)
ME = Peer(os.getpid(), os.geteuid(), os.getegid())
WRITE = "import sys; open(sys.argv[1], 'wb', 0).write(bytes(1000))"


@pytest.fixture(autouse=True)
def nothing_is_uncontrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore what this process writes; it belongs to all jobs."""
    monkeypatch.setattr(WrittenBytes, "measure", lambda *_: 0)


class Rig:
    """An agent, the messages it has sent, and its clock, which a test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.sent: list[Any] = []
        self.agent = Agent(folder, self._send, clock=lambda: self.now)
        self.agent.start()
        self.agent.receive(CONFIG)

    def _send(self, message: Any) -> None:
        """Keep a message; a job that joins gets a grant, as from a controller."""
        self.sent.append(message)
        if isinstance(message, JobJoined):
            self.agent.receive(Grants({message.job_key: inf}))

    async def attach(self, job: str, peer: Peer = ME) -> Path:
        """Attach this process to a job; return its page."""
        reply: Any = await self.agent.reply(peer, AttachProcess(job))
        return Path(reply.page)

    def reported(self) -> list[str]:
        """Return the names of the jobs reported since the last time."""
        reports = [each for each in self.sent if isinstance(each, CounterReport)]
        self.sent.clear()
        keys = [c.job_key for report in reports for c in report.counters]
        return [key.partition(":")[2] for key in keys]

    def idle(self, time_s: float, step_s: float = 0.1) -> list[str]:
        """Let time pass; return the names of the jobs reported meanwhile."""
        names = []
        for _ in range(round(time_s / step_s)):
            self.now += step_s
            self.agent.receive(Grants({}))
            self.agent.update()
            names += self.reported()
        return names


def with_agent(folder: Path, act: Callable[[Rig], Any]) -> None:
    """Run `act` in a loop, with an agent that is configured."""

    async def running() -> None:
        rig = Rig(folder)
        try:
            await act(rig)
        finally:
            rig.agent.close()

    asyncio.run(running())


def descriptors() -> int:
    """Return the number of descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def write(page: Path, folder: Path) -> None:
    """Let a program make one controlled call."""
    environment = shim_environment(page, [folder])
    command = [sys.executable, "-c", WRITE, str(folder / "out")]
    subprocess.run(command, env=environment, check=True, timeout=120)


def test_two_hundred_jobs_take_one_thread_and_two_descriptors_each(
    tmp_path: Path,
) -> None:
    async def act(rig: Rig) -> None:
        threads, before = threading.active_count(), descriptors()
        for number in range(200):
            await rig.attach(f"job{number}")
        assert threading.active_count() - threads <= 1
        # The page and the process; besides, the bell of the user.
        assert descriptors() - before <= 2 * 200 + 1
        rig.idle(2.0)
        # Besides, the thread that looks for bytes that were not controlled.
        assert threading.active_count() - threads <= 2
        rig.agent.close()
        assert descriptors() <= before

    with_agent(tmp_path, act)


def test_idle_jobs_are_reported_ever_more_rarely(tmp_path: Path) -> None:
    async def act(rig: Rig) -> None:
        for number in range(20):
            await rig.attach(f"job{number}")
        assert len(set(rig.idle(1.0))) == 20
        rig.idle(120.0, 0.2)
        # One heartbeat of 0.2 s after the other, but each job once in 30 s.
        assert len(rig.idle(60.0, 0.2)) <= 3 * 20
        # Every job is still looked at now and then.
        assert len(set(rig.idle(31.0, 0.2))) == 20

    with_agent(tmp_path, act)


def test_the_lease_of_many_jobs_is_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(rig: Rig) -> None:
        for number in range(20):
            await rig.attach(f"job{number}")
        rig.idle(120.0, 0.2)
        writes: list[int] = []
        kept = os.pwrite

        def counted(descriptor: int, data: Any, offset: int) -> int:
            writes.append(descriptor)
            return kept(descriptor, data, offset)

        monkeypatch.setattr(os, "pwrite", counted)
        rig.idle(2.0, 0.2)
        assert 0 < len(writes) <= 10

    with_agent(tmp_path, act)


def test_the_first_call_of_an_idle_job_is_reported_at_once(tmp_path: Path) -> None:
    async def act(rig: Rig) -> None:
        pages = [await rig.attach(f"job{number}") for number in range(100)]
        rig.idle(120.0, 0.5)
        # The clock of the agent stands still: nothing but the call causes a report.
        writing = asyncio.to_thread(write, pages[70], tmp_path)
        task = asyncio.create_task(writing)
        await until_async(lambda: rig.sent)
        assert set(rig.reported()) == {"job70"}
        await task
        # From now on it is reported often again, and only this one.
        assert "job70" in rig.idle(0.2, 0.05)

    with_agent(tmp_path, act)


def test_calls_of_a_process_without_a_bell_are_noticed_later(tmp_path: Path) -> None:
    async def act(rig: Rig) -> None:
        page = await rig.attach("a")
        rig.idle(120.0, 0.5)
        with Page.open(page) as opened:
            opened.set_bell(0, 0)
        await asyncio.to_thread(write, page, tmp_path)
        await asyncio.sleep(0.05)
        assert rig.reported() == []
        assert "a" in rig.idle(31.0, 0.5)

    with_agent(tmp_path, act)


@pytest.mark.skipif(ME.user != 0, reason="needs two users")
def test_a_user_who_damages_the_bell_affects_no_other(tmp_path: Path) -> None:
    other = Peer(os.getpid(), 54321, 54321)

    async def act(rig: Rig) -> None:
        await rig.attach("bad", other)
        sound = await rig.attach("good")
        bell = tmp_path / "54321.bell"
        rig.idle(120.0, 0.5)
        os.truncate(bell, 0)
        await asyncio.to_thread(write, sound, tmp_path)
        await until_async(lambda: "good" in rig.reported())
        # The user gets another bell, and both jobs are still served.
        await until_async(lambda: rig.idle(0.2) and bell.stat().st_size == 4096)
        assert set(rig.idle(31.0, 0.2)) == {"bad", "good"}

    with_agent(tmp_path, act)


def test_a_later_agent_hears_the_processes_of_a_former_one(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "stream = open(sys.argv[1], 'wb', 0)\n"
        "print('ready', flush=True)\n"
        "for _ in sys.stdin: stream.write(bytes(1000))\n"
    )
    program: list[subprocess.Popen[bytes]] = []

    async def first(rig: Rig) -> None:
        page = await rig.attach("a")
        await rig.attach("b")
        command = [sys.executable, "-c", script, str(tmp_path / "out")]
        started = subprocess.Popen(
            command,
            env=shim_environment(page, [tmp_path]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        program.append(started)
        assert started.stdout is not None
        await asyncio.to_thread(started.stdout.readline)

    async def second(rig: Rig) -> None:
        joined = [each.job_key for each in rig.sent if isinstance(each, JobJoined)]
        assert sorted(joined) == [f"{ME.user}:a", f"{ME.user}:b"]
        rig.idle(120.0, 0.5)
        stdin = program[0].stdin
        assert stdin is not None
        stdin.write(b"\n")
        stdin.flush()
        await until_async(lambda: rig.sent)
        assert set(rig.reported()) == {"a"}

    try:
        with_agent(tmp_path, first)
        with_agent(tmp_path, second)
    finally:
        program[0].communicate(timeout=120)
