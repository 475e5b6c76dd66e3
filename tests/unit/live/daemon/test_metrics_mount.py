# SPDX-License-Identifier: MIT
"""Figures of a mount for Prometheus."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from penstock.live.daemon.metrics import MountCollector

LINE = {
    "name": "viz",
    "throughput": 1e6,
    "latency": 0.05,
    "queued": 3,
    "queued_operations": 0,
    "operations": 5,
    "p95_s": None,
    "bytes_per_s": 0.0,
    "requests": 7,
    "bytes": 4096,
    "windows": 2,
    "kept": 1,
}
ORDER = {"depth": None, "outstanding": 1, "applications": [LINE]}


def figures(order: dict[str, Any] | None) -> CollectorRegistry:
    state = {
        "point": "/mnt",
        "read": {"bytes": 1},
        "write": {"bytes": 2},
        "waiting": 4,
        "order": order,
    }
    registry = CollectorRegistry()
    registry.register(MountCollector(lambda: state))
    return registry


def test_a_mount_without_slos_has_no_metrics_of_applications() -> None:
    registry = figures(None)
    labels = {"mount": "/mnt", "kind": "write"}
    assert registry.get_sample_value("penstock_mount_bytes_total", labels) == 2
    assert registry.get_sample_value("penstock_mount_waiting", {"mount": "/mnt"}) == 4
    assert registry.get_sample_value("penstock_mount_depth", {"mount": "/mnt"}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queued", 3),
        ("promised_seconds", 0.05),
        ("bytes_total", 4096),
        ("kept_windows_total", 1),
    ],
)
def test_applications(name: str, value: float) -> None:
    labels = {"mount": "/mnt", "application": "viz"}
    sample = figures(ORDER).get_sample_value(f"penstock_application_{name}", labels)
    assert sample == value


def test_unknown_values_are_nan_and_no_limit_is_infinite() -> None:
    labels = {"mount": "/mnt", "application": "viz"}
    p95 = figures(ORDER).get_sample_value("penstock_application_p95_seconds", labels)
    assert p95 is not None
    assert isnan(p95)
    depth = figures(ORDER).get_sample_value("penstock_mount_depth", {"mount": "/mnt"})
    assert depth == float("inf")
