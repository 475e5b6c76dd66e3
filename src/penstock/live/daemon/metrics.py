# SPDX-License-Identifier: MIT
"""Metrics of jobs and mounts for Prometheus, collected when Prometheus asks for them.

Rates are in bytes per second, volumes in bytes, times in seconds. The label with a
job's name is ``name``, since Prometheus itself uses ``job``.

The names of jobs are not for everybody. On this machine, operators and one other user
may read them, by default `READER`: the kernel says which user has opened a connection.
At an address that other machines reach, they may read them too. The number of
connections, their rate and their length are limited, and so is how often the metrics
are collected: readers share the interpreter with the control loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf, isfinite, nan
from operator import attrgetter
from socket import AI_PASSIVE, SHUT_RDWR, SHUT_WR, SOCK_STREAM, getaddrinfo
from socketserver import TCPServer
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.errors import InputError
from penstock.live.wire.identity import is_operator, user_id
from penstock.live.wire.messages import StatusDocument
from penstock.live.wire.peers import (
    TcpAddress,
    is_loopback,
    is_of_this_machine,
    names_loopback,
    user_of_connection,
)

__all__ = [
    "CONTENT_TYPE",
    "READER",
    "MountCollector",
    "answering",
    "publish",
    "render_jobs",
]

#: The text format that every Prometheus reads.
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: User who may read the metrics besides operators, unless another one is named.
READER: Final = "prometheus"
#: Connections that are served at a time; others are closed.
_MOST_CONNECTIONS: Final = 16
#: Least time between two connections (s), and longest time of one.
_PAUSE_S: Final = 0.02
_LONGEST_S: Final = 30.0
#: Pause after a look for the user of a connection, relative to its processor time.
_REST: Final = 9.0
#: How long metrics are given to other readers, too (s).
_FRESH_S: Final = 1.0
#: How long the rest of a request may take that is refused (s).
_REFUSED_S: Final = 0.2
_REFUSED: Final = (
    "HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain\r\n\r\n"
    "only operators and the user {reader} may read this "
    "(name another user: --metrics USER@HOST:PORT)\n"
)
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
    "would_hold_up_seconds": (
        "would_hold_up_s",
        "time for which dry runs would have held up calls, added over callers",
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
    "queued_operations": (
        "queued_operations",
        "metadata requests that are waiting",
    ),
}
_APPLICATION_COUNTERS: Final = {
    "requests": ("requests", "requests answered"),
    "operations": ("operations", "metadata requests"),
    "bytes": ("bytes", "volume moved"),
    "windows": ("windows", "windows in which requests were answered"),
    "kept_windows": ("kept", "windows whose 95th percentile kept the bound"),
}


def render_jobs(status: StatusDocument) -> str:
    """Return the metrics of the controller and its jobs in the text format.

    RATIONALE: the classes of prometheus_client need 120 ms for 2,000 jobs, in which
    the control loop competes with them for the interpreter; this needs 10 ms.
    """
    facts = f'mode="{_escaped(status.mode)}",policy="{_escaped(status.policy)}"'
    parts = [
        _family(
            "penstock_bandwidth_bytes_per_second",
            "gauge",
            "bandwidth that all jobs share; NaN: not known yet",
            [("", nan if status.bandwidth is None else status.bandwidth)],
        ),
        _family(
            "penstock_learnt_bandwidth_bytes_per_second",
            "gauge",
            "bandwidth that is believed for reads, writes, or both at once",
            _beliefs(status),
        ),
        _family("penstock_jobs", "gauge", "jobs", [("", len(status.jobs))]),
        _family(
            "penstock_decisions_total",
            "counter",
            "decisions taken",
            [("", status.decisions)],
        ),
        _family(
            "penstock_control_info",
            "gauge",
            "policy and mode of control",
            [(f"{{{facts}}}", 1)],
        ),
    ]
    labels = [
        f'{{user="{line.user}",name="{_escaped(line.job_name)}"}}'
        for line in status.jobs
    ]
    for kind, suffix, table in (
        ("gauge", "", _GAUGES),
        ("counter", "_total", _COUNTERS),
    ):
        for name, (field, meaning) in table.items():
            values = map(attrgetter(field), status.jobs)
            samples = zip(labels, values, strict=True)
            family = f"penstock_job_{name}{suffix}"
            parts.append(_family(family, kind, meaning, samples))
    return "".join(parts)


def _family(
    name: str, kind: str, meaning: str, samples: Iterable[tuple[str, float | None]]
) -> str:
    """Return one metric: its help, its type and its samples (labels, value)."""
    head = f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
    return head + "".join(
        [f"{name}{labels} {_number(value)}\n" for labels, value in samples]
    )


def _beliefs(status: StatusDocument) -> list[tuple[str, float]]:
    return [
        (f'{{storage="{_escaped(storage.name)}",kind="{kind}"}}', belief.bandwidth)
        for storage in status.storages
        for kind, belief in storage.beliefs.items()
    ]


def _number(value: float | None) -> str:
    # Only a grant may be None: it has no limit.
    if value is None:
        return "+Inf"
    if isfinite(value):
        return repr(float(value))
    return "NaN" if value != value else "+Inf" if value > 0.0 else "-Inf"


def _escaped(text: str) -> str:
    r"""Return a text as the value of a label: \, " and line ends are escaped."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


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
    """Serve the metrics of jobs to Prometheus at ``HOST:PORT`` or ``USER@HOST:PORT``.

    `status` returns the status of all jobs; it is called in a thread of the server.
    """
    return _serving(address, lambda: render_jobs(status()).encode())


def answering(address: str, collector: Collector) -> AbstractContextManager[None]:
    """Serve the metrics of a collector to Prometheus; `address`: see `publish`."""
    registry = CollectorRegistry()
    registry.register(collector)
    return _serving(address, lambda: generate_latest(registry))


class _Clients:
    """Tells which user of this machine has opened a connection.

    A look reads the table of all connections of the machine, beside the control loop.
    So there is one at a time, with pauses: they take a tenth of a processor at most.
    """

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self._next_s = -inf

    def user_of(self, client: TcpAddress, server: TcpAddress) -> int | None:
        """Return the user of a connection; None if it is not known."""
        with self._looking:
            time.sleep(max(self._next_s - time.monotonic(), 0.0))
            begun_s = time.thread_time()
            user = user_of_connection(client, server)
            spent_s = time.thread_time() - begun_s
            self._next_s = time.monotonic() + _REST * spent_s
        return user


class _Server(ThreadingHTTPServer):
    """A server of metrics, in IPv4 or IPv6; one thread for each request."""

    request_queue_size = 64

    def __init__(
        self, host: str, port: int, reader: str, render: Callable[[], bytes]
    ) -> None:
        self.host, self.reader = host, reader
        self._reader_id = user_id(reader)
        self._render = render
        self._clients = _Clients()
        #: When the metrics were collected last (s), and these.
        self._rendered_s, self._rendered = -inf, b""
        self._rendering = threading.Lock()
        self._places = threading.Semaphore(_MOST_CONNECTIONS)
        place = getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_PASSIVE)[0]
        self.address_family = place[0]
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking for the name of the host, which may take long."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or close it if there are too many."""
        time.sleep(_PAUSE_S)
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # too many threads
            self._places.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection in this thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer a request; after `_LONGEST_S` its connection ends."""
        end = threading.Timer(_LONGEST_S, _end, (request,))
        end.daemon = True
        end.start()
        try:
            super().finish_request(request, client_address)
        finally:
            end.cancel()

    def handle_error(self, *_: object) -> None:
        """Print nothing: clients that go away are no errors."""

    def may_read(self, client: TcpAddress, server: TcpAddress) -> bool:
        """Return True if who has opened this connection may read the metrics."""
        user = self._clients.user_of(client, server)
        if user is None:
            # Another machine, or a process of this one that has ended.
            return not (is_loopback(server[0]) or is_of_this_machine(client[0]))
        return is_operator(user) or user == self._reader_id

    def render(self) -> bytes:
        """Return the metrics, at most `_FRESH_S` old."""
        with self._rendering:
            if time.monotonic() - self._rendered_s > _FRESH_S:
                self._rendered = self._render()
                self._rendered_s = time.monotonic()
            return self._rendered


def _end(connection: Any) -> None:
    """End a connection; its thread, which reads or writes, notices it."""
    with suppress(OSError):
        connection.shutdown(SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers every request of who may read with the metrics."""

    server: _Server
    #: How long the other side may do nothing (s).
    timeout = 10.0

    def handle(self) -> None:
        """Answer the request of a connection, if its user may read the metrics."""
        # Before anything is read: others are not waited for.
        if self._may_read():
            super().handle()
            return
        connection = self.connection
        connection.sendall(_REFUSED.format(reader=self.server.reader).encode())
        # A request that was not read would end the connection before it is answered.
        connection.shutdown(SHUT_WR)
        connection.settimeout(_REFUSED_S)
        connection.recv(1 << 16)

    def _may_read(self) -> bool:
        client, server = self.client_address[:2], self.connection.getsockname()[:2]
        return self.server.may_read(client, server)

    def _names_this_server(self) -> bool:
        """Return False if a foreign page in a browser may have sent the request."""
        name = self.headers.get("Host", "localhost")
        if not is_loopback(self.connection.getsockname()[0]):
            return True
        return names_loopback(name) or name.partition(":")[0] == self.server.host

    def do_GET(self) -> None:
        """Answer a request."""
        if not self._names_this_server():
            self.send_error(403, "the name in the address is not of this machine")
            return
        try:
            body = self.server.render()
        except TimeoutError:
            self.send_error(503, "the controller does not answer")
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: Prometheus asks every few seconds."""


@contextmanager
def _serving(address: str, render: Callable[[], bytes]) -> Iterator[None]:
    """Serve what `render` returns during the block."""
    reader, _, place = address.rpartition("@")
    host, _, port = place.rpartition(":")
    if reader and user_id(reader) is None:
        raise InputError(
            f"no user is called {reader!r}",
            where=f"metrics {address!r}",
            remedy="name a user of this machine, or leave USER@ out",
        )
    try:
        server = _Server(
            host.strip("[]") or "127.0.0.1", int(port), reader or READER, render
        )
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not an address"
        raise InputError(
            f"cannot listen: {reason}",
            where=f"metrics {address!r}",
            remedy="write HOST:PORT, e.g. 127.0.0.1:9400",
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
