# SPDX-License-Identifier: MIT
"""The process behind a mount: a socket that cannot be created, failures, the end."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import InputError, InternalError, UnavailableError
from penstock.mount import daemon
from penstock.mount.control import GetMountStatus, SetSlo, Stop, encode
from penstock.mount.limits import Limits
from penstock.mount.points import MountTableEntry
from support.waiting import LIMIT_S


def test_a_folder_that_is_a_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(
        daemon, "mounted_at", lambda _: MountTableEntry("m", "0:1", "fuse")
    )
    mount = daemon.MountSpec("b", "m", Limits(), tmp_path / "file" / "mounts", None)
    with (
        pytest.raises(InputError, match="mounts: cannot be created: Not a directory"),
        daemon._listening(mount),
    ):
        pass


def stop_by_socket(session: Any) -> None:
    session._execute(Stop())


def stop_by_two_signals(session: Any) -> None:
    session._handle_signal()
    session._handle_signal()


@pytest.mark.parametrize("stop", [stop_by_socket, stop_by_two_signals])
def test_the_mount_serves_while_it_is_detached_and_ends_though_that_fails(
    monkeypatch: pytest.MonkeyPatch, stop: Any
) -> None:
    served, ended = threading.Event(), threading.Event()

    def unmount(point: str, *, lazy: bool = False) -> None:
        # Unmounting may wait for an answer of the mount itself.
        if lazy:
            assert served.wait(LIMIT_S)
        raise OSError(errno.ETIMEDOUT, "as if it hung", point)

    monkeypatch.setattr(daemon, "unmount", unmount)
    # Longer than the test may take.
    monkeypatch.setattr(daemon, "_GRACE_S", 2 * LIMIT_S)
    data_path: Any = SimpleNamespace(
        serve=lambda ready: (ready(), ended.wait(LIMIT_S)), stop=ended.set
    )
    ready = []

    async def main() -> None:
        mount = daemon.MountSpec("b", "m", Limits(), Path(), None)
        service: Any = None
        session = daemon._Session(mount, service, data_path)

        def stop_when_ready() -> None:
            ready.append(True)
            stop(session)
            served.set()

        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0penstock-test-{os.getpid()}")
            await asyncio.wait_for(session.run(listener, stop_when_ready), LIMIT_S)

    asyncio.run(main())
    assert ended.is_set()
    assert ready == [True]


def test_the_end_does_not_wait_for_an_unmount_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(
        daemon, "unmount", lambda _, lazy=False: answers.wait(LIMIT_S) and None
    )
    for name in ("_GRACE_S", "_LAST_REQUESTS_S"):
        monkeypatch.setattr(daemon, name, 0.05)
    data_path: Any = SimpleNamespace(
        serve=lambda ready: (ready(), ended.wait(LIMIT_S)), stop=ended.set
    )

    async def main() -> None:
        mount = daemon.MountSpec("b", "m", Limits(), Path(), None)
        service: Any = None
        session = daemon._Session(mount, service, data_path)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0penstock-hangs-{os.getpid()}")
            await session.run(listener, lambda: stop_by_socket(session))

    # In a thread, because it must not take for ever.
    runner = threading.Thread(target=lambda: asyncio.run(without_signals(main())))
    runner.start()
    runner.join(20.0)
    is_done = not runner.is_alive()
    answers.set()
    runner.join(LIMIT_S)
    assert is_done


async def without_signals(run: Any) -> None:
    """Run in a thread that is not the main one: it cannot handle signals."""
    asyncio.get_running_loop().add_signal_handler = lambda *_: None  # type: ignore[method-assign]
    await run


def test_a_failed_task_ends_the_mount_with_an_error_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the background the log is the only place where the reason is seen."""

    async def fail(*_: object) -> None:
        async with asyncio.TaskGroup():
            raise ZeroDivisionError("a bug in a task")

    replace_parts(monkeypatch)
    monkeypatch.setattr(daemon._Session, "run", fail)
    mount = daemon.MountSpec("b", "m", Limits(), tmp_path)
    with pytest.raises(InternalError, match="the mount at m has failed"):
        daemon.serve(mount)
    assert "a bug in a task" in caplog.text


def test_a_mistake_of_the_user_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("cannot be mounted")

    replace_parts(monkeypatch, attach=refuse)
    with pytest.raises(InputError, match="cannot be mounted"):
        daemon.serve(daemon.MountSpec("b", "m", Limits(), tmp_path))


def replace_parts(monkeypatch: pytest.MonkeyPatch, **methods: Any) -> None:
    """Put a data path that does nothing in place of the real one."""
    parts = {"attach": lambda *_: None, "detach": lambda: None} | methods
    monkeypatch.setattr(daemon, "DataPath", lambda _: SimpleNamespace(**parts))
    service = SimpleNamespace(open_link=lambda: None)
    monkeypatch.setattr(daemon, "MountService", lambda *_: service)
    monkeypatch.setattr(
        daemon, "mounted_at", lambda _: MountTableEntry("m", "0:1", "fuse")
    )


def test_a_change_that_waits_for_the_storage_holds_up_no_other_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()
    session = session_with(lambda _: answers.wait(LIMIT_S), monkeypatch)

    async def main() -> None:
        change = asyncio.create_task(session._answer(encode(SetSlo({}))))
        until_started = asyncio.create_task(asyncio.sleep(0))
        await until_started
        status = session._answer(encode(GetMountStatus()))
        assert await asyncio.wait_for(status, LIMIT_S) == "status"
        assert not change.done()
        answers.set()
        assert await asyncio.wait_for(change, LIMIT_S) == "status"

    asyncio.run(main())


def test_a_change_that_takes_too_long_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()
    session = session_with(lambda _: answers.wait(LIMIT_S), monkeypatch)
    monkeypatch.setattr(daemon, "CHANGE_S", 0.05)
    refusal = asyncio.run(session._answer(encode(SetSlo({}))))
    answers.set()
    assert "longer than 0.05 s; it may still be made" in refusal.reason


def session_with(set_slo: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a session of a mount whose SLOs are replaced by a function."""
    monkeypatch.setattr(daemon._Session, "status", lambda _: "status")
    service: Any = SimpleNamespace(set_slo=set_slo)
    data_path: Any = None
    mount = daemon.MountSpec("b", "m", Limits(), Path())
    return daemon._Session(mount, service, data_path)


def test_a_mount_that_cannot_serve_ends_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def serve(ready: Any) -> None:
        raise UnavailableError("requests cannot be served: no threads")

    data_path: Any = SimpleNamespace(serve=serve)
    mount = daemon.MountSpec("b", "m", Limits(), Path())
    service: Any = None
    session = daemon._Session(mount, service, data_path)
    ready: list[bool] = []

    async def main() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0penstock-no-threads-{os.getpid()}")
            run = session.run(listener, lambda: ready.append(True))
            await asyncio.wait_for(run, LIMIT_S)

    with pytest.raises(UnavailableError, match="m: requests cannot be served: no"):
        asyncio.run(main())
    assert "no threads" in caplog.text
    assert ready == []
