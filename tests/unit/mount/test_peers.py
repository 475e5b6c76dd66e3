# SPDX-License-Identifier: MIT
"""Exchange of reports between two mounts, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext

import pytest

from penstock.errors import InputError
from penstock.mount.exchange import ExchangeSettings, encode_report
from penstock.mount.peers import Peers
from penstock.qos import QosScheduler, Request, Slo, get_scheduler
from support.waiting import until_async

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


async def exchange_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [_free_port() for _ in range(2)]
    schedulers = [get_scheduler("sfq").make({"a": Slo(1e6, 1.0)}, 0.0) for _ in ports]
    first, second = (f"127.0.0.1:{port}" for port in ports)
    settings = [
        ExchangeSettings(first, (second,), KEY, 1e6),
        ExchangeSettings(second, (first,), KEY, 1e6),
    ]
    reports: list[tuple[str, Mapping[str, float]]] = []
    calls: list[str] = []

    def record(
        server: str,
        served_bytes: Mapping[str, float],
        now: float,
        wanting: Iterable[str],
    ) -> None:
        assert now <= time.monotonic()
        assert list(wanting) == []
        assert calls[-1] == "locked"
        reports.append((server, served_bytes))

    @contextmanager
    def locked() -> Iterator[None]:
        calls.append("locked")
        yield
        calls.append("unlocked")

    monkeypatch.setattr(schedulers[1], "record_remote_service", record)
    mounts = [
        Peers(each, scheduler, locked, lambda: calls.append("dispatched"))
        for each, scheduler in zip(settings, schedulers, strict=True)
    ]
    tasks = [asyncio.create_task(mount.run()) for mount in mounts]
    _send_garbage(ports[1])
    _serve(schedulers[0], 990_000)
    _serve(schedulers[0], 10_000)
    await until_async(lambda: reports)
    # Growth below the threshold is reported too, but later.
    _serve(schedulers[0], 10_000)
    await until_async(lambda: reports[-1][1] == {"a": 1_010_000})
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len({server for server, _ in reports}) == 1
    assert calls.count("dispatched") >= len(reports)


def test_a_mount_receives_the_reports_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asyncio.run(exchange_reports(monkeypatch))


def test_a_port_in_use_is_reported() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        settings = ExchangeSettings(f"127.0.0.1:{taken.getsockname()[1]}", (), KEY, 1.0)
        with pytest.raises(InputError, match="cannot listen: Address already in use"):
            Peers(
                settings,
                get_scheduler("sfq").make({}, 0.0),
                nullcontext,
                lambda: None,
            )


def _serve(scheduler: QosScheduler, size: int) -> None:
    request = Request("write", size, "a")
    scheduler.arrive(request, 0.0)
    assert scheduler.dispatch(0.0) == [request]
    scheduler.complete(request, size, 0.0)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.bind(("127.0.0.1", 0))
        number: int = port.getsockname()[1]
        return number


def _send_garbage(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for data in (b"", b"x" * 1000, encode_report("false", {"a": 1e18}, OTHER_KEY)):
            sender.sendto(data, ("127.0.0.1", port))
