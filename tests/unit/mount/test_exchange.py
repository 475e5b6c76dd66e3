# SPDX-License-Identifier: MIT
"""What mounts tell one another: signed, and harmless if lost, late or false."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.mount.exchange import Link, decode, encode
from penstock.qos import Request, Slo, get_scheduler
from support.waiting import LIMIT_S

trio = pytest.importorskip("trio")

from penstock.mount.peers import Peers  # noqa: E402 - trio may be missing

KEY, OTHER = b"k" * 32, b"o" * 32
TOTALS = st.dictionaries(st.text(min_size=1, max_size=9), st.floats(0, 1e18))


@given(TOTALS)
def test_messages_survive_the_way(served: dict[str, float]) -> None:
    found = decode(encode("run", served, KEY), KEY)
    assert found is not None
    assert (found.run, found.served) == ("run", served)


@given(TOTALS, st.integers(0, 10**6), st.integers(1, 255))
def test_a_message_that_was_changed_is_none(
    served: dict[str, float], place: int, change: int
) -> None:
    datagram = bytearray(encode("run", served, KEY))
    datagram[place % len(datagram)] ^= change
    assert decode(bytes(datagram), KEY) is None


@given(st.binary(max_size=200))
def test_garbage_is_no_message(data: bytes) -> None:
    assert decode(data, KEY) is None


def test_another_key_or_version_is_no_message() -> None:
    datagram = encode("run", {"a": 1.0}, KEY)
    assert decode(datagram, OTHER) is None
    assert decode(encode("run", {}, KEY)[:20], KEY) is None


def test_two_mounts_hear_one_another() -> None:
    async def main() -> None:
        with trio.fail_after(LIMIT_S):
            ports = [await _free_port() for _ in range(2)]
            schedulers = [
                get_scheduler("sfq").make({"a": Slo(1e6, 1.0)}, 0.0) for _ in ports
            ]
            links = [
                Link(f"127.0.0.1:{ports[0]}", (f"127.0.0.1:{ports[1]}",), KEY, 1e6),
                Link(f"127.0.0.1:{ports[1]}", (f"127.0.0.1:{ports[0]}",), KEY, 1e6),
            ]
            heard: list[tuple[str, dict[str, float]]] = []
            schedulers[1].record_remote_service = lambda server, totals: heard.append(
                (server, totals)
            )
            async with trio.open_nursery() as nursery:
                for link, scheduler in zip(links, schedulers, strict=True):
                    nursery.start_soon(Peers(link, scheduler).run)
                await _garbage(ports[1])
                _serve(schedulers[0], 990_000)
                _serve(schedulers[0], 10_000)
                while not heard:
                    await trio.sleep(0.01)
                # Less than the threshold is told, too, but later.
                _serve(schedulers[0], 10_000)
                while heard[-1][1] != {"a": 1_010_000}:
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
            assert len({server for server, _ in heard}) == 1

    trio.run(main)


def test_a_port_that_is_taken_gets_one_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        link = Link(f"127.0.0.1:{taken.getsockname()[1]}", (), KEY, 1.0)
        with pytest.raises(InputError, match="cannot listen: Address already in use"):
            Peers(link, get_scheduler("sfq").make({}, 0.0))


def _serve(scheduler: object, size: int) -> None:
    request = Request("write", size, "a")
    scheduler.arrive(request, 0.0)  # type: ignore[attr-defined]
    assert scheduler.dispatch(0.0) == [request]  # type: ignore[attr-defined]
    scheduler.complete(request, size, 0.0)  # type: ignore[attr-defined]


async def _free_port() -> int:
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as port:
        await port.bind(("127.0.0.1", 0))
        number: int = port.getsockname()[1]
        return number


async def _garbage(port: int) -> None:
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as sender:
        for data in (b"", b"x" * 1000, encode("false", {"a": 1e18}, OTHER)):
            await sender.sendto(data, ("127.0.0.1", port))
