# SPDX-License-Identifier: MIT
"""Service on other servers, so that shares hold for all servers together (DSFQ).

An application's share is a share of the total service of all servers (two-level
scheduling, section 3.1). The start tag of its next request here therefore also counts
d, the bytes it was served on other servers since its previous request here (the *delay
value* of the request).

There are two ways to obtain d:

- `ReportedService`: a server reports to the others whenever it has served an
  application a threshold more (`ServiceReporter`). A report holds totals since the
  server started. So the next report makes up for a lost one, and a late or repeated
  report changes nothing.
- `Layout`: an application whose files are spread evenly over n servers is served
  n - 1 bytes elsewhere for every byte here. Only the layout factor n must be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.errors import InputError

__all__ = ["Layout", "RemoteService", "ReportedService", "ServiceReporter"]


class RemoteService(Protocol):
    """A source of delay values."""

    def take_delay_bytes(self, application: str, last_cost_bytes: int) -> float:
        """Return d of the application's next request and count it as used.

        `last_cost_bytes` is what the application's previous request was charged.
        """


class ReportedService:
    """Delay values from the reports of other servers."""

    def __init__(self) -> None:
        self._totals_bytes: dict[tuple[str, str], float] = {}
        self._pending_bytes: dict[str, float] = {}

    def record(self, server: str, served_bytes: Mapping[str, float]) -> None:
        """Record a report: totals by application since the server started."""
        for application, total in served_bytes.items():
            known = self._totals_bytes.get((server, application), 0.0)
            if total > known:
                self._totals_bytes[server, application] = total
                pending = self._pending_bytes.get(application, 0.0)
                self._pending_bytes[application] = pending + total - known

    def take_delay_bytes(self, application: str, last_cost_bytes: int) -> float:  # noqa: ARG002
        """Return the service that was reported since the last call."""
        return self._pending_bytes.pop(application, 0.0)


class Layout:
    """Delay values inferred from the layout of files.

    Parameters
    ----------
    factors
        Application -> number of servers that hold its files; 1 if it is not named.
    """

    def __init__(self, factors: Mapping[str, int]) -> None:
        for application, factor in factors.items():
            if factor < 1:
                raise InputError(
                    f"{factor} is not a number of servers",
                    where=f"layout of {application}",
                    remedy="give a whole number of at least 1",
                )
        self._factors = dict(factors)

    def take_delay_bytes(self, application: str, last_cost_bytes: int) -> float:
        """Return (n - 1) times the cost of the previous request."""
        return float((self._factors.get(application, 1) - 1) * last_cost_bytes)


class ServiceReporter:
    """Decides when the totals of this server are reported to the other servers.

    Parameters
    ----------
    threshold_bytes
        Report when an application was served this much since the last report.
    """

    def __init__(self, threshold_bytes: float) -> None:
        if not threshold_bytes > 0:
            raise InputError(
                f"{threshold_bytes!r} is not a valid threshold",
                where="threshold",
                remedy="give a positive number of bytes",
            )
        self._threshold_bytes = threshold_bytes
        self._reported_bytes: dict[str, int] = {}

    def next_report(self, served_bytes: Mapping[str, int]) -> dict[str, int] | None:
        """Return the totals to report; None if none has grown by the threshold."""
        reported = self._reported_bytes
        if not any(
            total - reported.get(application, 0) >= self._threshold_bytes
            for application, total in served_bytes.items()
        ):
            return None
        self._reported_bytes = dict(served_bytes)
        return dict(served_bytes)
