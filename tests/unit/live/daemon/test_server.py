# SPDX-License-Identifier: MIT
"""Parts of the daemon; `tests/e2e/live` has the whole of it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live.control.controller import Controller
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.jobs import JobHistory
from penstock.live.daemon.control_loop import ControlLoop
from penstock.live.daemon.history import History
from penstock.live.daemon.server import _lock, _own_folder, _start_parts
from penstock.live.settings import Settings
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    Grants,
    JobJoined,
    JobLeft,
    SetBandwidth,
    UserRequest,
)


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    path = _own_folder(tmp_path / "a" / "b")
    assert path.is_dir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="is not a folder of yours"):
        _own_folder(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made"):
        _own_folder(tmp_path / "file")


def test_one_daemon_per_folder(tmp_path: Path) -> None:
    first = _lock(tmp_path)
    with pytest.raises(UnavailableError, match="another penstock serves here"):
        _lock(tmp_path)
    os.close(first)
    os.close(_lock(tmp_path))


def with_hub(
    history: History | None, act: Callable[[ControlLoop, list[Any]], Any]
) -> None:
    """Run `act` with a hub that has heard an agent."""

    async def running() -> None:
        controller = Controller("fair-share", 100.0, compiled=False)
        terms = AgentConfig("control", [], 0.1, 0.1, 3.0, inf, reads=True)
        recall = history.recall if history else lambda _: None
        hub = ControlLoop(Coordinator(controller, terms, recall), history)
        told: list[Any] = []
        hub.links["n"] = told.append
        hub.hear("n", AgentHello([]))
        try:
            await act(hub, told)
        finally:
            hub.close()

    asyncio.run(running())


def test_messages_that_arrive_together_are_one_decision() -> None:
    async def act(hub: ControlLoop, told: list[Any]) -> None:
        for job in ("0:a", "0:b"):
            hub.hear("n", JobJoined(job, 0, "0", 0, 0.0))
        assert told == []
        await asyncio.sleep(0)
        assert told == [hub.coordinator.terms, Grants({"0:a": 100.0, "0:b": 100.0})]

    with_hub(None, act)


def test_our_own_mistakes_do_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(hub: ControlLoop, told: list[Any]) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(hub.coordinator, "_join", broken)
            hub.hear("n", JobJoined("0:a", 0, "0", 0, 0.0))
        hub.hear("n", JobJoined("0:b", 0, "0", 0, 0.0))
        await asyncio.sleep(0)
        assert told[-1] == Grants({"0:b": 100.0})

    with_hub(None, act)


def test_messages_to_nobody_are_dropped() -> None:
    async def act(hub: ControlLoop, told: list[Any]) -> None:
        hub.hear("elsewhere", CounterReport([], 0))
        await asyncio.sleep(0)
        assert [type(message) for message in told] == [AgentConfig]

    with_hub(None, act)


def test_jobs_that_leave_are_remembered(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite", now=lambda: 50.0, wall=lambda: 1e9)

    async def act(hub: ControlLoop, told: list[Any]) -> None:
        hub.hear("n", JobJoined("0:a", 0, "0", 0, 0.0))
        hub.hear("n", JobLeft("0:a"))
        await asyncio.sleep(0)

    with_hub(history, act)
    again = History(tmp_path / "h.sqlite", now=lambda: 50.0, wall=lambda: 1e9)
    assert isinstance(again.recall("0:a"), JobHistory)
    again.close()


def test_a_status_for_another_thread() -> None:
    async def act(hub: ControlLoop, told: list[Any]) -> None:
        status = await asyncio.to_thread(hub.status_for_thread)
        assert status.policy == "fair-share"

    with_hub(None, act)


def test_a_change_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def act(hub: ControlLoop, told: list[Any]) -> None:
        with caplog.at_level(logging.INFO, "penstock.serve"):
            hub.hear("n", UserRequest(1, 1000, True, SetBandwidth(40.0)))
            await asyncio.sleep(0)

    with_hub(None, act)
    assert caplog.messages == ["user 1000: 40 B/s are shared"]


# --- Starting -------------------------------------------------------------------------


def start(home: Path, **settings: Any) -> None:
    """Start and stop the parts of a daemon."""

    async def starting() -> None:
        async with AsyncExitStack() as stack:
            agent = await _start_parts(Settings(**settings), home, stack)
            stack.callback(agent.close)

    (home / "pages").mkdir()
    asyncio.run(starting())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": "nonsense"}, "unknown strategy 'nonsense'"),
        ({"targets": "moosefs"}, "names no targets"),
        ({"metrics": "nowhere"}, "metrics 'nowhere': cannot listen"),
        ({"listen": "tcp://127.0.0.1:7400"}, "is no key"),
    ],
)
def test_mistakes_are_found_before_anything_is_measured(
    settings: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(_: Path) -> float:
        pytest.fail("it is measured before all is checked")

    monkeypatch.setattr("penstock.live.daemon.server.measure_bandwidth", measure)
    with pytest.raises(InputError, match=message):
        start(tmp_path, **settings)


def test_the_log_begins_with_what_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        "penstock.live.daemon.server.measure_bandwidth", lambda _: 2048.0
    )
    there, later = str(tmp_path), str(tmp_path / "later")
    with caplog.at_level(logging.INFO, "penstock.serve"):
        start(tmp_path, prefixes=(there, later), mode="dry-run")
    assert caplog.messages == [
        f"{there} is written at 2 KiB/s",
        f"mode dry-run: policy fair-share shares 2 KiB/s of {there}:{later}",
        f"prefix {later}: there is no such folder yet",
    ]
