# SPDX-License-Identifier: MIT
"""The process behind a mount: a socket that cannot be made, and the end."""

from __future__ import annotations

import errno
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyfuse3")
trio = pytest.importorskip("trio")

from penstock.errors import InputError  # noqa: E402 - what is above may be missing
from penstock.mount import daemon  # noqa: E402
from penstock.mount.control import Stop  # noqa: E402
from penstock.mount.limiter import Limits  # noqa: E402
from penstock.mount.points import Mounted  # noqa: E402
from support.waiting import LIMIT_S  # noqa: E402


def test_a_folder_that_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(daemon, "mounted_at", lambda _: Mounted("m", "0:1", "fuse"))
    monkeypatch.setattr(daemon, "widen", lambda *_: None)
    mount = daemon.MountSpec("b", "m", Limits(), tmp_path / "file" / "mounts", None)
    with (
        pytest.raises(InputError, match=r"0-1\.sock: cannot be made: Not a directory"),
        daemon._listening(mount),
    ):
        pass


async def stop_by_socket(session: Any) -> None:
    session._obey(Stop())


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
def test_it_serves_while_it_is_detached_and_ends_though_that_fails(
    monkeypatch: pytest.MonkeyPatch, stop: Any
) -> None:
    served, ended = threading.Event(), []

    def unmount(point: str, *, lazy: bool = False) -> None:
        # Who unmounts may wait for an answer of the mount itself.
        if lazy:
            assert served.wait(LIMIT_S)
        raise OSError(errno.ETIMEDOUT, "as if it hung", point)

    monkeypatch.setattr(daemon, "unmount", unmount)
    monkeypatch.setattr(daemon.pyfuse3, "terminate", lambda: ended.append("mount"))
    # Longer than the test may take.
    monkeypatch.setattr(daemon, "_GRACE_S", 2 * LIMIT_S)
    gate = SimpleNamespace(close=lambda: ended.append("gate"))
    service: Any = SimpleNamespace(gate=gate)

    async def main() -> None:
        mount = daemon.MountSpec("b", "m", Limits(), Path(), None)
        session = daemon._Session(mount, service, None)
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session._end_when_told)
                await stop(session)
                served.set()

    trio.run(main)
    assert ended == ["gate", "mount"]
