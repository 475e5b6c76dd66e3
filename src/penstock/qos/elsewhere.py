# SPDX-License-Identifier: MIT
"""Service on other servers: what makes shares hold for all servers together.

An application's share is one of the total service (DSFQ, papers/5 section 3.1). So the
start tag of its next request here also counts what it was served elsewhere since its
last one, the *delay value* of the request.

Two ways to know it:

- `ReportedService`: a server reports to the others whenever it has served an
  application a threshold more (`ServiceReporter`). A report holds totals since the
  server began, so the next report makes up for a lost one, and a late or repeated
  report changes nothing.
- `Layout`: an application whose files lie on n servers is served, for every byte here,
  n - 1 bytes elsewhere. Only the layout factor n has to be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.errors import InputError

__all__ = ["Layout", "RemoteService", "ReportedService", "ServiceReporter"]


class RemoteService(Protocol):
    """What is known of service on other servers (bytes)."""

    def since(self, application: str, last: int) -> float:
        """Return the delay value of its next request; `last`: cost of the last one.

        What has been returned is not returned again.
        """


class ReportedService:
    """Service on other servers as they tell it."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, str], float] = {}
        self._unused: dict[str, float] = {}

    def hear(self, server: str, totals: Mapping[str, float]) -> None:
        """Take a message in: totals (bytes) by application."""
        for application, total in totals.items():
            known = self._totals.get((server, application), 0.0)
            if total > known:
                self._totals[server, application] = total
                before = self._unused.get(application, 0.0)
                self._unused[application] = before + total - known

    def since(self, application: str, last: int) -> float:  # noqa: ARG002
        """Return what was heard of since it was last asked for."""
        return self._unused.pop(application, 0.0)


class Layout:
    """Service on other servers as the layout of files implies.

    Parameters
    ----------
    factors
        Application -> number of servers its files lie on; 1 if it is not named.
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

    def since(self, application: str, last: int) -> float:
        """Return (n - 1) times the last request."""
        return float((self._factors.get(application, 1) - 1) * last)


class ServiceReporter:
    """Says when the other servers are to be told, and what.

    Parameters
    ----------
    threshold
        Service of an application (bytes) after which they are told.
    """

    def __init__(self, threshold: float) -> None:
        if not threshold > 0:
            raise InputError(
                f"{threshold!r} is no threshold",
                where="threshold",
                remedy="give a positive number of bytes",
            )
        self._threshold = threshold
        self._told: dict[str, int] = {}

    def news(self, served: Mapping[str, int]) -> dict[str, int] | None:
        """Return the totals to tell, if one of them has grown by the threshold."""
        told = self._told
        if not any(n - told.get(a, 0) >= self._threshold for a, n in served.items()):
            return None
        self._told = dict(served)
        return dict(served)
