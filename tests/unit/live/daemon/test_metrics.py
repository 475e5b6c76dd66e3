# SPDX-License-Identifier: MIT
"""Figures for Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from penstock.errors import InputError
from penstock.live.control.controller import Controller
from penstock.live.control.coordinator import Coordinator
from penstock.live.daemon.metrics import JobCollector, publish
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    JobCounters,
    JobJoined,
    StatusDocument,
)


def status() -> StatusDocument:
    """Return a status with one job that has moved 60 bytes."""
    config = AgentConfig("control", [], 0.1, 0.1, 3.0, 1.0, reads=True)
    coordinator = Coordinator(Controller("fcfs", 100.0, compiled=False), config)
    coordinator.receive("n", AgentHello([]), 0.0)
    coordinator.receive("n", JobJoined("7:a", 7, "7", 0, 0.0), 0.0)
    counts = JobCounters(
        "7:a", 1, 60.0, 2.5, waiting=True, idle_s=0.0, uncontrolled_bytes=9.0
    )
    coordinator.receive("n", CounterReport([counts], 1), 1.0)
    coordinator.decide(1.0)
    return coordinator.status(1.0)


def test_the_figures() -> None:
    registry = CollectorRegistry()
    registry.register(JobCollector(status))

    def figure(name: str) -> float | None:
        labels = {"user": "7", "name": "a"}
        return registry.get_sample_value(f"penstock_job_{name}", labels)

    assert figure("granted_bytes_per_second") == 100.0
    assert figure("demanded_bytes_per_second") == 100.0
    assert figure("achieved_bytes_per_second") == 60.0
    assert figure("moved_bytes_total") == 60.0
    assert figure("uncontrolled_bytes_total") == 9.0
    assert figure("held_up_seconds_total") == 2.5
    assert figure("active") == 1.0
    assert figure("yield") == 1.0
    assert registry.get_sample_value("penstock_jobs") == 1.0
    assert registry.get_sample_value("penstock_bandwidth_bytes_per_second") == 100.0
    facts = {"policy": "fcfs", "mode": "control"}
    assert registry.get_sample_value("penstock_control_info", facts) == 1.0


def test_published() -> None:
    with publish("127.0.0.1:0", status):
        pass


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:x", "127.0.0.1:99999"])
def test_a_bad_address(address: str) -> None:
    with (
        pytest.raises(InputError, match="write HOST:PORT"),
        publish(address, status),
    ):
        pass
