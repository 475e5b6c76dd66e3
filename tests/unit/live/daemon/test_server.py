# SPDX-License-Identifier: MIT
"""Parts of the daemon; `tests/e2e/live` has the whole of it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live.daemon.server import (
    _control_loop,
    _lock,
    _own_folder,
    _run_agent,
    _start_parts,
)
from penstock.live.settings import Settings


def test_the_folder_must_belong_to_the_user(tmp_path: Path) -> None:
    path = _own_folder(tmp_path / "a" / "b")
    assert path.is_dir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="is not a folder that belongs to you"):
        _own_folder(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be created"):
        _own_folder(tmp_path / "file")


def lock(folder: Path, *, temporary: bool = False) -> int:
    return asyncio.run(_lock(folder, temporary=temporary))


def test_one_daemon_per_folder(tmp_path: Path) -> None:
    first = lock(tmp_path)
    for temporary in (False, True):
        with pytest.raises(UnavailableError, match="another penstock serve"):
            lock(tmp_path, temporary=temporary)
    os.close(first)
    os.close(lock(tmp_path))


#: Holds the lock as a temporary daemon until it is asked to stop.
TEMPORARY = """
import asyncio, signal, sys
from pathlib import Path
from penstock.live.daemon.server import _lock
asyncio.run(_lock(Path(sys.argv[1]), temporary=True))
print("locked", flush=True)
signal.pause()
"""


def test_a_temporary_daemon_gives_way(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TEMPORARY, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as temporary:
        assert temporary.stdout is not None
        assert temporary.stdout.readline() == "locked\n"
        with pytest.raises(UnavailableError):
            lock(tmp_path, temporary=True)
        assert temporary.poll() is None
        os.close(lock(tmp_path))
    assert temporary.returncode == -signal.SIGTERM


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
    loop = _control_loop(Settings(bandwidth=1e6, linger=linger), tmp_path)
    try:
        columns = loop.coordinator.controller._columns
        assert columns._prefers_compiled is compiled
    finally:
        loop.close()
