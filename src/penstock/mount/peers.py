# SPDX-License-Identifier: MIT
"""Other mounts: tells them what was served here, and hears what they tell."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import trio

from penstock.errors import InputError
from penstock.mount.exchange import Link, decode, encode
from penstock.qos import QosScheduler, ServiceReporter

__all__ = ["Peers"]

#: Time between two looks whether there is something to tell (s).
_LOOK_S: Final = 0.02
#: So many looks after the last message all is told that is new.
_LOOKS: Final = 50
#: Bytes of a datagram.
_LARGEST: Final = 1 << 16


class Peers:
    """Tells other mounts what was served here, and hears them.

    Parameters
    ----------
    scheduler
        Whose service is told, and who is to know what others tell.
    """

    def __init__(self, link: Link, scheduler: QosScheduler) -> None:
        self._link = link
        self._port = _bound(link)
        self._scheduler = scheduler
        self._run = secrets.token_hex(8)
        self._teller = ServiceReporter(link.threshold)
        self._told: Mapping[str, float] = {}
        self._looks = 0

    async def run(self) -> None:
        """Tell and hear, for ever."""
        with trio.socket.from_stdlib_socket(self._port) as port:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hear, port)
                others = self._link.others()
                while True:
                    await trio.sleep(_LOOK_S)
                    await self._tell(port, others)

    async def _tell(self, port: Any, others: list[tuple[str, int]]) -> None:
        served = self._news()
        if served is None:
            return
        datagram = encode(self._run, served, self._link.key)
        for other in others:
            # Nobody there, no way there: the next message says it again.
            with suppress(OSError):
                await port.sendto(datagram, other)

    def _news(self) -> Mapping[str, float] | None:
        """Return what is worth a message now."""
        served = self._scheduler.served_bytes
        news: Mapping[str, float] | None = self._teller.next_report(served)
        self._looks += 1
        if news is None and self._looks >= _LOOKS and served != self._told:
            news = dict(served)
        if news is not None:
            self._told, self._looks = news, 0
        return news

    async def _hear(self, port: Any) -> None:
        while True:
            # An earlier datagram that found nobody is told as an error here.
            with suppress(OSError):
                totals = decode(await port.recv(_LARGEST), self._link.key)
                if totals is not None and totals.run != self._run:
                    self._scheduler.record_remote_service(totals.run, totals.served)


def _bound(link: Link) -> socket.socket:
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        port.bind(link.address())
    except OSError as error:
        port.close()
        raise InputError(
            f"cannot listen: {error.strerror}",
            where=f"exchange.listen: {link.listen}",
            remedy="take another port",
        ) from None
    return port
