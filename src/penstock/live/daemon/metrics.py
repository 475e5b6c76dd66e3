# SPDX-License-Identifier: MIT
"""Figures for Prometheus: how jobs and mounts stand, read whenever Prometheus asks.

Rates are in bytes per second, volumes in bytes, times in seconds. The label of a job is
``name``, since Prometheus uses ``job`` for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from math import inf, nan
from typing import Any, Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from penstock.errors import InputError
from penstock.live.wire.messages import StatusDocument

__all__ = ["JobCollector", "MountCollector", "answering", "publish"]

_LABELS: Final = ("user", "name")
#: Figure of a job -> field of its status line, and meaning.
_GAUGES: Final = {
    "granted_bytes_per_second": ("grant", "rate that the job may draw"),
    "demanded_bytes_per_second": ("demanded", "rate that the job would draw"),
    "achieved_bytes_per_second": ("achieved", "rate that the job draws"),
    "yield": ("progress_yield", "1 - lost time / age (papers/1 eq. 6)"),
    "lost_seconds": ("lost_s", "time lost to waiting and slow I/O"),
    "staged_bytes": ("staged_bytes", "volume in journals that is not in the files yet"),
    "active": ("active", "1 if the job has an I/O operation"),
}
_COUNTERS: Final = {
    "moved_bytes": ("moved_bytes", "volume that control has seen"),
    "uncontrolled_bytes": ("uncontrolled_bytes", "volume that bypassed control"),
    "held_up_seconds": (
        "held_up_s",
        "time that calls were held up, added over callers",
    ),
    "operations": ("operations", "I/O operations completed"),
}
#: Figure of an application at a mount -> field of its state, and meaning.
_APPLICATION_GAUGES: Final = {
    "promised_bytes_per_second": ("throughput", "throughput that it is promised"),
    "promised_seconds": ("latency", "bound on its response times"),
    "bytes_per_second": ("bytes_per_s", "throughput in the last window"),
    "p95_seconds": ("p95_s", "95th percentile of response times, last window"),
    "queued": ("queued", "requests that wait"),
}
_APPLICATION_COUNTERS: Final = {
    "requests": ("requests", "requests answered"),
    "bytes": ("bytes", "volume moved"),
    "windows": ("windows", "windows in which requests were answered"),
    "kept_windows": ("kept", "windows whose 95th percentile kept the bound"),
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
                    family.add_metric([str(line.user), line.job_name], value)
                yield family


class MountCollector(Collector):
    """Turns the state of a mount into figures.

    Parameters
    ----------
    state
        Returns how the mount stands, as ``penstock mount --status --json`` has it;
        called in the thread of the web server.
    """

    def __init__(self, state: Callable[[], Mapping[str, Any]]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield all figures."""
        state = self._state()
        point = state["point"]
        moved = CounterMetricFamily(
            "penstock_mount_bytes", "volume moved", labels=("mount", "kind")
        )
        for kind in ("read", "write"):
            moved.add_metric([point, kind], state[kind]["bytes"])
        yield moved
        yield _of_mount("waiting", "requests that wait", point, state["waiting"])
        order = state["order"]
        if order is not None:
            yield from _of_order(point, order)


def _of_order(point: str, order: Mapping[str, Any]) -> Iterator[Metric]:
    depth = inf if order["depth"] is None else order["depth"]
    yield _of_mount("depth", "requests that may be under way", point, depth)
    yield _of_mount(
        "outstanding", "requests that are under way", point, order["outstanding"]
    )
    for kind, table in (
        (GaugeMetricFamily, _APPLICATION_GAUGES),
        (CounterMetricFamily, _APPLICATION_COUNTERS),
    ):
        for name, (field, meaning) in table.items():
            labels = ("mount", "application")
            family = kind(f"penstock_application_{name}", meaning, labels=labels)
            for line in order["applications"]:
                value = nan if line[field] is None else float(line[field])
                family.add_metric([point, line["name"]], value)
            yield family


def _of_mount(name: str, meaning: str, point: str, value: float) -> Metric:
    family = GaugeMetricFamily(f"penstock_mount_{name}", meaning, labels=("mount",))
    family.add_metric([point], value)
    return family


def publish(
    address: str, status: Callable[[], StatusDocument]
) -> AbstractContextManager[None]:
    """Answer Prometheus at ``HOST:PORT`` how jobs stand."""
    return answering(address, JobCollector(status))


@contextmanager
def answering(address: str, collector: Collector) -> Iterator[None]:
    """Answer Prometheus at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(collector)
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
