# SPDX-License-Identifier: MIT
"""Figures for Prometheus: how jobs stand, read whenever Prometheus asks.

Rates are in bytes per second, volumes in bytes, times in seconds. The label of a job is
``name``, since Prometheus uses ``job`` for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from penstock.errors import InputError
from penstock.live.messages import StatusDocument

__all__ = ["JobCollector", "publish"]

_LABELS: Final = ("user", "name")
#: Figure of a job -> field of its status line, and meaning.
_GAUGES: Final = {
    "granted_bytes_per_second": ("granted", "rate that the job may draw"),
    "demanded_bytes_per_second": ("demanded", "rate that the job would draw"),
    "achieved_bytes_per_second": ("achieved", "rate that the job draws"),
    "yield": ("progress_yield", "1 - lost time / age (papers/1 eq. 6)"),
    "lost_seconds": ("lost", "time lost to waiting and slow I/O"),
    "active": ("active", "1 if the job has an I/O operation"),
}
_COUNTERS: Final = {
    "moved_bytes": ("moved", "volume that control has seen"),
    "uncontrolled_bytes": ("uncontrolled", "volume that bypassed control"),
    "held_up_seconds": ("held_up", "time that calls were held up, added over callers"),
    "operations": ("operations", "I/O operations completed"),
}


class JobCollector(Collector):
    """Turns a status into figures.

    Parameters
    ----------
    status
        Returns how everything stands; called in the thread of the web server.
    """

    def __init__(self, status: Callable[[], StatusDocument]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield all figures."""
        status = self._status()
        yield GaugeMetricFamily(
            "penstock_bandwidth_bytes_per_second",
            "bandwidth that all jobs share",
            value=status.bandwidth,
        )
        yield GaugeMetricFamily("penstock_jobs", "jobs", value=len(status.jobs))
        yield CounterMetricFamily(
            "penstock_decisions", "decisions taken", value=status.decisions
        )
        facts = {"policy": status.policy, "mode": status.mode}
        yield InfoMetricFamily("penstock_control", "what decides", value=facts)
        for kind, table in (
            (GaugeMetricFamily, _GAUGES),
            (CounterMetricFamily, _COUNTERS),
        ):
            for name, (field, meaning) in table.items():
                family = kind(f"penstock_job_{name}", meaning, labels=_LABELS)
                for line in status.jobs:
                    value = float(getattr(line, field))
                    family.add_metric([str(line.user), line.job], value)
                yield family


@contextmanager
def publish(address: str, status: Callable[[], StatusDocument]) -> Iterator[None]:
    """Answer Prometheus at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(JobCollector(status))
    try:
        server, thread = start_http_server(int(port), host or "127.0.0.1", registry)
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"cannot listen: {error}",
            where=f"metrics {address!r}",
            remedy="write HOST:PORT, e.g. 127.0.0.1:9400",
        ) from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
