# SPDX-License-Identifier: MIT
"""Metrics of jobs and mounts for Prometheus, collected when Prometheus asks for them.

Rates are in bytes per second, volumes in bytes, times in seconds. The label with a
job's name is ``name``, since Prometheus itself uses ``job``.
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
#: Metric of a job -> field of `JobStatus`, and help text.
_GAUGES: Final = {
    "granted_bytes_per_second": ("grant", "rate that the job may draw"),
    "demanded_bytes_per_second": (
        "demanded",
        "rate that the job would draw without control",
    ),
    "achieved_bytes_per_second": ("drawn_bytes_per_s", "rate that the job draws"),
    "yield": ("progress_yield", "1 - lost time / age (bandwidth sharing, equation 6)"),
    "lost_seconds": ("lost_s", "time lost to control"),
    "staged_bytes": ("staged_bytes", "volume in journals that is not in the files yet"),
    "active": ("active", "1 if the job has an operation, else 0"),
}
_COUNTERS: Final = {
    "moved_bytes": ("moved_bytes", "volume moved under control"),
    "uncontrolled_bytes": ("uncontrolled_bytes", "volume moved without control"),
    "held_up_seconds": (
        "held_up_s",
        "time that calls were held up, added over callers",
    ),
    "operations": ("operations", "operations completed"),
}
#: Metric of an application at a mount -> key in the status, and help text.
_APPLICATION_GAUGES: Final = {
    "promised_bytes_per_second": ("throughput", "throughput that is promised"),
    "promised_seconds": ("latency", "bound on response times that is promised"),
    "bytes_per_second": ("bytes_per_s", "throughput in the last window"),
    "p95_seconds": ("p95_s", "95th percentile of response times in the last window"),
    "queued": ("queued", "requests that are waiting"),
}
_APPLICATION_COUNTERS: Final = {
    "requests": ("requests", "requests answered"),
    "bytes": ("bytes", "volume moved"),
    "windows": ("windows", "windows in which requests were answered"),
    "kept_windows": ("kept", "windows whose 95th percentile kept the bound"),
}


class JobCollector(Collector):
    """Collects the metrics of the controller and its jobs.

    Parameters
    ----------
    status
        Returns the status of all jobs; called in the thread of the web server.
    """

    def __init__(self, status: Callable[[], StatusDocument]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        status = self._status()
        yield GaugeMetricFamily(
            "penstock_bandwidth_bytes_per_second",
            "bandwidth that all jobs share; NaN: not known yet",
            value=nan if status.bandwidth is None else status.bandwidth,
        )
        yield _learnt(status)
        yield GaugeMetricFamily("penstock_jobs", "jobs", value=len(status.jobs))
        yield CounterMetricFamily(
            "penstock_decisions", "decisions taken", value=status.decisions
        )
        facts = {"policy": status.policy, "mode": status.mode}
        yield InfoMetricFamily(
            "penstock_control", "policy and mode of control", value=facts
        )
        for kind, table in (
            (GaugeMetricFamily, _GAUGES),
            (CounterMetricFamily, _COUNTERS),
        ):
            for name, (field, meaning) in table.items():
                family = kind(f"penstock_job_{name}", meaning, labels=_LABELS)
                for line in status.jobs:
                    value = getattr(line, field)
                    # Only a grant may be None: it has no limit.
                    value = inf if value is None else float(value)
                    family.add_metric([str(line.user), line.job_name], value)
                yield family


def _learnt(status: StatusDocument) -> Metric:
    family = GaugeMetricFamily(
        "penstock_learnt_bandwidth_bytes_per_second",
        "bandwidth that is believed for reads, writes, or both at once",
        labels=("storage", "kind"),
    )
    for storage in status.storages:
        for kind, belief in storage.beliefs.items():
            family.add_metric([storage.name, kind], belief.bandwidth)
    return family


class MountCollector(Collector):
    """Collects the metrics of a mount.

    Parameters
    ----------
    state
        Returns the status of the mount, as in ``penstock mount --status --json``;
        called in the thread of the web server.
    """

    def __init__(self, state: Callable[[], Mapping[str, Any]]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        state = self._state()
        point = state["point"]
        moved = CounterMetricFamily(
            "penstock_mount_bytes", "volume moved", labels=("mount", "kind")
        )
        for kind in ("read", "write"):
            moved.add_metric([point, kind], state[kind]["bytes"])
        yield moved
        yield _of_mount("waiting", "requests that are waiting", point, state["waiting"])
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
    """Serve the metrics of jobs to Prometheus at ``HOST:PORT``."""
    return answering(address, JobCollector(status))


@contextmanager
def answering(address: str, collector: Collector) -> Iterator[None]:
    """Serve the metrics of a collector to Prometheus at ``HOST:PORT``."""
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
