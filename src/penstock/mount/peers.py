# SPDX-License-Identifier: MIT
"""The other mounts of an exchange: exchange reports with them."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Final

from penstock.errors import InputError
from penstock.mount.exchange import ExchangeSettings, decode_report, encode_report
from penstock.qos import QosScheduler, ServiceReporter

__all__ = ["Peers"]

#: Time between two checks whether a report is due (s).
_CHECK_S: Final = 0.02
#: After this many checks without a report, any growth is reported. This is half the
#: time for which a report is valid (`penstock.qos.promises.VALID_S`).
_CHECKS: Final = 25
_MAX_DATAGRAM_BYTES: Final = 1 << 16


class Peers:
    """Exchanges reports with other mounts.

    Parameters
    ----------
    settings
        Addresses, key and threshold.
    scheduler
        Its totals are reported, and it receives the reports of others.
    locked
        Makes a block in which the scheduler may be used.
    dispatch
        Called in such a block after every report, which may release requests.
    """

    def __init__(
        self,
        settings: ExchangeSettings,
        scheduler: QosScheduler,
        locked: Callable[[], AbstractContextManager[None]],
        dispatch: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._locked = locked
        self._dispatch = dispatch
        self._socket = _bound_socket(settings)
        self._scheduler = scheduler
        self._run = secrets.token_hex(8)
        self._reporter = ServiceReporter(settings.threshold_bytes)
        self._reported_bytes: Mapping[str, float] = {}
        self._checks = 0

    async def run(self) -> None:
        """Send and receive reports, for ever."""
        with self._socket:
            self._socket.settimeout(0.0)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive_reports())
                addresses = self._settings.peer_addresses()
                # Main loop of the sender.
                while True:
                    await asyncio.sleep(_CHECK_S)
                    await self._send_report(addresses)

    async def _send_report(self, addresses: list[tuple[str, int]]) -> None:
        """Send a report to all peers if one is due."""
        with self._locked():
            served_bytes = dict(self._scheduler.served_bytes)
            wanting = self._scheduler.wanting(time.monotonic())
        report = self._next_report(served_bytes)
        if report is None:
            return
        datagram = encode_report(self._run, report, self._settings.key, wanting)
        loop = asyncio.get_running_loop()
        for address in addresses:
            # A peer may be down or unreachable; the next report holds the same totals.
            with suppress(OSError):
                await loop.sock_sendto(self._socket, datagram, address)

    def _next_report(
        self, served_bytes: Mapping[str, int]
    ) -> Mapping[str, float] | None:
        """Return the totals to report now; None if no report is due."""
        report: Mapping[str, float] | None = self._reporter.next_report(served_bytes)
        self._checks += 1
        overdue = self._checks >= _CHECKS and served_bytes != self._reported_bytes
        if report is None and overdue:
            report = served_bytes
        if report is not None:
            self._reported_bytes, self._checks = report, 0
        return report

    async def _receive_reports(self) -> None:
        """Pass the reports of other mounts to the scheduler, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            # The kernel reports here that an earlier datagram reached no peer.
            with suppress(OSError):
                datagram = await loop.sock_recv(self._socket, _MAX_DATAGRAM_BYTES)
                report = decode_report(datagram, self._settings.key)
                if report is not None and report.run != self._run:
                    with self._locked():
                        self._scheduler.record_remote_service(
                            report.run, report.served, time.monotonic(), report.wanting
                        )
                        self._dispatch()


def _bound_socket(settings: ExchangeSettings) -> socket.socket:
    """Return a UDP socket at the listen address."""
    udp_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        udp_socket.bind(settings.listen_address())
    except OSError as error:
        udp_socket.close()
        raise InputError(
            f"cannot listen: {error.strerror}",
            where=f"exchange.listen: {settings.listen}",
            remedy="choose another port",
        ) from None
    return udp_socket
