# SPDX-License-Identifier: MIT
"""Mounts and the controller over real sockets: credit, wrong keys, garbage.

`tests/e2e/live/test_serve_nodes.py` does the same with agents.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket as socketlib
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import zmq
import zmq.asyncio

from penstock.live.daemon import zeromq
from penstock.live.daemon.control_loop import ControlLoop
from penstock.live.daemon.zeromq import listen
from penstock.live.settings import Settings
from penstock.live.wire.curve import make_keys, prepare_client, renew_client
from penstock.live.wire.messages import (
    TO_MOUNT,
    CounterReport,
    MountCredit,
    MountReport,
    MountUse,
    encode,
)
from penstock.live.wire.syn_filter import SynFilter
from support.waiting import LIMIT_S, until_async

ADDRESS = "ipc://{}"
#: Connects 3,000 times while the event loop reads no event. ZeroMQ greets each peer.
UNREAD = """
import asyncio, socket, sys
import zmq, zmq.asyncio
from penstock.live.daemon.zeromq import _limit_connections
from penstock.live.node.budgets import TokenBucket

async def main():
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    limiting = asyncio.create_task(_limit_connections(router, TokenBucket(1e6, 1e6)))
    await asyncio.sleep(0)
    for _ in range(3000):
        with socket.create_connection(("127.0.0.1", port), float(sys.argv[1])) as peer:
            assert peer.recv(1)
    limiting.cancel()
    await asyncio.wait([limiting])

context = zmq.asyncio.Context()
asyncio.run(main())
context.destroy(linger=0)
"""


def report(number: int, run: str = "r") -> bytes:
    use = MountUse(1e5 * number, 1e5 * number, 0.05 * number, 0)
    return encode(MountReport("s", run, number, {"a": 1e6}, {"a": use}))


def with_controller(
    tmp_path: Path,
    body: Callable[[zmq.asyncio.Context, str, Path], Awaitable[None]],
    address: str = "",
) -> SimpleNamespace:
    """Run `body` beside a controller; return the stand-in of its control loop."""
    keys = tmp_path / "keys"
    if not keys.exists():
        make_keys(str(keys))
    address = address or ADDRESS.format(tmp_path / "socket")
    control_loop = SimpleNamespace(links={}, remote=None, received=[])
    control_loop.receive = lambda *message: control_loop.received.append(message)

    async def main() -> None:
        settings = Settings(listen=address, keys=str(keys))
        loop = cast(ControlLoop, control_loop)
        async with asyncio.timeout(LIMIT_S), listen(settings, tmp_path, loop):
            context = zmq.asyncio.Context()
            try:
                await body(context, address, keys)
            finally:
                context.destroy(linger=0)

    asyncio.run(main())
    return control_loop


def client(context: zmq.asyncio.Context, address: str, keys: Path, name: str) -> Any:
    socket = context.socket(zmq.DEALER)
    prepare_client(socket, keys)
    socket.identity = name.encode()
    socket.connect(address)
    return socket


def test_a_mount_that_reports_gets_credit(tmp_path: Path) -> None:
    async def body(context: zmq.asyncio.Context, address: str, keys: Path) -> None:
        numbers = []
        with client(context, address, keys, "mount:n:r") as socket:
            await socket.send(b"garbage")
            for number in range(1, 4):
                await socket.send(report(number))
                credit: MountCredit = TO_MOUNT(b"".join(await socket.recv_multipart()))
                assert credit.run == "r"
                assert credit.rates == {}
                assert credit.lease_s > 0
                numbers.append(credit.number)
        assert numbers == sorted(set(numbers))

    control_loop = with_controller(tmp_path, body)
    assert control_loop.received == []


def test_a_mount_with_other_keys_is_not_heard(tmp_path: Path) -> None:
    async def body(context: zmq.asyncio.Context, address: str, keys: Path) -> None:
        other_keys = tmp_path / "other"
        make_keys(str(other_keys))
        (other_keys / "controller.key").write_bytes(
            (keys / "controller.key").read_bytes()
        )
        with (
            client(context, address, other_keys, "mount:x:y") as stranger,
            client(context, address, keys, "mount:n:r") as good,
        ):
            with pytest.raises(zmq.Again):
                await stranger.send(report(1), zmq.NOBLOCK)
            await good.send(report(1))
            await good.recv_multipart()
            assert not await stranger.poll(0)

    with_controller(tmp_path, body)


def test_a_node_cannot_speak_for_another_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "keys"
    make_keys(str(keys))
    for node in ("n1", "n2"):
        make_keys(str(keys), node)
        own = tmp_path / node
        own.mkdir()
        shutil.copy(keys / f"{node}.key_secret", own / "agent.key_secret")
        shutil.copy(keys / "controller.key", own)

    async def body(context: zmq.asyncio.Context, address: str, keys: Path) -> None:
        for folder, name in (
            (tmp_path / "n2", "n1"),
            (tmp_path / "n2", "mount:n1:a"),
            (keys, "mount:n1:b"),
        ):
            with client(context, address, folder, name) as stranger:
                await stranger.send(encode(CounterReport([], 0)))
                await stranger.send(report(1))
                await until_async(lambda: f"{name!r} has the key" in caplog.text)  # noqa: B023
                assert not await stranger.poll(200)
        with client(context, address, tmp_path / "n1", "mount:n1:r") as socket:
            await until_credit(socket, count(1))

    assert with_controller(tmp_path, body).received == []


# --- New keys -------------------------------------------------------------------------


def replace_keys(keys: Path) -> None:
    """Make new keys and put them in the place of the old ones."""
    fresh = keys.with_name("fresh")
    make_keys(str(fresh))
    for path in fresh.iterdir():
        path.replace(keys / path.name)
    fresh.rmdir()


async def until_credit(socket: Any, numbers: Iterator[int]) -> None:
    """Send reports until one is answered."""
    while await socket.poll(0):  # of an earlier connection
        await socket.recv_multipart()
    while True:
        with suppress(zmq.Again):
            await socket.send(report(next(numbers)), zmq.NOBLOCK)
        if await socket.poll(50):
            await socket.recv_multipart()
            return


async def until_cut_off(socket: Any, numbers: Iterator[int]) -> None:
    """Send reports until there is no connection."""
    with suppress(zmq.Again):
        while True:
            await socket.send(report(next(numbers)), zmq.NOBLOCK)
            await asyncio.sleep(0.05)


def test_keys_are_replaced_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(zeromq, "KEYS_S", 0.05)
    caplog.set_level(logging.INFO)
    numbers = count(1)

    async def body(context: zmq.asyncio.Context, address: str, keys: Path) -> None:
        old_keys = shutil.copytree(keys, tmp_path / "old")
        with client(context, address, keys, "mount:n:r") as socket:
            await until_credit(socket, numbers)
            replace_keys(keys)
            await until_async(lambda: "are used" in caplog.text)
            # Its connection has the old keys.
            await until_cut_off(socket, numbers)
            renew_client(socket, keys, address)
            await until_credit(socket, numbers)
            with client(context, address, old_keys, "mount:x:y") as stranger:
                await until_credit(socket, numbers)
                with pytest.raises(zmq.Again):
                    await stranger.send(report(1), zmq.NOBLOCK)

    with_controller(tmp_path, body)


def test_keys_that_cannot_be_used_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(zeromq, "KEYS_S", 0.05)
    numbers = count(1)

    async def body(context: zmq.asyncio.Context, address: str, keys: Path) -> None:
        with client(context, address, keys, "mount:n:r") as socket:
            await until_credit(socket, numbers)
            (keys / "controller.key_secret").chmod(0o644)
            await until_async(lambda: "other users can read" in caplog.text)
            await until_credit(socket, numbers)

    with_controller(tmp_path, body)
    assert "are used" not in caplog.text


def test_a_task_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise KeyError("promise")

    async def main() -> None:
        await asyncio.wait([zeromq._start(fail())])

    asyncio.run(main())
    assert "fail has stopped" in caplog.text
    assert "KeyError: 'promise'" in caplog.text


def test_too_many_new_connections_are_ignored_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No token comes back while the test runs.
    monkeypatch.setattr(zeromq, "_CONNECTS", (1e-6, 20.0))
    with socketlib.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    filters: list[SynFilter] = []
    attach = SynFilter.attach

    def attach_and_count(syn_filter: SynFilter) -> None:
        filters.append(syn_filter)
        attach(syn_filter)

    monkeypatch.setattr(SynFilter, "attach", attach_and_count)

    async def connect() -> None:
        with suppress(TimeoutError):
            opening = asyncio.open_connection("127.0.0.1", port)
            _, writer = await asyncio.wait_for(opening, 1.0)
            writer.close()

    async def body(context: zmq.asyncio.Context, address: str, keys: Path) -> None:
        mount = client(context, address, keys, "mount:n:1")
        await mount.send(report(1))
        first = TO_MOUNT(await mount.recv())
        for _ in range(10):
            await connect()
        assert not filters
        while not filters:
            await connect()
        # A mount that was connected before still gets its credit.
        await mount.send(report(2))
        while TO_MOUNT(await mount.recv()).number <= first.number:
            pass

    with_controller(tmp_path, body, f"tcp://127.0.0.1:{port}")


def test_events_of_connections_that_nobody_reads_block_nobody() -> None:
    """A full queue of events would block the thread of ZeroMQ, and the whole process.

    Therefore another process tries it.
    """
    program = [sys.executable, "-c", UNREAD, str(LIMIT_S)]
    subprocess.run(program, check=True, timeout=2 * LIMIT_S)
