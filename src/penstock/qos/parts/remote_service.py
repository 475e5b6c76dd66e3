# SPDX-License-Identifier: MIT
"""Service on other servers, so that shares hold for all servers together (DSFQ).

An application's share is a share of the total service of all servers (two-level
scheduling, section 3.1). The start tag of its next request here therefore also counts
d, the bytes it was served on other servers since its previous request here (the *delay
value* of the request).

There are two ways to obtain d:

- Reports: a server reports to the others whenever it has served an application a
  threshold more (`ServiceReporter`). A report holds totals since the server started. So
  the next report makes up for a lost one, and a late or repeated report changes nothing
  (`ReportedService`).
- The layout: an application whose files are spread evenly over n servers is served
  n - 1 bytes elsewhere for every byte here. Only the layout factor n must be known.

`penstock.qos.sfq.take_delay_bytes` returns d.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import InputError

__all__ = ["ReportedService", "ServiceReporter", "check_layout"]


class ReportedService:
    """What the reports of other servers say, beyond what was known before."""

    def __init__(self) -> None:
        self._totals_bytes: dict[tuple[str, str], float] = {}

    def new(self, server: str, served_bytes: Mapping[str, float]) -> dict[str, float]:
        """Record a report, totals since the server started; return what is new in it.

        The result has every application of the report.
        """
        new_bytes = {}
        for application, total in served_bytes.items():
            known = self._totals_bytes.get((server, application), 0.0)
            self._totals_bytes[server, application] = max(total, known)
            new_bytes[application] = max(total - known, 0.0)
        return new_bytes


def check_layout(factors: Mapping[str, int]) -> None:
    """Raise `InputError` if a factor, application -> number of servers, is below 1."""
    for application, factor in factors.items():
        if factor < 1:
            raise InputError(
                f"{factor} is not a number of servers",
                where=f"layout of {application}",
                remedy="give a whole number of at least 1",
            )


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
