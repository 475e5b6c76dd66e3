# SPDX-License-Identifier: MIT
"""Job records for the tests of the import."""

from __future__ import annotations

from typing import Any

from penstock.advice.logs.record import Burst, LoggedJob

__all__ = ["record"]


def record(*bursts: Burst, **changes: Any) -> LoggedJob:
    """Return a job of 100 s with the given bursts."""
    fields: dict[str, Any] = {
        "name": "a",
        "source": "file",
        "detail": "dxt",
        "bursts": bursts,
        "start_s": 1000.0,
        "run_s": 100.0,
        "log_bytes": sum(burst.volume_bytes for burst in bursts),
    }
    return LoggedJob(**(fields | changes))
