# SPDX-License-Identifier: MIT
"""Parts of the daemon; `tests/e2e/live` has the whole of it."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.errors import InputError
from penstock.live.daemon.server import (
    _control_loop,
    _run_agent,
    _start_parts,
)
from penstock.live.settings import Settings

# --- Starting -------------------------------------------------------------------------


def start(home: Path, **settings: Any) -> None:
    """Start and stop the parts of a daemon."""

    async def starting() -> None:
        async with AsyncExitStack() as stack:
            parts = Settings(folder=str(home), **settings)
            agent = await _start_parts(parts, home, stack)
            stack.callback(agent.close)

    (home / "pages").mkdir()
    asyncio.run(starting())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": "nonsense"}, "unknown strategy 'nonsense'"),
        ({"targets": "moosefs"}, "names no targets"),
        (
            {"targets": "lustre:/fs:0", "job_folder": "/fs/{job}", "users": "all"},
            "no folder for each user"
            if os.geteuid() == 0
            else "can be assigned only by root",
        ),
        ({"metrics": "nowhere"}, "metrics 'nowhere': cannot listen"),
        ({"listen": "tcp://127.0.0.1:7400"}, "key file does not exist"),
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
        start(tmp_path, bandwidth="measure", **settings)


def test_the_log_begins_with_bandwidth_policy_and_prefixes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        "penstock.live.daemon.server.measure_bandwidth", lambda _: 2048.0
    )
    there, later = str(tmp_path), str(tmp_path / "later")
    with caplog.at_level(logging.INFO, "penstock.serve"):
        start(tmp_path, prefixes=(there, later), mode="dry-run", bandwidth="measure")
    assert caplog.messages == [
        f"{there}: measured a write bandwidth of 2 KiB/s",
        f"mode dry-run: policy fair-share shares the learnt bandwidth of "
        f"{there}:{later}",
        f"prefix {later}: this folder does not exist yet",
    ]


# --- The end of a private daemon --------------------------------------------------


class _IdleAgent:
    """An agent whose last job was long ago, because its start took so long."""

    last_job_s = -1e9
    turns = 0

    def update(self) -> None:
        self.turns += 1

    async def wait_until_due(self) -> None:
        await asyncio.sleep(0.01)


def test_a_daemon_lingers_from_the_time_when_it_is_ready() -> None:
    agent = _IdleAgent()
    asyncio.run(_run_agent(Settings(linger=0.2), cast(Any, agent)))
    # It would end at once, with the first program already connected.
    assert agent.turns > 1


@pytest.mark.parametrize(("linger", "compiled"), [(0.0, True), (10.0, False)])
def test_a_private_daemon_interprets_its_policy(
    tmp_path: Path, linger: float, compiled: bool
) -> None:
    settings = Settings(bandwidth=1e6, linger=linger, folder=str(tmp_path))
    loop = _control_loop(settings)
    try:
        columns = loop.coordinator.controller._columns
        assert columns._prefers_compiled is compiled
    finally:
        loop.close()
