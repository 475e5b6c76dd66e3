# SPDX-License-Identifier: MIT
"""Processes are watched once each, whatever they ask for, and count for their user."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine

import pytest

from penstock.live.node import budgets, processes
from penstock.live.node.budgets import Budgets, Holding
from penstock.live.node.processes import WatchedProcesses
from penstock.live.wire.identity import process_start_ticks
from support.waiting import until_async

A = 65_001
Act = Callable[
    [WatchedProcesses, Budgets, list[tuple[str, int]]], Coroutine[None, None, None]
]


def watching(act: Act) -> None:
    """Run `act` with watched processes, and a list of the ends that were noticed."""

    async def running() -> None:
        ended: list[tuple[str, int]] = []
        counted = Budgets(100)
        watched = WatchedProcesses(counted, lambda *end: ended.append(end[:2]))
        try:
            await act(watched, counted, ended)
        finally:
            watched.close()
        assert counted.held(A, Holding.PROCESSES) == 0

    asyncio.run(running())


def start_of(pid: int) -> int:
    """Return the start of a process (clock ticks after boot)."""
    start = process_start_ticks(pid)
    assert start is not None
    return start


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_process_has_one_descriptor_in_however_many_jobs() -> None:
    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
            before = descriptors()
            for number in range(50):
                watched.add(f"job{number % 2}", A, process.pid, start_of(process.pid))
            assert descriptors() == before + 1
            assert counted.held(A, Holding.PROCESSES) == 1
        await until_async(lambda: len(ended) == 2)
        assert set(ended) == {("job0", process.pid), ("job1", process.pid)}

    watching(act)


def test_jobs_that_end_at_once_leave_turns_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To end a job takes some time; users must not wait for the ends of all jobs."""
    monkeypatch.setattr(processes, "_TURN_S", 0.0)

    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
            for number in range(20):
                watched.add(f"job{number}", A, process.pid, start_of(process.pid))
        turns: list[int] = []
        while len(ended) < 20:
            await asyncio.sleep(0)
            turns.append(len(ended))
        assert set(turns) >= set(range(1, 20))

    watching(act)


def test_a_process_of_no_job_is_not_watched() -> None:
    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        watched.add("a", A, os.getpid(), start_of(os.getpid()))
        watched.add("b", A, os.getpid(), start_of(os.getpid()))
        watched.remove("a", [os.getpid()])
        assert counted.held(A, Holding.PROCESSES) == 1
        watched.remove("b", [os.getpid(), 1])
        assert counted.held(A, Holding.PROCESSES) == 0
        assert not ended

    watching(act)


def test_a_process_that_has_ended_is_noticed_at_once() -> None:
    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        with subprocess.Popen(["true"]) as process:
            process.wait()
        watched.add("a", A, process.pid, 7)
        assert ended == [("a", process.pid)]
        assert counted.held(A, Holding.PROCESSES) == 0

    watching(act)


def test_another_process_of_the_same_number_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        watched.add("old", A, os.getpid(), start_of(os.getpid()))
        monkeypatch.setattr(processes, "process_start_ticks", lambda _: 7)
        watched.add("new", A, os.getpid(), 7)
        await until_async(lambda: ended == [("old", os.getpid())])
        assert counted.held(A, Holding.PROCESSES) == 1

    watching(act)


def test_a_process_that_has_got_the_number_meanwhile_is_not_watched() -> None:
    """It need not even be of the same user: the job must not last as long as it."""

    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        before = descriptors()
        watched.add("a", A, os.getpid(), start_of(os.getpid()) - 1)
        assert ended == [("a", os.getpid())]
        assert (counted.held(A, Holding.PROCESSES), descriptors()) == (0, before)

    watching(act)


def test_a_user_with_too_many_processes_gets_no_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(budgets._MOST, Holding.PROCESSES, 1)

    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        assert watched.may_add(A, os.getpid(), 0.0)
        watched.add("a", A, os.getpid(), start_of(os.getpid()))
        assert watched.may_add(A, os.getpid(), 0.0)
        assert not watched.may_add(A, os.getppid(), 0.0)
        assert [each.user for each in counted.throttled(0.0)] == [A]

    watching(act)


def test_a_process_that_cannot_be_watched_now_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: int) -> int:
        raise OSError(24, "too many open files")

    async def act(
        watched: WatchedProcesses, counted: Budgets, ended: list[tuple[str, int]]
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pidfd_open", fail)
            watched.add("a", A, os.getpid(), start_of(os.getpid()))
            watched.add("gone", A, os.getpid(), start_of(os.getpid()))
            for _ in range(5):
                watched.add("a", A, os.getpid(), start_of(os.getpid()))
            assert len(watched._unwatched) == 2
        watched.retry(["a"])
        assert counted.held(A, Holding.PROCESSES) == 1
        watched.remove("gone", [os.getpid()])
        assert counted.held(A, Holding.PROCESSES) == 1

    watching(act)
