# SPDX-License-Identifier: MIT
"""A real daemon with a page in a browser, for tests."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.daemons import Daemon
from support.waiting import LIMIT_S, until

__all__ = ["PageDaemon", "free_port"]


def free_port() -> int:
    """Return a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(self._path)


class PageDaemon(Daemon):
    """A daemon with a page on loopback, or at the Unix socket of the setting `web`."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.port = free_port()
        settings = {"web": f"127.0.0.1:{self.port}", **settings}
        super().__init__(folder, **settings)

    def _connection(self) -> http.client.HTTPConnection:
        if self.settings["web"].startswith("unix:"):
            return _UnixConnection(self.settings["web"].removeprefix("unix:"))
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start the daemon, and wait until its page answers."""
        super().start()
        until(lambda: self.get("/static/main.js")[0] == 200)

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Return status and body of an answer; 0 if there is none.

        Headers are named with ``_`` for ``-``.
        """
        return self.send("GET", path, None, **headers)

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        """Return status and body of the answer to a request."""
        connection = self._connection()
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def json(self, path: str, **headers: str) -> Any:
        """Return the document of an answer that succeeds."""
        status, body = self.get(path, **headers)
        assert status == 200, body
        return json.loads(body)

    @contextmanager
    def events(self, last_id: str = "") -> Iterator[Iterator[tuple[str, Any, str]]]:
        """Return the events as they come: name, data and id."""
        connection = self._connection()
        try:
            headers = {"Last-Event-ID": last_id} if last_id else {}
            connection.request("GET", "/api/events", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield _events(answer)
        finally:
            connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any, str]]:
    fields: dict[str, str] = {}
    while line := answer.readline().decode():
        name, _, text = line.rstrip("\n").partition(": ")
        if name:
            fields[name] = text
        elif "event" in fields:
            yield fields["event"], json.loads(fields["data"]), fields.get("id", "")
            fields = {}
        else:
            fields = {}
