# SPDX-License-Identifier: MIT
"""Figures for Prometheus."""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from http.client import HTTPConnection
from itertools import pairwise
from math import inf, isnan, nan

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.errors import InputError
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.daemon import metrics
from penstock.live.daemon.metrics import publish, render_jobs
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    JobCounters,
    JobJoined,
    StatusDocument,
)
from support.waiting import LIMIT_S


def status() -> StatusDocument:
    """Return a status with one job that has moved 60 bytes."""
    config = AgentConfig("control", [], 0.1, 0.1, 3.0, 1.0, reads=True)
    coordinator = Coordinator(Controller("fcfs", 100.0, compiled=False), config)
    coordinator.receive("n", AgentHello([]), 0.0)
    coordinator.receive("n", JobJoined("7:a", 7, "7", 0, 0.0), 0.0)
    zero = JobCounters("7:a", 0, 0.0, 0.0, waiting=False, idle_s=9.0)
    coordinator.receive("n", CounterReport([zero], 1), 0.0)
    counts = JobCounters(
        "7:a", 1, 60.0, 2.5, waiting=True, idle_s=0.0, uncontrolled_bytes=9.0
    )
    coordinator.receive("n", CounterReport([counts], 1), 1.0)
    coordinator.decide(1.0)
    return coordinator.status(1.0)


Samples = dict[str, dict[frozenset[tuple[str, str]], float]]


def samples(text: str) -> Samples:
    """Return the samples of a text as Prometheus's own parser reads it."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            place = found.setdefault(sample.name, {})
            place[frozenset(sample.labels.items())] = sample.value
    return found


def test_the_figures() -> None:
    found = samples(render_jobs(status()))
    labels = frozenset({("user", "7"), ("name", "a")})

    def figure(name: str) -> float:
        return found[f"penstock_job_{name}"][labels]

    assert figure("granted_bytes_per_second") == 100.0
    assert figure("demanded_bytes_per_second") == 100.0
    assert figure("achieved_bytes_per_second") == 60.0
    assert figure("moved_bytes_total") == 60.0
    assert figure("uncontrolled_bytes_total") == 9.0
    assert figure("held_up_seconds_total") == 2.5
    assert figure("active") == 1.0
    assert figure("yield") == 1.0
    assert found["penstock_jobs"] == {frozenset(): 1.0}
    assert found["penstock_bandwidth_bytes_per_second"] == {frozenset(): 100.0}
    facts = frozenset({("policy", "fcfs"), ("mode", "control")})
    assert found["penstock_control_info"] == {facts: 1.0}


def test_counters_and_gauges_are_told_apart() -> None:
    kinds = {
        family.name: family.type
        for family in text_string_to_metric_families(render_jobs(status()))
    }
    assert kinds["penstock_decisions"] == "counter"
    assert kinds["penstock_job_moved_bytes"] == "counter"
    assert kinds["penstock_job_yield"] == "gauge"


@pytest.mark.parametrize("value", [inf, -inf, nan, 1e300, 1.0 / 3.0])
@pytest.mark.parametrize("name", ["a b", '"', "\\", "two\nlines", "é{}=,", "\\n"])
def test_any_name_and_any_number(name: str, value: float) -> None:
    document = status()
    line = msgspec.structs.replace(document.jobs[0], job_name=name, grant=value)
    document = msgspec.structs.replace(document, jobs=[line])
    found = samples(render_jobs(document))["penstock_job_granted_bytes_per_second"]
    ((labels, read),) = found.items()
    assert dict(labels)["name"] == name
    assert read == value or isnan(read) == isnan(value) is True


def read(address: str) -> tuple[str, str]:
    """Return the type and the text of what a server of metrics answers."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


@pytest.fixture
def address() -> str:
    """Return an address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_published(address: str) -> None:
    with publish(address, status):
        kind, text = read(address)
    assert kind.startswith("text/plain; version=0.0.4")
    assert "penstock_jobs" in samples(text)
    with pytest.raises(urllib.error.URLError):
        read(address)


def refusal_of(address: str) -> tuple[int, str]:
    """Return the status and the text with which a request is refused."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        read(address)
    with refused.value as answer:
        return answer.code, answer.read().decode()


@pytest.mark.parametrize(
    ("reader", "user", "may_read"),
    [
        ("", 65_301, False),
        ("", None, False),
        ("", 0, True),
        ("65301@", 65_301, True),
        ("65301@", 65_302, False),
    ],
)
def test_on_this_machine_only_operators_and_one_user_may_read(
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    reader: str,
    user: int | None,
    may_read: bool,
) -> None:
    monkeypatch.setattr(metrics, "user_of_connection", lambda *_: user)
    with publish(f"{reader}{address}", status):
        if may_read:
            assert "penstock_jobs" in read(address)[1]
        else:
            code, text = refusal_of(address)
            assert (code, text.count("\n")) == (403, 1)
            assert "only operators and the user" in text


def test_other_machines_may_read_where_they_reach_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "user_of_connection", lambda *_: None)
    server = object.__new__(metrics._Server)
    server._reader_id, server._clients = None, metrics._Clients()
    client = ("198.51.100.7", 40_000)
    assert server.may_read(client, ("198.51.100.1", 9400))
    assert not server.may_read(client, ("127.0.0.1", 9400))
    # Of a process that has ended.
    for own in ("127.0.0.1", "::ffff:127.0.0.1", "::1"):
        assert not server.may_read((own, 40_000), ("198.51.100.1", 9400))


def test_looks_for_users_follow_one_another_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun_s: list[float] = []

    def look(*_: object) -> None:
        begun_s.append(time.monotonic())
        end_s = time.thread_time() + 0.02
        while time.thread_time() < end_s:
            pass

    monkeypatch.setattr(metrics, "user_of_connection", look)
    clients = metrics._Clients()
    ends = ("127.0.0.1", 1), ("127.0.0.1", 2)
    threads = [threading.Thread(target=clients.user_of, args=ends) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    gaps_s = [after - before for before, after in pairwise(begun_s)]
    assert min(gaps_s) >= 0.02 * (1.0 + metrics._REST)


def test_a_reader_whom_nobody_knows_is_refused(address: str) -> None:
    with (
        pytest.raises(InputError, match=r"no user is called 'nobody-at-all'"),
        publish(f"nobody-at-all@{address}", status),
    ):
        pass


def test_a_foreign_page_in_a_browser_reads_nothing(address: str) -> None:
    with (
        publish(address, status),
        closing(HTTPConnection(address, timeout=LIMIT_S)) as connection,
    ):
        connection.request("GET", "/metrics", headers={"Host": "foreign.example"})
        assert connection.getresponse().status == 403


def test_too_many_connections_are_closed_and_silent_ones_end(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_LONGEST_S", 1.0)
    host, _, port = address.partition(":")
    with publish(address, status):
        silent = [socket.create_connection((host, int(port))) for _ in range(40)]
        try:
            for each in silent:
                each.settimeout(LIMIT_S)
            # Those beyond the limit are closed at once, the others after a second.
            assert [each.recv(1) for each in silent] == [b""] * 40
            assert "penstock_jobs" in read(address)[1]
        finally:
            for each in silent:
                each.close()


def test_metrics_are_collected_once_for_readers_who_ask_together(address: str) -> None:
    """Each collection stops the control loop for a moment."""
    collected = []

    def counted() -> StatusDocument:
        collected.append(1)
        return status()

    with publish(address, counted):
        began_s = time.monotonic()
        for _ in range(5):
            read(address)
        most = 1 + (time.monotonic() - began_s) / metrics._FRESH_S
    assert 1 <= len(collected) <= most


def test_a_controller_that_does_not_answer(address: str) -> None:
    def late() -> StatusDocument:
        raise TimeoutError

    with publish(address, late), pytest.raises(urllib.error.HTTPError) as refused:
        read(address)
    assert refused.value.code == 503
    refused.value.close()


def test_many_jobs_are_rendered_without_explanations() -> None:
    config = AgentConfig("control", [], 0.1, 0.1, 3.0, 1.0, reads=True)
    coordinator = Coordinator(Controller("fcfs", 100.0, compiled=False), config)
    coordinator.receive("n", AgentHello([]), 0.0)
    for number in range(50):
        coordinator.receive("n", JobJoined(f"7:{number}", 7, "7", 0, 0.0), 0.0)
    document = coordinator.status(1.0, explains=False)
    assert {line.why for line in document.jobs} == {""}
    full = coordinator.status(1.0)
    assert all(line.why for line in full.jobs)
    assert render_jobs(document) == render_jobs(full)


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:x", "127.0.0.1:99999"])
def test_a_bad_address(address: str) -> None:
    with (
        pytest.raises(InputError, match="write HOST:PORT"),
        publish(address, status),
    ):
        pass
