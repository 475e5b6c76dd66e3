# SPDX-License-Identifier: MIT
"""The process behind a mount: a socket that cannot be created, failures, the end."""

from __future__ import annotations

import errno
import resource
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pyfuse3 = pytest.importorskip("pyfuse3")
trio = pytest.importorskip("trio")

from penstock.errors import InputError, InternalError  # noqa: E402 - what is above may be missing
from penstock.mount import daemon  # noqa: E402
from penstock.mount.control import Stop  # noqa: E402
from penstock.mount.limiter import Limits  # noqa: E402
from penstock.mount.points import MountTableEntry  # noqa: E402
from support.waiting import LIMIT_S  # noqa: E402


def test_a_folder_that_is_a_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(
        daemon, "mounted_at", lambda _: MountTableEntry("m", "0:1", "fuse")
    )
    monkeypatch.setattr(daemon, "raise_background_limit", lambda *_: None)
    mount = daemon.MountSpec("b", "m", Limits(), tmp_path / "file" / "mounts", None)
    with (
        pytest.raises(
            InputError, match=r"0-1\.sock: cannot be created: Not a directory"
        ),
        daemon._listening(mount),
    ):
        pass


async def stop_by_socket(session: Any) -> None:
    session._execute(Stop())


async def stop_by_two_signals(session: Any) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(session._watch_signals)
        signal.raise_signal(signal.SIGTERM)
        await session._stop.wait()
        signal.raise_signal(signal.SIGTERM)
        while not session._grace.cancel_called:
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("stop", [stop_by_socket, stop_by_two_signals])
def test_the_mount_serves_while_it_is_detached_and_ends_though_that_fails(
    monkeypatch: pytest.MonkeyPatch, stop: Any
) -> None:
    served, ended = threading.Event(), []

    def unmount(point: str, *, lazy: bool = False) -> None:
        # Unmounting may wait for an answer of the mount itself.
        if lazy:
            assert served.wait(LIMIT_S)
        raise OSError(errno.ETIMEDOUT, "as if it hung", point)

    monkeypatch.setattr(daemon, "unmount", unmount)
    monkeypatch.setattr(pyfuse3, "terminate", lambda: ended.append("mount"))
    # Longer than the test may take.
    monkeypatch.setattr(daemon, "_GRACE_S", 2 * LIMIT_S)
    gate = SimpleNamespace(close=lambda: ended.append("gate"))
    service: Any = SimpleNamespace(gate=gate)
    files: Any = None

    async def main() -> None:
        mount = daemon.MountSpec("b", "m", Limits(), Path(), None)
        session = daemon._Session(mount, service, files)
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session._end_when_stopped)
                await stop(session)
                served.set()

    trio.run(main)
    assert ended == ["gate", "mount"]


def test_a_failed_task_ends_the_mount_with_an_error_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the background the log is the only place where the reason is seen."""

    async def fail(*_: object) -> None:
        async with trio.open_nursery():
            raise ZeroDivisionError("a bug in a task")

    monkeypatch.setattr(daemon, "_serve", fail)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    mount = daemon.MountSpec("b", "m", Limits(), tmp_path)
    with pytest.raises(InternalError, match="the mount at m has failed"):
        daemon.serve(mount)
    assert "a bug in a task" in caplog.text


def test_a_mistake_of_the_user_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise InputError("cannot be mounted")

    monkeypatch.setattr(daemon, "_serve", refuse)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    with pytest.raises(InputError, match="cannot be mounted"):
        daemon.serve(daemon.MountSpec("b", "m", Limits(), tmp_path))
