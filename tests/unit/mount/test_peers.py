# SPDX-License-Identifier: MIT
"""Exchange of reports between two mounts, over real sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

import pytest

from penstock.errors import InputError
from penstock.mount.exchange import ExchangeSettings, encode_report
from penstock.qos import QosScheduler, Request, Slo, get_scheduler
from support.waiting import LIMIT_S

trio = pytest.importorskip("trio")

from penstock.mount.peers import Peers  # noqa: E402 - trio may be missing

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def test_a_mount_receives_the_reports_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        with trio.fail_after(LIMIT_S):
            ports = [await _free_port() for _ in range(2)]
            schedulers = [
                get_scheduler("sfq").make({"a": Slo(1e6, 1.0)}, 0.0) for _ in ports
            ]
            first, second = (f"127.0.0.1:{port}" for port in ports)
            settings = [
                ExchangeSettings(first, (second,), KEY, 1e6),
                ExchangeSettings(second, (first,), KEY, 1e6),
            ]
            reports: list[tuple[str, Mapping[str, float]]] = []

            def record(
                server: str,
                served_bytes: Mapping[str, float],
                now: float,
                wanting: Iterable[str],
            ) -> None:
                assert now <= trio.current_time()
                assert list(wanting) == []
                reports.append((server, served_bytes))

            dispatched: list[int] = []

            monkeypatch.setattr(schedulers[1], "record_remote_service", record)
            async with trio.open_nursery() as nursery:
                for each, scheduler in zip(settings, schedulers, strict=True):
                    nursery.start_soon(
                        Peers(each, scheduler, lambda: dispatched.append(1)).run
                    )
                await _garbage(ports[1])
                _serve(schedulers[0], 990_000)
                _serve(schedulers[0], 10_000)
                while not reports:
                    await trio.sleep(0.01)
                # Growth below the threshold is reported too, but later.
                _serve(schedulers[0], 10_000)
                while reports[-1][1] != {"a": 1_010_000}:
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
            assert len({server for server, _ in reports}) == 1
            assert len(dispatched) >= len(reports)

    trio.run(main)


def test_a_port_in_use_is_reported() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        settings = ExchangeSettings(f"127.0.0.1:{taken.getsockname()[1]}", (), KEY, 1.0)
        with pytest.raises(InputError, match="cannot listen: Address already in use"):
            Peers(settings, get_scheduler("sfq").make({}, 0.0), lambda: None)


def _serve(scheduler: QosScheduler, size: int) -> None:
    request = Request("write", size, "a")
    scheduler.arrive(request, 0.0)
    assert scheduler.dispatch(0.0) == [request]
    scheduler.complete(request, size, 0.0)


async def _free_port() -> int:
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as port:
        await port.bind(("127.0.0.1", 0))
        number: int = port.getsockname()[1]
        return number


async def _garbage(port: int) -> None:
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as sender:
        for data in (b"", b"x" * 1000, encode_report("false", {"a": 1e18}, OTHER_KEY)):
            await sender.sendto(data, ("127.0.0.1", port))
